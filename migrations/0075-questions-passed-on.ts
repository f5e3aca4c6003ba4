import { type Kysely, sql } from 'kysely'

/**
 * Records the people to whom a question was passed on, one after the other, in the order of the
 * configured list. A row is written once.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table approval_asked (
      approval_id text not null references approval (id) on delete cascade,
      step smallint not null,
      operator_id text not null references operator (id),
      at timestamptz not null default nightshift_now(),
      primary key (approval_id, step)
    )`.execute(db)
  await sql`revoke update, delete, truncate on approval_asked from nightshift_app`.execute(db)
  await sql`grant select, insert on approval_asked to nightshift_app`.execute(db)
}
