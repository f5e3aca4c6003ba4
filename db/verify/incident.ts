import { sql } from 'kysely'
import type { Difference } from '../../domain/chain.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { runningStatuses } from '../../domain/incident.ts'
import type { Db, Trx } from '../connect.ts'
import { verifyChain } from '../log/chain.ts'
import { eventsOf } from '../log/events.ts'
import type { IncidentRow } from '../tables.ts'

type FoldedIncident = {
  /** `running` stands for both words of a run: it works, or it waits for a person. */
  status: 'open' | 'running' | 'resolved' | 'escalated' | 'cancelled'
  attempt: number
  /** Of what is closed: the text of the row that closed it. */
  resolution: string | null
  /** Undefined where rows of an older version do not tell. */
  outcome: string | null | undefined
  category: string | null | undefined
}

/** What the rows of an incident say that its own row holds. */
function foldIncident(events: readonly IncidentEvent[]): FoldedIncident {
  let folded: FoldedIncident = { status: 'open', attempt: 0, resolution: null, outcome: null, category: null }
  for (const event of events) folded = { ...folded, ...changeBy(event, folded), attempt: event.attempt }
  return folded
}

const opened = { status: 'open', resolution: null, outcome: null, category: null } as const

function changeBy(event: IncidentEvent, folded: FoldedIncident): Partial<FoldedIncident> {
  switch (event.kind) {
    case 'claimed':
      return { status: 'running' }
    case 'resolved':
      return { status: 'resolved', resolution: event.detail, outcome: event.metadata.outcome, category: null }
    case 'escalated':
      return { status: 'escalated', resolution: event.detail, outcome: null, category: event.metadata.category ?? null }
    case 'cancelled':
      return { status: 'cancelled', resolution: event.detail, outcome: null, category: null }
    case 'commented':
      return event.metadata.action === 'investigate_requested' ? opened : {}
    case 'noted':
      if (event.metadata.code === 'reopened' || event.metadata.code === 'run_lost') return opened
      // What was resolved otherwise is expected from then on.
      return event.metadata.code === 'expected_marked' && folded.status === 'resolved' ? { outcome: 'expected' } : {}
    default:
      return {}
  }
}

type FoldedApproval = {
  status: string
  callId: string
  tool: string
  actionDigest: string
  risk: string
  required: number
  /** Digests of what its dry run brought along. */
  attachments: string
  /** Decisions as `approve page`, in the order of their rows. */
  decisions: string[]
}

const joinDigests = (attachments: readonly { digest: string }[] = []) =>
  attachments.map(({ digest }) => digest).join(' ')

/** What the rows of an incident say of each approval, by its id. */
function foldApprovals(events: readonly IncidentEvent[]): Map<string, FoldedApproval> {
  const approvals = new Map<string, FoldedApproval>()
  const settle = (id: string | null, status: string) => {
    const approval = id === null ? undefined : approvals.get(id)
    if (approval) approval.status = status
  }
  for (const event of events) {
    switch (event.kind) {
      case 'approval_requested': {
        const { approvalId, callId, tool, actionDigest, risk, required } = event.metadata
        const attachments = joinDigests(event.metadata.attachments)
        const asked = { status: 'pending', callId, tool, actionDigest, risk, required, attachments, decisions: [] }
        approvals.set(approvalId, asked)
        break
      }
      case 'approval_decided':
        settle(event.metadata.approvalId, event.metadata.status)
        approvals.get(event.metadata.approvalId)?.decisions.push(`${event.metadata.decision} ${event.metadata.via}`)
        break
      case 'approval_expired':
        settle(event.metadata.approvalId, 'expired')
        break
      case 'approval_withdrawn':
        settle(event.metadata.approvalId, 'withdrawn')
        break
      case 'tool_started':
        settle(event.metadata.approvalId, 'consumed')
        break
      default:
    }
  }
  return approvals
}

/**
 * Holds an incident against its own log: the chain of its rows, then its row, its approvals and its effects as they are stored
 * against what the rows fold to. One snapshot, so that what is written meanwhile is no difference.
 */
export async function verifyIncident(db: Db, id: string): Promise<{ events: number; found: Difference[] }> {
  return await db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute(async (trx) => {
      const row = await trx.selectFrom('incident').selectAll().where('id', '=', id).executeTakeFirst()
      const chain = await verifyChain(trx, id)
      if (!row || !chain) return { events: 0, found: [{ subject: id, what: 'the incident is missing' }] }
      const { problem } = chain
      const found: Difference[] = problem ? [{ subject: id, what: `row ${problem.seq}: ${problem.what}` }] : []
      const events = await eventsOf(trx, id)
      const approvals = foldApprovals(events)
      for (const what of incidentFlaws(row, foldIncident(events), approvals.size > 0)) found.push({ subject: id, what })
      found.push(...(await approvalFlaws(trx, id, approvals)), ...(await effectFlaws(trx, id, events)))
      return { events: chain.events, found }
    })
}

function incidentFlaws(row: IncidentRow, folded: ReturnType<typeof foldIncident>, hasAsked: boolean): string[] {
  const found: string[] = []
  const fits =
    folded.status === 'running' ? (runningStatuses as string[]).includes(row.status) : row.status === folded.status
  if (!fits) found.push(differs('status', row.status, folded.status === 'running' ? 'investigating' : folded.status))
  if (row.status === 'awaiting_approval' && !hasAsked)
    found.push('status is awaiting_approval, but no row asks for an approval')
  if (row.attempt !== folded.attempt) found.push(differs('attempt', row.attempt, folded.attempt))
  for (const field of ['resolution', 'outcome', 'category'] as const) {
    const said = folded[field]
    // Version 0.1.0 wrote down no outcome, and not who closed it either.
    if (field !== 'resolution' && row[field] === null && row.closedBy === null) continue
    if (fits && said !== undefined && row[field] !== said) found.push(differs(field, row[field], said))
  }
  return found
}

async function approvalFlaws(trx: Trx, id: string, folded: Map<string, FoldedApproval>): Promise<Difference[]> {
  const stored = await trx.selectFrom('approval').selectAll().where('incidentId', '=', id).orderBy('id').execute()
  const votes = await trx
    .selectFrom('approvalDecision')
    .innerJoin('approval', 'approval.id', 'approvalDecision.approvalId')
    .select(['approvalId', 'decision', 'via'])
    .where('approval.incidentId', '=', id)
    .execute()
  const found: Difference[] = []
  for (const row of stored) {
    const said = folded.get(row.id)
    if (!said) {
      found.push({ subject: row.id, what: 'no row asks for this approval' })
      continue
    }
    for (const field of ['status', 'callId', 'tool', 'actionDigest', 'risk', 'required'] as const) {
      if (row[field] !== said[field]) found.push({ subject: row.id, what: differs(field, row[field], said[field]) })
    }
    const brought = joinDigests(row.dryRun.attachments)
    if (brought !== said.attachments)
      found.push({ subject: row.id, what: differs('attachments', brought, said.attachments) })
    const counted = votes
      .filter(({ approvalId }) => approvalId === row.id)
      .map(({ decision, via }) => `${decision} ${via}`)
    const [has, should] = [counted, said.decisions].map((list) => [...list].sort().join(', ') || 'none')
    if (has !== should) found.push({ subject: row.id, what: differs('decisions', has, should) })
  }
  for (const asked of folded.keys()) {
    if (!stored.some((row) => row.id === asked)) found.push({ subject: asked, what: 'it was asked for and is missing' })
  }
  return found
}

function differs(field: string, stored: unknown, said: unknown): string {
  const shown = (value: unknown) => (value === null ? 'empty' : JSON.stringify(value)).slice(0, 120)
  return `${field} is ${shown(stored)}, the rows say ${shown(said)}`
}

type Row = {
  id: string
  uses: number
  usesLeft: number
  tool: string
  actionDigest: string
  asked: { tool: string; digest: string } | null
  used: number
}

/** Standing grants against the log: each for the action of an approved approval, and used as often as rows say. */
export async function verifyGrants(db: Db): Promise<Difference[]> {
  const { rows } = await sql<Row>`
    select g.id, g.uses, g.uses_left, g.tool, g.action_digest,
      (select jsonb_build_object('tool', e.metadata->>'tool', 'digest', e.metadata->>'actionDigest')
        from incident_event as e join approval as a on a.incident_id = e.incident_id
        where a.id = g.approval_id and e.kind = 'approval_requested' and e.metadata->>'approvalId' = g.approval_id limit 1) as asked,
      coalesce(used.count, 0)::int as used
    from standing_grant as g
    left join (
      select metadata->>'grantId' as id, count(*) from incident_event where kind = 'grant_used' group by 1
    ) as used on used.id = g.id
    order by g.id`.execute(db)
  return rows.flatMap((row) => flawsOf(row).map((what) => ({ subject: row.id, what })))
}

function flawsOf({ uses, usesLeft, tool, actionDigest, asked, used }: Row): string[] {
  const found: string[] = []
  if (uses - usesLeft !== used) found.push(differs('uses left', usesLeft, uses - used))
  if (!asked) return [...found, 'no row asks for the approval that it came from']
  if (asked.tool !== tool) found.push(differs('tool', tool, asked.tool))
  if (asked.digest !== actionDigest) found.push('it is for another action than the approval that it came from')
  return found
}

/** Writes that carry a step key of this incident: each was announced with its action, and none ended otherwise than its row says. */
async function effectFlaws(trx: Trx, id: string, events: readonly IncidentEvent[]): Promise<Difference[]> {
  const effects = await trx
    .selectFrom('effect')
    .select(['key', 'actionDigest', 'status'])
    .where('incidentId', '=', id)
    .orderBy('key')
    .execute()
  const started = new Map<string, IncidentEvent<'tool_started'>>()
  const outcomes = new Map<string, string>()
  for (const event of events) {
    if (event.kind === 'tool_started' && event.stepKey) started.set(event.stepKey, event)
    if (event.kind === 'tool_finished')
      outcomes.set(`${event.attempt} ${event.metadata.callId}`, event.metadata.outcome)
  }
  return effects
    .filter(({ key }) => key.startsWith(`${id}.`))
    .flatMap(({ key, actionDigest, status }) => {
      const what = flawOf({ key, actionDigest, status }, started, outcomes)
      return what ? [{ subject: key, what }] : []
    })
}

function flawOf(
  effect: { key: string; actionDigest: string; status: string },
  started: ReadonlyMap<string, IncidentEvent<'tool_started'>>,
  outcomes: ReadonlyMap<string, string>,
): string | null {
  const { key, actionDigest, status } = effect
  // Steps of a plan have the key of their plan in front.
  const isStep = !started.has(key)
  const event = started.get(key) ?? started.get(key.replace(/:\d+$/, ''))
  if (!event) return 'no row announces this write'
  if (isStep) return null
  if (event.metadata.actionDigest !== actionDigest) return 'it is another action than the row announces'
  const outcome = outcomes.get(`${event.attempt} ${event.metadata.callId}`)
  const isContrary = (outcome === 'done' && status === 'failed') || (outcome === 'failed' && status === 'done')
  return isContrary ? `status is ${status}, the rows say ${outcome}` : null
}
