import { type Kysely, sql } from 'kysely'

/**
 * Adds indexes from which reports are counted without reading the whole log: 100,000 incidents of
 * half a year in less than a second, measured by the bench `load`. Also adds what people wrote into
 * a postmortem. This is a table and not part of the log: people compare the newest hash of the log,
 * and an edit weeks later must not change that hash.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create index incident_event_hand on incident_event (incident_id, seq) include (actor, at)
    where kind = 'claimed' or actor like 'user:%'`.execute(db)
  await sql`
    create index incident_event_repaired on incident_event (incident_id)
    where kind = 'resolved' and metadata->>'outcome' = 'repaired' and actor not like 'user:%'`.execute(db)
  await sql`
    create index incident_event_unshown on incident_event (incident_id)
    where kind = 'call_judged' and metadata->>'code' in ('CLAIM_NOT_SHOWN', 'PHANTOM_CLAIM')
      or kind = 'correction_sent' and metadata->>'code' in ('claim_not_shown', 'phantom_claim')
      or kind in ('resolved', 'escalated')
        and (metadata ? 'unshown' or metadata @? '$.claims[*] ? (@.shown == false)')`.execute(db)
  await sql`
    create index incident_resource on incident (resource_kind, resource_id, type, created_at)
    where resource_id is not null`.execute(db)

  // A row contains what a person wrote in some sections; null restores the generated text. Every
  // version is kept, with its author and time.
  await sql`
    create table postmortem_edit (
      incident_id text not null references incident (id),
      version integer not null check (version > 0),
      sections jsonb not null,
      operator_id text not null references operator (id),
      at timestamptz not null default nightshift_now(),
      primary key (incident_id, version)
    )`.execute(db)
  await sql`
    create trigger postmortem_edit_append_only before update or delete on postmortem_edit
    for each row execute function refuse_change()`.execute(db)
  await sql`
    create trigger postmortem_edit_no_truncate before truncate on postmortem_edit
    for each statement execute function refuse_change()`.execute(db)
  await sql`grant select, insert on postmortem_edit to nightshift_app`.execute(db)
}
