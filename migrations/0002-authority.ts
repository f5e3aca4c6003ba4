import { type Kysely, sql } from 'kysely'

/**
 * Creates the tables of people, decisions and their effects: who may decide, what was decided, and
 * the result.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table operator (
      id text primary key,
      name text not null unique,
      role text not null check (role in ('viewer', 'operator', 'approver', 'admin')),
      created_at timestamptz not null default nightshift_now()
    )`.execute(db)
  await sql`
    create table api_token (
      id text primary key,
      name text not null,
      prefix text not null,
      sha256 text not null unique,
      role text not null check (role in ('viewer', 'operator', 'approver', 'admin', 'agent', 'ingest')),
      operator_id text references operator (id),
      scopes jsonb not null default '[]',
      created_at timestamptz not null default nightshift_now(),
      expires_at timestamptz,
      last_used_at timestamptz,
      revoked_at timestamptz,
      -- A machine is nobody: only a token of a person can ever decide.
      check ((role in ('agent', 'ingest')) = (operator_id is null))
    )`.execute(db)

  await sql`
    create table approval (
      id text primary key,
      incident_id text not null references incident (id),
      attempt integer not null,
      call_id text not null,
      tool text not null,
      args jsonb not null,
      targets jsonb not null,
      reason text not null,
      action_digest text not null,
      state_fingerprint text not null,
      risk text not null,
      reversible boolean not null,
      required integer not null check (required >= 1),
      dry_run jsonb not null,
      status text not null default 'pending'
        check (status in ('pending', 'approved', 'denied', 'expired', 'withdrawn', 'consumed')),
      requested_at timestamptz not null default nightshift_now(),
      expires_at timestamptz not null,
      decided_at timestamptz,
      use_by timestamptz,
      read_at timestamptz
    )`.execute(db)
  await sql`create unique index approval_one_pending on approval (incident_id) where status = 'pending'`.execute(db)
  await sql`create index approval_pending on approval (requested_at) where status = 'pending'`.execute(db)
  await sql`
    create table approval_decision (
      approval_id text not null references approval (id),
      operator_id text not null references operator (id),
      decision text not null check (decision in ('approve', 'deny')),
      reason text,
      via text not null,
      at timestamptz not null default nightshift_now(),
      primary key (approval_id, operator_id)
    )`.execute(db)
  await sql`
    create table decision_token (
      sha256 text primary key,
      approval_id text not null references approval (id),
      operator_id text not null references operator (id),
      created_at timestamptz not null default nightshift_now(),
      expires_at timestamptz not null,
      used_at timestamptz,
      used_for text
    )`.execute(db)

  await sql`
    create table effect (
      key text primary key,
      incident_id text,
      tool text not null,
      action_digest text not null,
      status text not null check (status in ('running', 'done', 'failed', 'indeterminate')),
      detail text not null default '',
      result jsonb not null default '{}',
      started_at timestamptz not null default nightshift_now(),
      finished_at timestamptz
    )`.execute(db)
  await sql`
    create table target_lease (
      target text primary key,
      incident_id text not null references incident (id),
      attempt integer not null,
      call_id text not null,
      since timestamptz not null default nightshift_now()
    )`.execute(db)
  await sql`
    create table idempotency (
      token_id text not null,
      route text not null,
      key text not null,
      body_digest text not null,
      status integer,
      response jsonb,
      created_at timestamptz not null default nightshift_now(),
      primary key (token_id, route, key)
    )`.execute(db)
  await sql`
    create table proposal (
      id text primary key,
      incident_id text references incident (id),
      intent text not null,
      host_ids jsonb not null,
      state text not null,
      migrations integer not null,
      steps jsonb not null,
      reason text,
      plan_digest text not null,
      state_fingerprint text not null,
      problem jsonb not null,
      created_at timestamptz not null default nightshift_now()
    )`.execute(db)
}
