import { type Kysely, sql } from 'kysely'

/**
 * Creates the tables of signed-in browsers, and of the single-use codes that sign in one browser.
 * Both store only hashes.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table session (
      sha256 text primary key,
      token_id text not null references api_token (id),
      created_at timestamptz not null default nightshift_now(),
      expires_at timestamptz not null
    )`.execute(db)
  await sql`
    create table sign_in_code (
      sha256 text primary key,
      token_id text not null references api_token (id),
      created_at timestamptz not null default nightshift_now(),
      expires_at timestamptz not null,
      used_at timestamptz
    )`.execute(db)
  await sql`grant select, insert, update, delete on session, sign_in_code to nightshift_app`.execute(db)
}
