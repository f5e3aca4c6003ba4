import { type Kysely, sql } from 'kysely'

/**
 * Adds indexes for a hundred thousand incidents and five million rows, as measured by the bench
 * `load`. No column in these indexes changes when a row is appended to the log or an alert repeats,
 * so both remain updates in place (HOT).
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  // Usage and health read the model's rows of some days. These rows are one in four, and the index
  // finds them by time.
  await sql`create index incident_event_model on incident_event (at) where kind in ('model_answered', 'model_failed')`.execute(
    db,
  )
  await sql`create index incident_event_gap on incident_event (id desc) where kind = 'capability_gap'`.execute(db)

  // Open incidents are few among many that ended. This one index for the queue, the watchdog and
  // metrics replaces the index by type.
  await sql`
    create index incident_live on incident (status, type, severity)
    where status in ('open', 'investigating', 'awaiting_approval')`.execute(db)
  await sql`drop index incident_running`.execute(db)
  await sql`create index incident_group on incident (group_id) where group_id is not null`.execute(db)
  await sql`
    create index incident_precedent on incident (type, closed_at desc)
    where status in ('resolved', 'escalated')`.execute(db)
  // The search finds words inside titles. The extension is a trusted one, so the owner of the
  // database may create it.
  await sql`create extension if not exists pg_trgm`.execute(db)
  await sql`
    create index incident_words on incident using gin (title gin_trgm_ops, resource_id gin_trgm_ops)`.execute(db)

  await sql`create index approval_of_incident on approval (incident_id)`.execute(db)
  await sql`create index approval_pending_action on approval (action_digest) where status = 'pending'`.execute(db)
  await sql`create index effect_running on effect (incident_id) where status = 'running'`.execute(db)

  // An alert that fires again is matched with the last alert of its fingerprint.
  await sql`create index alert_over on alert (source, fingerprint) where status = 'resolved'`.execute(db)
  await sql`create index alert_ended on alert (ends_at) where status = 'resolved'`.execute(db)
  // No query sorts by this index, and it prevented that every repeat of an alert is an update in
  // place.
  await sql`drop index alert_recent`.execute(db)
}
