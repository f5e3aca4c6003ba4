import { type Kysely, sql } from 'kysely'

/** Browsers that are signed in, and the single-use codes that sign one in. Both hold hashes alone. */
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
