import { sql } from 'kysely'
import type { AuditRow } from '../../domain/audit.ts'
import type { AuditChain } from '../../domain/chain.ts'
import { sha256 } from '../../domain/digest.ts'
import { type EventMetadata, systemActor } from '../../domain/event.ts'
import { cleanse } from '../../safety/redact.ts'
import type { Db, Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'
import { append } from './append.ts'
import { erasedAmong } from './erased.ts'

type AuditEntry = {
  /** The name of a person, or a placeholder for an unknown one. */
  who: string
  what: `${'token' | 'operator' | 'grant' | 'approval' | 'device' | 'sign_in' | 'security' | 'inventory' | 'source' | 'model' | 'push' | 'webhook' | 'destination' | 'postmortem' | 'platform' | 'change' | 'config' | 'expectation' | 'incident' | 'retention' | 'trust' | 'policy'}.${string}`
  subject: string
  detail: string
  address?: string | null
}

/**
 * Writes an audit entry for an action that no other row records, in the action's transaction if it
 * has one.
 */
export async function recordAudit(db: Db, entry: AuditEntry): Promise<void> {
  const { who, what, subject, detail, address = null } = entry
  await db
    .insertInto('audit')
    .values({ who: cleanse(who), what, subject: cleanse(subject), detail: cleanse(detail).slice(0, 2000), address })
    .execute()
}

/**
 * Entries of the audit table. Changes of settings are left out, because the table of revisions has
 * them.
 */
const own = sql`
  select at, 1 as source, id, who, what, subject, detail, case when what like 'postmortem.%' then subject end as incident_id, address
  from audit where what <> 'config.put'`

/**
 * Changes of settings. Values are left out, because readers of the audit log may not read secrets.
 */
const configuration = sql`
  select at, 2 as source, id,
    coalesce(regexp_replace(actor, '^user:', ''), 'sql') as who,
    case when new_value is null then 'config.removed' else 'config.changed' end as what,
    key as subject,
    'Version ' || version || coalesce(': ' || reason, '') as detail,
    null::text as incident_id, null::text as address
  from platform_config_revision`

/** Rows of incidents' logs that people caused themselves, or that are about a suspected attack. */
const incidents = sql`
  select at, 3 as source, id,
    case kind when 'security_event' then coalesce(metadata->>'by', metadata->>'subject', 'unknown') else substr(actor, 6) end as who,
    case kind
      when 'security_event' then 'security.' || lower(coalesce(metadata->>'code', 'event'))
      when 'approval_decided' then case metadata->>'decision' when 'approve' then 'approval.approved' else 'approval.denied' end
      when 'approval_withdrawn' then 'approval.edited'
      when 'commented' then case metadata->>'action'
        when 'opened' then 'incident.opened'
        when 'investigate_requested' then 'incident.investigated'
        else 'incident.cancel_asked' end
      else 'incident.' || kind end as what,
    coalesce(metadata->>'approvalId', incident_id) as subject,
    detail, incident_id, null::text as address
  from incident_event
  where (actor like 'user:%' or kind = 'security_event') and not metadata ? 'joined'
    and (kind in ('security_event', 'approval_decided', 'approval_withdrawn', 'resolved', 'escalated', 'cancelled')
      or kind = 'commented' and metadata->>'action' in ('opened', 'investigate_requested', 'cancel_requested'))`

type AuditFilter = { who?: string; what?: string; since?: string }

/**
 * Lists actions and who did them, newest first, from all tables that record actions. `what`: an
 * action such as `token.revoked`, or the part before its dot.
 */
export async function listAudit(
  { db }: Scope,
  filter: AuditFilter,
  page: { before: string | null; limit: number },
): Promise<AuditRow[]> {
  const wheres = [sql`true`]
  if (filter.who) wheres.push(sql`who = ${filter.who}`)
  if (filter.what) wheres.push(sql`(what = ${filter.what} or starts_with(what, ${`${filter.what}.`}))`)
  if (filter.since) wheres.push(sql`at >= ${filter.since}::timestamptz`)
  if (page.before) {
    const [at, source, id] = page.before.split('~')
    wheres.push(sql`at <= ${at}::timestamptz`)
    wheres.push(sql`(at, source, id) < (${at}::timestamptz, ${Number(source)}::int, ${Number(id)}::bigint)`)
  }
  // Reads the newest rows of each table by its own index, and merges only these rows.
  const newest = [own, configuration, incidents].map(
    (rows) => sql`(
      select * from (${rows}) as one where ${sql.join(wheres, sql` and `)}
      order by at desc, id desc limit ${page.limit})`,
  )
  const { rows } = await sql<Omit<AuditRow, 'id'> & { source: number; id: number }>`
    select * from (${sql.join(newest, sql` union all `)}) as merged
    order by at desc, source desc, id desc limit ${page.limit}`.execute(db)
  return rows.map(({ source, id, ...row }) => ({ ...row, id: `${row.at}~${source}~${id}` }))
}

/** How many of the newest rows of each table are searched for the choices of a filter. */
const rowsForChoices = 5_000
const maxChoices = 200

/** Lists recent people and actions as choices of a filter, alphabetically. */
export async function auditChoices({ db }: Scope): Promise<{ who: string[]; what: string[] }> {
  const newest = [own, configuration, incidents].map(
    (rows) => sql`(select who, what from (${rows}) as one order by at desc, id desc limit ${rowsForChoices})`,
  )
  const { rows } = await sql<{ who: string[] | null; what: string[] | null }>`
    with merged as (${sql.join(newest, sql` union all `)})
    select (select array_agg(who order by who) from (select distinct who from merged order by who limit ${maxChoices}) as named) as who,
      (select array_agg(what order by what) from (select distinct what from merged order by what limit ${maxChoices}) as done) as what`.execute(
    db,
  )
  return { who: rows[0]?.who ?? [], what: rows[0]?.what ?? [] }
}

const securityRowsPerIncident = 100

/**
 * Records on an incident a forged request, or a run that is no longer current. The number of
 * records is limited against floods.
 */
export async function recordSecurityEvent(
  trx: Trx,
  incidentId: string,
  event: EventMetadata['security_event'],
): Promise<void> {
  const { count } = await trx
    .selectFrom('incidentEvent')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('incidentId', '=', incidentId)
    .where('kind', '=', 'security_event')
    .executeTakeFirstOrThrow()
  if (count >= securityRowsPerIncident) return
  await append(trx, incidentId, null, {
    kind: 'security_event',
    actor: systemActor,
    detail: `${event.code} at the door ${event.door}${event.by ? `, by ${event.by}` : ''}`,
    metadata: event,
  })
}

const batch = 1000

type Chained = {
  id: string
  seq: number
  at: string
  who: string
  what: string
  subject: string
  detail: string
  address: string | null
  prevHash: string
  hash: string
}

/**
 * Recomputes the chain of the audit log: numbers from 1 without gaps, each hash correct and chained
 * to the previous hash, and the head equal to the last hash. The owner of the database could
 * rewrite the last rows and chain them again. Therefore `expectedHead`, a hash that was noted
 * elsewhere, must still be in the chain.
 */
export async function verifyAudit(db: Db, expectedHead?: string): Promise<AuditChain> {
  // Reads the head first, so that an entry that is added later does not seem to be missing.
  const head = await db.selectFrom('auditHead').select(['seq', 'hash']).executeTakeFirst()
  if (!head) return { ok: false, rows: 0, headHash: '', problem: { seq: 0, what: 'the head of the audit is missing' } }
  const { last, seen, problem } = await followChain(db, expectedHead)
  const report = (found: AuditChain['problem']) => ({
    ok: found === null,
    rows: last.seq,
    headHash: last.hash,
    problem: found,
  })
  if (problem) return report(problem)
  if (last.seq < head.seq)
    return report({ seq: last.seq + 1, what: 'rows are missing at the end: the head names a newer row' })
  if (!seen) return report({ seq: last.seq, what: `no row has the earlier hash ${expectedHead}` })
  return report(null)
}

async function followChain(db: Db, expectedHead: string | undefined) {
  let last = { seq: 0, hash: '' }
  let seen = expectedHead === undefined
  for (;;) {
    const rows: Chained[] = await sql<Chained>`
      select id::text, seq, at, who, what, subject, detail, address, prev_hash, hash from audit
      where seq > ${last.seq} order by seq limit ${batch}`
      .execute(db)
      .then(({ rows }) => rows)
    const span = sql`stored.seq > ${last.seq} and stored.seq <= ${rows.at(-1)?.seq ?? last.seq}`
    const erased = await erasedAmong(db, 'audit', span)
    for (const row of rows) {
      const what = flawOf(row, last, erased.get(row.id))
      if (what) return { last, seen, problem: { seq: last.seq + 1, what } }
      last = { seq: row.seq, hash: row.hash }
      seen ||= row.hash === expectedHead
    }
    if (rows.length < batch) return { last, seen, problem: null }
  }
}

function flawOf(
  row: Chained,
  last: { seq: number; hash: string },
  gone: { hash: string; isAsErased: boolean } | undefined,
) {
  if (row.seq !== last.seq + 1) return `row ${last.seq + 1} is missing`
  if (row.prevHash !== last.hash) return 'the row is not chained to the row before'
  if (gone)
    return gone.isAsErased && gone.hash === row.hash ? null : 'the content of the row differs from what an erasure left'
  if (hashAudit(row) !== row.hash) return 'the content of the row differs from its hash'
  return null
}

/**
 * Returns the SHA-256 of the fields of an entry, each preceded by its length in bytes, like the
 * database function `audit_hash`.
 */
function hashAudit(row: Omit<Chained, 'hash' | 'id'>): string {
  const { seq, at, who, what, subject, detail, address, prevHash } = row
  const fields = [String(seq), at, who, what, subject, detail, address, prevHash]
  return sha256(fields.map((field) => (field === null ? '-' : `${Buffer.byteLength(field)}:${field}`)).join(','))
}
