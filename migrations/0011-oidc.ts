import { type Kysely, sql } from 'kysely'

/** People whom a provider vouches for, and the tokens that their browsers stand for. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table operator
    add column issuer text,
    add column subject text,
    add constraint operator_identity unique (issuer, subject),
    add check ((issuer is null) = (subject is null))`.execute(db)
  // Nobody holds a `sign_in` token: it is made for sessions, and its plain form is thrown away at birth.
  await sql`alter table api_token
    add column kind text not null default 'token' check (kind in ('token', 'sign_in')),
    add check (kind = 'token' or operator_id is not null)`.execute(db)
}
