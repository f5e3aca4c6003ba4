import { type Kysely, sql } from 'kysely'

/**
 * Adds indexes for the search over all incidents and for Home, which counts the repairs of a night.
 * Rows that only repeat another row (the start of a call, output in progress) are not searched.
 * Only the first 2,000 characters of a row are searched, so that no text is too long for the index.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create index incident_event_words on incident_event using gin (to_tsvector('simple', left(detail, 2000)))
    where kind in ('alert_received', 'looked', 'noted', 'model_answered', 'tool_finished', 'verification', 'approval_requested',
      'approval_decided', 'resolved', 'escalated', 'cancelled', 'commented', 'capability_gap', 'security_event')`.execute(
    db,
  )
  await sql`create index incident_event_repair on incident_event (at) where kind = 'verification'`.execute(db)
  await sql`create index incident_closed on incident (closed_at) where closed_at is not null`.execute(db)
  await sql`create index incident_handed on incident (type, category) where status = 'escalated'`.execute(db)
}
