import { type Kysely, sql } from 'kysely'

/**
 * Adds a hash chain to the audit. Moves the counters of `/metrics` into rows, so that each row of
 * the log is counted once over all processes. Earlier rows of the audit are chained in the order of
 * their ids.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await chainAudit(db)
  await keepCounters(db)
  // For verification, which counts the uses of grants in a log that is a million times as long.
  await sql`create index incident_event_grant on incident_event ((metadata->>'grantId')) where kind = 'grant_used'`.execute(
    db,
  )
}

async function chainAudit(db: Kysely<unknown>): Promise<void> {
  await sql`alter table audit add column seq bigint, add column prev_hash text, add column hash text`.execute(db)
  await sql`
    create table audit_head (
      id integer primary key default 1 check (id = 1),
      seq bigint not null,
      hash text not null
    )`.execute(db)

  // Writes the length in bytes before each field, so that no two rows have the same text.
  // `db/audit.ts` builds the same text.
  await sql`
    create function audit_hash(entry audit) returns text language sql immutable as $$
      select encode(sha256(convert_to(string_agg(coalesce(octet_length(field) || ':' || field, '-'), ',' order by place), 'UTF8')), 'hex')
      from unnest(array[
        entry.seq::text, to_char(entry.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), entry.who, entry.what, entry.subject,
        entry.detail, entry.address, entry.prev_hash
      ]) with ordinality as each (field, place)
    $$`.execute(db)

  await sql`alter table audit disable trigger audit_append_only`.execute(db)
  await sql`
    do $$
    declare
      each audit;
      previous text := '';
      number bigint := 0;
    begin
      for each in select * from audit order by id loop
        number := number + 1;
        each.seq := number;
        each.prev_hash := previous;
        each.hash := audit_hash(each);
        update audit set seq = each.seq, prev_hash = each.prev_hash, hash = each.hash where id = each.id;
        previous := each.hash;
      end loop;
      insert into audit_head (seq, hash) values (number, previous);
    end $$`.execute(db)
  await sql`alter table audit enable trigger audit_append_only`.execute(db)
  await sql`
    alter table audit
      alter column seq set not null, alter column prev_hash set not null, alter column hash set not null,
      add constraint audit_seq unique (seq)`.execute(db)

  // Runs as the owner, because the services may add rows but must not write the head directly.
  await sql`
    create function chain_audit() returns trigger language plpgsql security definer set search_path = public as $$
    begin
      select head.seq + 1, head.hash into strict new.seq, new.prev_hash from audit_head as head for update;
      new.hash := audit_hash(new);
      update audit_head set seq = new.seq, hash = new.hash;
      return new;
    end $$`.execute(db)
  await sql`
    create trigger audit_chain before insert on audit
    for each row execute function chain_audit()`.execute(db)
  await sql`grant select on audit_head to nightshift_app`.execute(db)
}

async function keepCounters(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table metric_counter (
      name text not null,
      labels jsonb not null,
      value bigint not null,
      primary key (name, labels)
    )`.execute(db)
  // The position up to which the log was counted, and what the counting remembers of open
  // incidents.
  await sql`
    create table metric_position (
      id integer primary key default 1 check (id = 1),
      tx xid8 not null,
      row_id bigint not null,
      memory jsonb not null default '{}',
      provider text not null default 'unknown'
    )`.execute(db)
  // Counting begins at this migration, because counting a log of years would look like one burst.
  await sql`
    insert into metric_position (tx, row_id)
    values (pg_snapshot_xmin(pg_current_snapshot()), 0)`.execute(db)
  // The first values of a label that outside systems set. All later values share one series.
  await sql`
    create table metric_label (
      label text not null,
      value text not null,
      primary key (label, value)
    )`.execute(db)
  await sql`grant select, insert, update on metric_counter, metric_position, metric_label to nightshift_app`.execute(db)
}
