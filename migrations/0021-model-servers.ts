import { type Kysely, sql } from 'kysely'

/**
 * Records what is known of model servers: the form of their requests, their context window, and
 * which investigations use them now. A slot is waited for or held. Both end by themselves when the
 * worker that has the slot no longer reports.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table model_profile (
      server text not null,
      model text not null,
      shape jsonb not null default '{}',
      shape_at timestamptz,
      identity text,
      window_tokens integer check (window_tokens > 0),
      window_source text,
      refused_window integer check (refused_window > 0),
      cuts_silently boolean not null default false,
      is_provisional boolean not null default false,
      read_at timestamptz,
      primary key (server, model)
    )`.execute(db)
  await sql`
    create table model_slot (
      holder text primary key,
      server text not null,
      incident_id text not null,
      rank integer not null,
      asked_at timestamptz not null default nightshift_now(),
      held_at timestamptz,
      token text,
      until timestamptz not null
    )`.execute(db)
  await sql`create index model_slot_server on model_slot (server, held_at)`.execute(db)
  await sql`create index model_slot_incident on model_slot (incident_id)`.execute(db)
  await sql`grant select, insert, update on model_profile to nightshift_app`.execute(db)
  await sql`grant select, insert, update, delete on model_slot to nightshift_app`.execute(db)
}
