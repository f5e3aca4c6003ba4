import { type Kysely, sql } from 'kysely'

/**
 * Lets the calls of one model response be asked about together: an incident may have several
 * pending approvals, but a call has only one. `asked_with` is the first approval of those that
 * share a card; the first approval has its own id there. Null if no other approval was requested
 * with it. People are notified of the first approval, and of another one only when its turn comes
 * and it is still pending (`announced`).
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
