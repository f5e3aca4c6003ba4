import { type Kysely, sql } from 'kysely'

/**
 * Adds the hold of a page. `hold_until`: the latest time at which a page that waits for the
 * investigation is sent. This time is written once, with the row, by the database's clock.
 * `next_at` begins with this time, so that a worker of an older version respects it too. A trigger
 * allows a held page only to be sent earlier. `released_why`: why the hold ended. `repaired` means
 * that the page was not needed and is never sent.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table delivery
      add column hold_until timestamptz,
      add column released_at timestamptz,
      add column released_why text check (released_why in (
        'time', 'no_slot', 'model', 'approval', 'escalated', 'duty', 'ended', 'kept', 'message', 'repaired')),
      add constraint delivery_hold_is_short check (
        hold_until is null or (attempt = 1 and hold_until <= created_at + interval '301 seconds')),
      add constraint delivery_release_says_why check ((released_at is null) = (released_why is null) or attempt > 1)`.execute(
    db,
  )
  await sql`create index delivery_held on delivery (incident_id) where hold_until is not null and released_at is null`.execute(
    db,
  )
  await sql`create index delivery_spared on delivery (incident_id) where released_why = 'repaired' and told_elsewhere_at is null`.execute(
    db,
  )
  await sql`
    create function keep_page_hold() returns trigger language plpgsql as $$
    begin
      if tg_op = 'INSERT' then
        if new.next_at > new.hold_until then raise exception 'a held page leaves at its hold at the latest'; end if;
        return new;
      end if;
      if new.hold_until is distinct from old.hold_until then raise exception 'a hold is written once'; end if;
      if old.released_at is not null and new.released_at is distinct from old.released_at then
        raise exception 'a page is released once';
      end if;
      -- What was tried may be put back for its receiver; what still waits may not.
      if old.hold_until is not null and old.status = 'pending' and new.next_at > old.next_at then
        raise exception 'a held page is released earlier, never later';
      end if;
      return new;
    end $$`.execute(db)
  await sql`create trigger delivery_hold before insert or update on delivery for each row execute function keep_page_hold()`.execute(
    db,
  )
}
