import pg from 'pg'

const incidentsPerStatement = 2_000
const days = 180

/**
 * Fills a migrated, empty database with half a year of incidents, rows, alerts, approvals and
 * audit. Writes by SQL instead of `append()`, so the rows have no hash chain and no foreign key
 * checks. Only for a throw-away database. Lengths vary as in real logs: most incidents are short,
 * and one in two hundred has a thousand rows.
 */
export async function fill(
  databaseUrl: string,
  incidents: number,
  events: number,
  progress: (text: string) => void,
): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    for (const statement of [...preparation, tables(incidents, events)]) await client.query(statement)
    for (let from = 1; from <= incidents; from += incidentsPerStatement) {
      const to = Math.min(incidents, from + incidentsPerStatement - 1)
      for (const statement of [incidentRows, eventRows, alertRows, approvalRows])
        await client.query(statement, [from, to])
      if (to % 10_000 === 0 || to === incidents) progress(`${to} of ${incidents} incidents`)
    }
    // Turns triggers on again, because a trigger writes the hash chain of the audit log, which
    // refuses entries without the chain.
    await client.query('set session_replication_role = default')
    await client.query(auditRows)
    await client.query('drop table life')
    progress('vacuum')
    await client.query('vacuum (analyze)')
  } finally {
    await client.end()
  }
}

const preparation = [
  // Turns foreign key checks off, because each row's incident certainly exists.
  'set session_replication_role = replica',
  'set synchronous_commit = off',
  "set work_mem = '64MB'",
  'select setseed(0.5)',
  `create function pg_temp.base32(value bigint, digits int) returns text language sql immutable as $$
    select string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', ((value >> (5 * place)) & 31)::int + 1, 1), '' order by place desc)
    from generate_series(0, digits - 1) as place $$`,
]

/** Chooses each incident's data once, so that its rows agree with each other. */
function tables(incidents: number, events: number): string {
  const long = Math.floor(incidents / 200)
  const longRows = Math.min(long * 1_000, Math.floor(events * 0.1))
  // Gives short incidents at least six rows and exponentially distributed lengths. The long
  // incidents get the remaining rows.
  const mean = Math.max(0.001, (events - longRows) / Math.max(1, incidents - long) - 6)
  return `create table life as
    select n,
      'inc_' || pg_temp.base32(floor(extract(epoch from born) * 1000)::bigint, 10)
        || pg_temp.base32((random() * 1e15)::bigint, 10) || pg_temp.base32(n, 6) as id,
      born,
      (array['replication_lag', 'disk_pressure', 'vm_down', 'host_unreachable', 'certificate_expiry', 'backup_failed',
        'high_latency', 'question'])[1 + least(7, floor(-ln(1 - random()) * 2))::int] as type,
      case when random() < 0.08 then 'critical' when random() < 0.6 then 'warning' else 'info' end as severity,
      case when n > ${incidents} - ${Math.ceil(incidents / 500)} then
          case when random() < 0.5 then 'open' when random() < 0.5 then 'investigating' else 'awaiting_approval' end
        when random() < 0.72 then 'resolved' when random() < 0.93 then 'escalated' else 'cancelled' end as status,
      floor(random() * 400)::int as tenant,
      floor(random() * 3000)::int as resource,
      random() < 0.25 as follows,
      case when n % 200 = 0 then ${long === 0 ? 0 : Math.floor(longRows / long)} else 6 + floor(-ln(1 - random()) * ${mean})::int end as events
    from (select n, now() - interval '${days} days' * (1 - n::float8 / ${incidents}) as born
      from generate_series(1, ${incidents}) as n) as born`
}

const incidentRows = `
  insert into incident (id, type, severity, status, title, resource_kind, resource_id, assigned_to, attempt, role, group_id,
    queued_at, resolution, created_at, updated_at, last_event_at, closed_at, next_seq, head_hash)
  select id, type, severity, status,
    initcap(replace(type, '_', ' ')) || ' on shard-' || resource || ' of tenant-' || tenant || ' since ' || to_char(born, 'HH24:MI'),
    'shard', 'shard-' || resource,
    case when status in ('investigating', 'awaiting_approval') then 'investigate:' || id || ':1' end,
    case status when 'open' then 0 else 1 end,
    case when status = 'open' then null when follows then 'follower' else 'leader' end,
    case when status <> 'open' then 'grp_' || type || '_' || n / 8 end,
    born, case when status in ('resolved', 'escalated', 'cancelled') then 'The replica was converged and follows again.' end,
    born, born + events * interval '4 s', born + events * interval '4 s',
    case when status in ('resolved', 'escalated', 'cancelled') then born + events * interval '4 s' end,
    events + 1, md5(id)
  from life where n between $1 and $2 order by n`

/**
 * Writes the rows of an incident in a valid order: alert, claim, context, then turns of four rows,
 * then the end.
 */
const eventRows = `
  insert into incident_event (incident_id, attempt, seq, step_key, turn, kind, action, actor, detail, metadata, at, prev_hash, hash)
  select id, 1, seq, case when kind in ('alert_received', 'commented') then null else id || ':1:' || seq || ':' || kind end,
    case when seq > 3 then seq / 4 end, kind,
    case kind when 'commented' then 'commented' when status then status else 'investigated' end,
    case when kind = 'commented' then 'user:anna' when kind = 'alert_received' then 'source:alertmanager' when kind = status then 'system'
      else 'agent' end,
    kind || ' ' || seq || ': ' || repeat('the replica of shard ' || resource || ' is behind ', 3),
    case kind
      when 'model_answered' then jsonb_build_object('model', 'Qwen/Qwen2.5-72B-Instruct', 'finishReason', 'stop', 'durationMs', 900 + seq,
        'usage', jsonb_build_object('promptTokens', 4000 + seq * 20, 'completionTokens', 120), 'text', repeat('I look at the shard. ', 8))
      when 'alert_received' then jsonb_build_object('fingerprint', 'load-' || n, 'source', 'alertmanager', 'outcome', 'opened',
        'labels', jsonb_build_object('tenant', 'tenant-' || tenant))
      when 'commented' then jsonb_build_object('text', 'I saw it', 'action', 'opened')
      else jsonb_build_object('callId', 'call-' || seq, 'tool', 'get_shard', 'effect', 'read', 'verdict', 'run', 'code', 'READ', 'outcome', 'done',
        'arguments', jsonb_build_object('id', 'shard-' || resource), 'result', repeat('{"lag":214,"status":"behind"}', 4)) end,
    born + seq * interval '4 s', md5(id || seq - 1), md5(id || seq)
  from (
    select life.*, seq, case
      when seq = 1 then 'alert_received' when seq = 2 then 'claimed' when seq = 3 then 'context_assembled'
      when seq = events and status in ('resolved', 'escalated', 'cancelled') then status
      when seq % 97 = 0 then 'commented'
      else (array['model_answered', 'call_judged', 'tool_started', 'tool_finished'])[1 + seq % 4] end as kind
    from life, generate_series(1, events) as seq where n between $1 and $2
  ) as rows order by n, seq`

const alertRows = `
  insert into alert (id, source, fingerprint, status, name, labels, annotations, links, starts_at, ends_at, first_seen_at,
    last_seen_at, incident_id, raw)
  select 'alr' || substr(id, 4), 'alertmanager', 'load-' || n % 50000 || case when born < now() - interval '3 days' then '' else '-' || n end,
    case when born < now() - interval '3 days' then 'resolved' else 'firing' end, type,
    jsonb_build_object('alertname', type, 'shard', 'shard-' || resource, 'tenant', 'tenant-' || tenant),
    '{}', '{"generator":null,"external":null,"runbook":null}', born,
    case when born < now() - interval '3 days' then born + interval '5 min' end, born, born + interval '5 min', id,
    jsonb_build_object('title', 'shard-' || resource || ' is behind', 'description', repeat('as the source said it ', 20))
  from life where n between $1 and $2 order by n`

const approvalRows = `
  insert into approval (id, incident_id, attempt, call_id, tool, args, targets, reason, action_digest, state_fingerprint, risk,
    reversible, required, dry_run, status, requested_at, expires_at, decided_at)
  select 'apr' || substr(id, 4), id, 1, 'call-9', 'converge_shard', jsonb_build_object('id', 'shard-' || resource),
    jsonb_build_array(jsonb_build_object('kind', 'shard', 'id', 'shard-' || resource)), 'the replica is behind', md5(id), md5(id), 'high',
    true, 1, '{"possible":false,"summary":"none possible","details":{}}',
    case when status = 'awaiting_approval' then 'pending' when random() < 0.7 then 'consumed' else 'denied' end,
    born, case when status = 'awaiting_approval' then now() else born end + interval '1 hour',
    case when status <> 'awaiting_approval' then born + random() * interval '20 min' end
  from life where n between $1 and $2 and (n % 3 = 0 or status = 'awaiting_approval') order by n`

const auditRows = `
  insert into audit (at, who, what, subject, detail)
  select born, 'anna', case when n % 2 = 0 then 'sign_in.done' else 'token.created' end, 'browser', 'Signed in as approver'
  from life where n % 5 = 0 order by n`
