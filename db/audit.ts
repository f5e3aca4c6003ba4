import { sql } from 'kysely'
import type { AuditRow } from '../domain/audit.ts'
import { cleanse } from '../safety/cleanse.ts'
import type { Db } from './connect.ts'

type AuditEntry = {
  /** A person's name, or what stands for one that is not known. */
  who: string
  what: `${'token' | 'operator' | 'grant' | 'approval' | 'device' | 'sign_in' | 'security' | 'inventory'}.${string}`
  subject: string
  detail: string
  address?: string | null
}

/** Writes down what has no row yet, in the transaction of what it tells about where there is one. */
export async function recordAudit(db: Db, entry: AuditEntry): Promise<void> {
  const { who, what, subject, detail, address = null } = entry
  await db
    .insertInto('audit')
    .values({ who: cleanse(who), what, subject: cleanse(subject), detail: cleanse(detail).slice(0, 2000), address })
    .execute()
}

const own = sql`
  select at, 1 as source, id, who, what, subject, detail, null::text as incident_id, address from audit`

/** Values are left out: who may read this may not read secrets. */
const configuration = sql`
  select at, 2 as source, id,
    coalesce(regexp_replace(actor, '^user:', ''), 'sql') as who,
    case when new_value is null then 'config.removed' else 'config.changed' end as what,
    key as subject,
    'Version ' || version || coalesce(': ' || reason, '') as detail,
    null::text as incident_id, null::text as address
  from platform_config_revision`

/** Of the log what people did themselves, and what looked like an attack. */
const incidents = sql`
  select at, 3 as source, id,
    case kind when 'security_event' then coalesce(metadata->>'subject', 'unknown') else substr(actor, 6) end as who,
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
  where (actor like 'user:%' or kind = 'security_event')
    and (kind in ('security_event', 'approval_decided', 'approval_withdrawn', 'resolved', 'escalated', 'cancelled')
      or kind = 'commented' and metadata->>'action' in ('opened', 'investigate_requested', 'cancel_requested'))`

type AuditFilter = { who?: string; what?: string; since?: string }

/** Who did what, newest first, out of every table that knows. `what` is a word or the part before its dot. */
export async function listAudit(
  db: Db,
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
  // Each table gives its newest by its own index, and only those few are merged.
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
