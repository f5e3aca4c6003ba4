import { type Kysely, sql } from 'kysely'

/**
 * Calls of one answer are asked about together: an incident may have several pending questions, but one call has one. `asked_with` is
 * the first approval of those that share a card, its own id for that one; null where nothing else was asked with it. People are notified
 * of the first; of another only when its turn comes and it still waits (`announced`).
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table approval
      add column asked_with text references approval (id),
      add column announced boolean not null default true`.execute(db)
  await sql`drop index approval_one_pending`.execute(db)
  await sql`
    create unique index approval_one_pending_call on approval (incident_id, attempt, call_id)
    where status = 'pending'`.execute(db)
  await sql`create index approval_asked_with on approval (asked_with) where asked_with is not null`.execute(db)
}
