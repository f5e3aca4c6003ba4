import { type Kysely, sql } from 'kysely'

/** Adds the time at which a denial with "not now" ends. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table approval_decision add column ask_again_at timestamptz check (ask_again_at is null or decision = 'deny')`.execute(
    db,
  )
  await sql`create index approval_decision_ask_again on approval_decision (ask_again_at) where ask_again_at is not null`.execute(
    db,
  )
}
