import { type Kysely, sql } from 'kysely'

/** Creates the tables of settings, and of messages that are sent out. */
export async function up(db: Kysely<unknown>): Promise<void> {
  // `value` is text and all other columns have a default, so that plain INSERT statements work.
  await sql`
    create table platform_config (
      key text primary key,
      value text not null,
      version integer not null default 1,
      updated_at timestamptz not null default nightshift_now(),
      updated_by text not null default 'sql',
      reason text
    )`.execute(db)
  await sql`
    create table platform_config_revision (
      id bigint generated always as identity primary key,
      key text not null,
      version integer not null,
      old_value text,
      new_value text,
      actor text not null,
      reason text,
      at timestamptz not null default nightshift_now()
    )`.execute(db)
  await sql`
    create function platform_config_next_version() returns trigger language plpgsql as $$
    begin
      new.version := old.version + 1;
      new.updated_at := nightshift_now();
      return new;
    end $$`.execute(db)
  await sql`
    create trigger platform_config_version before update on platform_config
    for each row execute function platform_config_next_version()`.execute(db)
  // An AFTER trigger, because an INSERT that ends as ON CONFLICT fires BEFORE triggers although it
  // inserted nothing.
  await sql`
    create function platform_config_revise() returns trigger language plpgsql as $$
    begin
      if tg_op = 'DELETE' then
        insert into platform_config_revision (key, version, old_value, new_value, actor)
        values (old.key, old.version + 1, old.value, null, current_setting('nightshift.actor', true));
      else
        insert into platform_config_revision (key, version, old_value, new_value, actor, reason)
        values (new.key, new.version, case when tg_op = 'UPDATE' then old.value end, new.value, new.updated_by, new.reason);
      end if;
      return null;
    end $$`.execute(db)
  await sql`alter table platform_config_revision alter column actor drop not null`.execute(db)
  await sql`
    create trigger platform_config_revision after insert or update or delete on platform_config
    for each row execute function platform_config_revise()`.execute(db)
  await sql`
    create trigger platform_config_revision_append_only before update or delete on platform_config_revision
    for each row execute function refuse_change()`.execute(db)

  // One row for each attempt to deliver. `message_id` is the same in all attempts of one message.
  await sql`
    create table delivery (
      id bigint generated always as identity primary key,
      message_id text not null,
      destination text not null,
      incident_id text not null references incident (id),
      notification jsonb not null,
      attempt integer not null,
      status text not null default 'pending' check (status in ('pending', 'sending', 'sent', 'failed', 'dropped')),
      response_status integer,
      response text,
      next_at timestamptz not null default nightshift_now(),
      leased_until timestamptz,
      finished_at timestamptz,
      created_at timestamptz not null default nightshift_now(),
      unique (message_id, attempt)
    )`.execute(db)
  await sql`create index delivery_due on delivery (next_at) where status in ('pending', 'sending')`.execute(db)
}
