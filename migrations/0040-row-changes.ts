import { type Kysely, sql } from 'kysely'

/**
 * Makes the database record each change of rows that grant authority, with its transaction.
 * `nightshift verify` checks whether a row of the audit or of a log records the change in the same
 * transaction. Takes from the services the right to change columns that they never change.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await noteTransactionsOfAudit(db)
  await noteChanges(db)
  await takePrivileges(db)
  await keepWhatEnded(db)
}

/**
 * Adds to a row of the audit the transaction that wrote the row. The transaction is not hashed,
 * because it is only used to find the change that the database recorded.
 */
async function noteTransactionsOfAudit(db: Kysely<unknown>): Promise<void> {
  await sql`alter table audit add column tx xid8`.execute(db)
  await sql`create index audit_tx on audit (tx) where tx is not null`.execute(db)
  await sql`
    create or replace function chain_audit() returns trigger language plpgsql security definer set search_path = public as $$
    begin
      select head.seq + 1, head.hash into strict new.seq, new.prev_hash from audit_head as head for update;
      new.tx := pg_current_xact_id();
      new.hash := audit_hash(new);
      update audit_head set seq = new.seq, hash = new.hash;
      return new;
    end $$`.execute(db)
}

/**
 * The recorded tables. `key`: the columns of the key. `without`: columns that change often and
 * grant no authority. `of`: if set, only these columns are recorded, and only when they change.
 */
const tables: { name: string; key: string[]; without?: string[]; of?: string[]; events: string }[] = [
  { name: 'operator', key: ['id'], events: 'insert or update or delete' },
  { name: 'api_token', key: ['id'], without: ['last_used_at'], events: 'insert or update or delete' },
  { name: 'session', key: ['sha256'], without: ['expires_at'], events: 'insert or update' },
  { name: 'sign_in_code', key: ['sha256'], events: 'insert or update' },
  { name: 'decision_token', key: ['sha256'], events: 'insert or update or delete' },
  { name: 'standing_grant', key: ['id'], events: 'insert or update or delete' },
  { name: 'source', key: ['name'], events: 'insert or update or delete' },
  { name: 'platform_config', key: ['key'], events: 'insert or update or delete' },
  { name: 'expectation', key: ['id'], events: 'insert or update or delete' },
  {
    name: 'device',
    key: ['id'],
    without: ['health', 'health_problem', 'health_at'],
    events: 'insert or update or delete',
  },
  { name: 'device_enrolment', key: ['sha256'], events: 'insert or update or delete' },
  { name: 'postmortem_edit', key: ['incident_id'], events: 'insert' },
  { name: 'mesh_key', key: ['id'], events: 'insert or update or delete' },
  {
    name: 'incident',
    key: ['id'],
    of: [
      ...['closed_at', 'closed_by', 'reopened', 'requested_by', 'owner_id', 'owned_at', 'kept_reason'],
      ...['expectation_id', 'time_budget_seconds', 'watch_until', 'repair_confirmed_at', 'cancelled_until'],
      ...['reminded_at', 'role', 'assigned_to', 'review_wanted_at'],
    ],
    events: 'update',
  },
  {
    name: 'alert',
    key: ['id'],
    of: ['status', 'ends_at', 'end_received_at', 'unknown_since', 'unknown_why'],
    events: 'update',
  },
]

async function noteChanges(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table row_change (
      id bigint generated always as identity primary key,
      tx xid8 not null default pg_current_xact_id(),
      at timestamptz not null default nightshift_now(),
      role text not null,
      of_table text not null,
      row_key text not null,
      op text not null check (op in ('kept', 'insert', 'update', 'delete')),
      kept jsonb
    )`.execute(db)
  await sql`create index row_change_row on row_change (of_table, row_key, id desc)`.execute(db)
  await sql`
    create trigger row_change_append_only before update or delete on row_change
    for each row execute function refuse_change()`.execute(db)
  await sql`
    create trigger row_change_no_truncate before truncate on row_change
    for each statement execute function refuse_change()`.execute(db)

  // Returns the recorded form of a row: without the columns that change often, and equal for all
  // settings of a session.
  await sql`
    create function kept_form(stored jsonb, kept_columns text[], left_out text[]) returns jsonb language sql immutable as $$
      select coalesce(jsonb_object_agg(key, value), '{}') from jsonb_each(stored)
      where (kept_columns is null or key = any(kept_columns)) and not key = any(left_out)
    $$`.execute(db)
  // Runs as the owner, so that the services can neither write the record nor prevent it.
  await sql`
    create function note_row_change() returns trigger language plpgsql security definer
    set search_path = public set timezone = 'UTC' set datestyle = 'ISO' set extra_float_digits = 1 set bytea_output = 'hex' as $$
    declare
      columns text[] := nullif(tg_argv[1], '')::text[];
      left_out text[] := tg_argv[2]::text[];
      earlier jsonb;
      later jsonb;
      named jsonb;
    begin
      if tg_op <> 'INSERT' then earlier := kept_form(to_jsonb(old), columns, left_out); named := to_jsonb(old); end if;
      if tg_op <> 'DELETE' then later := kept_form(to_jsonb(new), columns, left_out); named := to_jsonb(new); end if;
      if earlier is not distinct from later then return null; end if;
      insert into row_change (role, of_table, row_key, op, kept)
      values (
        case current_setting('role') when 'none' then session_user::text else current_setting('role') end,
        tg_table_name, named->>tg_argv[0], lower(tg_op), later);
      return null;
    end $$`.execute(db)

  for (const { name, key, without = [], of, events } of tables) {
    const [columns, leftOut] = [of ? `{${of.join(',')}}` : '', `{${without.join(',')}}`]
    const when = of ? `update of ${of.join(', ')}` : events
    await sql
      .raw(
        `create trigger ${name}_change after ${when} on ${name} for each row execute function note_row_change('${key.join()}', '${columns}', '${leftOut}')`,
      )
      .execute(db)
    if (of) continue
    // Records existing rows as they are. Later changes of these rows are known from now on, but not
    // who created the rows.
    await sql
      .raw(
        `insert into row_change (role, of_table, row_key, op, kept)
        select 'migration', '${name}', ${key.join()}, 'kept', kept_form(to_jsonb(stored), null, '${leftOut}') from ${name} as stored`,
      )
      .execute(db)
  }
  await sql`grant select on row_change to nightshift_app`.execute(db)
}

/**
 * The columns that the services may update after a row was inserted. A table with an empty list is
 * never updated.
 */
const updatable: Record<string, string[]> = {
  approval: [
    ...['status', 'expires_at', 'decided_at', 'use_by', 'read_at', 'edited', 'edited_by', 'reminded', 'asked_with'],
    'announced',
  ],
  approval_decision: [],
  decision_token: ['used_at', 'used_for', 'request', 'outcome'],
  standing_grant: ['uses_left', 'revoked_at'],
  session: ['expires_at'],
  sign_in_code: ['used_at'],
  device_enrolment: ['used_at'],
  expectation: ['ended_at', 'ended_by'],
  proposal: [],
  postmortem_edit: [],
  effect: ['status', 'detail', 'result', 'finished_at'],
  platform_effect: ['task', 'status', 'detail'],
  device_call: [...['finished_at', 'ok', 'error_code', 'approval_status', 'audit_hash', 'truncated', 'duration_ms']],
  alert: [
    ...['status', 'starts_at', 'ends_at', 'count', 'last_seen_at', 'start_seen', 'start_received_at'],
    ...['end_received_at', 'unknown_since', 'unknown_why'],
  ],
}

/**
 * Columns that never change, because they define what a row is. All other columns of these tables
 * may change.
 */
const fixed: Record<string, string[]> = {
  incident: [
    ...['id', 'type', 'severity', 'severity_source', 'title', 'resource_kind', 'resource_id', 'created_at'],
    'previous_id',
  ],
  operator: ['id', 'name', 'issuer', 'subject', 'created_at'],
  api_token: ['id', 'name', 'prefix', 'kind', 'sha256', 'operator_id', 'scopes', 'created_at'],
  device: ['id', 'resource_kind', 'resource_id', 'created_at'],
  mesh_key: ['id', 'public_key', 'known_since'],
}

async function takePrivileges(db: Kysely<unknown>): Promise<void> {
  const granted = { ...updatable }
  for (const [table, never] of Object.entries(fixed)) {
    const { rows } = await sql<{ name: string }>`
      select column_name as name from information_schema.columns
      where table_schema = 'public' and table_name = ${table}`.execute(db)
    granted[table] = rows.map(({ name }) => name).filter((name) => !never.includes(name))
  }
  for (const [table, columns] of Object.entries(granted)) {
    await sql.raw(`revoke update on ${table} from nightshift_app`).execute(db)
    if (columns.length > 0)
      await sql.raw(`grant update (${columns.join(', ')}) on ${table} to nightshift_app`).execute(db)
  }
  // Only the trigger writes revisions.
  await sql`alter function platform_config_revise() security definer set search_path = public`.execute(db)
  await sql`revoke insert on platform_config_revision from nightshift_app`.execute(db)
  // Only the owner may change the tables of the migrator.
  await sql`
    do $$ begin
      if to_regclass('kysely_migration') is not null then
        revoke insert, update, delete on kysely_migration, kysely_migration_lock from nightshift_app;
      end if;
    end $$`.execute(db)
}

/** Refuses every caller's change of a row that has ended. */
async function keepWhatEnded(db: Kysely<unknown>): Promise<void> {
  const ended: Record<string, string> = {
    effect: `old.status in ('done', 'failed')`,
    platform_effect: 'old.status is not null and (new.status, new.detail) is distinct from (old.status, old.detail)',
    device_call: 'old.finished_at is not null',
    decision_token: 'old.used_at is not null',
    sign_in_code: 'old.used_at is not null',
    device_enrolment: 'old.used_at is not null',
    expectation: 'old.ended_at is not null',
  }
  for (const [table, condition] of Object.entries(ended)) {
    await sql
      .raw(
        `create trigger ${table}_ended before update on ${table} for each row when (${condition}) execute function refuse_change()`,
      )
      .execute(db)
  }
  // A body must match its digest, and a session cannot be extended beyond a week. Existing rows are
  // not checked.
  await sql`
    alter table result_body add constraint result_body_digest
      check (digest = encode(sha256(bytes), 'hex')) not valid`.execute(db)
  await sql`
    alter table session add constraint session_week check (expires_at <= created_at + interval '7 days 1 minute') not valid`.execute(
    db,
  )
}
