import { type Kysely, sql } from 'kysely'

/**
 * Records what model responses cost per UTC day, in dollars, and which notices about a spending cap
 * were sent.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table model_spend (
      day date not null,
      model text not null,
      type text not null,
      answers integer not null,
      cost numeric not null,
      assumed numeric not null,
      primary key (day, model, type)
    )`.execute(db)
  await sql`
    create table spend_notice (
      period text not null,
      percent integer not null,
      cap numeric not null,
      at timestamptz not null default nightshift_now(),
      primary key (period, percent, cap)
    )`.execute(db)
  await sql`grant select, insert, update on model_spend to nightshift_app`.execute(db)
  await sql`grant select, insert on spend_notice to nightshift_app`.execute(db)
}
