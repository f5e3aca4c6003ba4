import { type Kysely, sql } from 'kysely'

/** Adds people whom an identity provider confirms, and the tokens of their browser sessions. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table operator
    add column issuer text,
    add column subject text,
    add constraint operator_identity unique (issuer, subject),
    add check ((issuer is null) = (subject is null))`.execute(db)
  // Nobody has a `sign_in` token. It is created for sessions, and its plain form is discarded at
  // once.
  await sql`alter table api_token
    add column kind text not null default 'token' check (kind in ('token', 'sign_in')),
    add check (kind = 'token' or operator_id is not null)`.execute(db)
}
