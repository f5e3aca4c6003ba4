import { type Kysely, sql } from 'kysely'

/**
 * Adds the category of a denial, what a person changed before approving, and which reminders were
 * sent.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table approval_decision add column category text
    check (category in ('wrong_target', 'too_risky', 'wrong_time', 'need_evidence', 'other'))`.execute(db)
  await sql`alter table approval
    add column edited jsonb,
    add column edited_by text references operator (id),
    add column reminded integer not null default 0`.execute(db)
}
