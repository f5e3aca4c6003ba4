import fc from 'fast-check'
import { sql } from 'kysely'
import type { Db } from '../../db/connect.ts'
import { agentActor, systemActor } from '../../domain/event.ts'
import type { ClosedBy, EscalationCategory, Incident, ResolveOutcome, Severity } from '../../domain/incident.ts'

/**
 * A month of incidents as plain objects, and the same in the database: what counts them there can
 * be held against what counts these.
 */

export type MadeRow = { kind: string; actor: string; attempt: number; metadata: Record<string, unknown>; at: number }
type MadeApproval = { status: string; isOver: boolean; requestedAt: number; decidedAt: number | null }
export type MadeIncident = {
  id: string
  type: string
  severity: Severity
  status: Incident['status']
  outcome: ResolveOutcome | null
  closedBy: ClosedBy | null
  category: EscalationCategory | null
  resourceId: string | null
  createdAt: number
  closedAt: number | null
  attempt: number
  owner: 'reader' | 'other' | null
  kept: boolean
  review: boolean
  groupId: string
  role: 'leader' | 'follower'
  rows: MadeRow[]
  approvals: MadeApproval[]
}
export type MadeSpend = { day: string; type: string; dollars: number }

const ends = [
  ...(['repaired', 'repaired', 'self_resolved', 'no_fault', 'answered'] as const).map(
    (outcome) => ['agent', outcome] as const,
  ),
  ...(['repaired', 'no_fault', 'expected', 'answered'] as const).map((outcome) => ['person', outcome] as const),
  ...(['self_resolved', 'expected', 'unproven', 'changed'] as const).map((outcome) => ['code', outcome] as const),
  ['agent', 'expected'] as const,
  ...(['agent', 'person', 'code'] as const).map((by) => [by, 'escalated'] as const),
  ['person', 'cancelled'] as const,
]
const actors = { agent: agentActor, person: 'user:anna', code: systemActor }

const attempt = fc.record({
  claims: fc.boolean(),
  told: fc.constantFrom(false, false, true),
  reads: fc.nat(3),
  answers: fc.nat(3),
  tokens: fc.integer({ min: 1, max: 5_000 }),
  refused: fc.constantFrom('', '', 'CLAIM_NOT_SHOWN', 'PHANTOM_CLAIM', 'TARGET_UNKNOWN'),
  corrected: fc.constantFrom('', '', 'phantom_claim', 'claim_not_shown', 'loop'),
  verified: fc.constantFrom<string[][]>([], ['held'], ['not_held'], ['not_held', 'held'], ['not_held', 'not_held']),
  marked: fc.constantFrom('', '', 'claim', 'sentence'),
  end: fc.constantFrom(...ends),
})

const life = fc.record({
  type: fc.constantFrom('host_down', 'disk_full', 'cpu_high'),
  severity: fc.constantFrom<Severity[]>('critical', 'warning', 'info'),
  resourceId: fc.option(fc.nat(30).map((host) => `host-${host}`)),
  byPerson: fc.constantFrom(false, false, false, true),
  isTonight: fc.boolean(),
  minutes: fc.nat(600),
  days: fc.integer({ min: 1, max: 28 }),
  attempts: fc.array(attempt, { minLength: 1, maxLength: 3 }),
  open: fc.constantFrom('', '', '', '', '', '', 'open', 'kept', 'investigating', 'awaiting_approval'),
  owner: fc.constantFrom(null, null, 'reader' as const, 'other' as const),
  category: fc.constantFrom<(EscalationCategory | null)[]>(null, 'no_tool', 'mitigated', 'does_not_last'),
  after: fc.boolean(),
  graded: fc.constantFrom<string[][]>([], [], ['right'], ['partly'], ['wrong', 'right']),
  expectedLater: fc.constantFrom(false, false, true),
  asked: fc.constantFrom('', 'approved', 'denied', 'expired', 'withdrawn', 'consumed'),
})
type Life = typeof life extends fc.Arbitrary<infer T> ? T : never

const minute = 60_000

/**
 * Incidents that began in the four weeks before `now`, half of them in the ten hours before the
 * newest two.
 */
export function makeMonth(now: number, count: number): MadeIncident[] {
  return fc.sample(life, { numRuns: count, seed: 20_261_126 }).map((each, index) => live(each, index, now))
}

function live(each: Life, index: number, now: number): MadeIncident {
  const ago = 120 + each.minutes + (each.isTonight ? 0 : each.days * 1_440)
  const createdAt = now - ago * minute
  let at = createdAt
  const rows: MadeRow[] = []
  const write = (number: number, kind: string, actor: string, metadata: Record<string, unknown> = {}) => {
    at += 7_000 + index
    rows.push({ kind, actor, attempt: number, metadata, at })
  }
  const approvals: MadeApproval[] = []
  write(0, each.byPerson ? 'change_requested' : 'alert_received', each.byPerson ? 'user:anna' : 'source:alertmanager')
  const last = each.attempts.length
  const made: MadeIncident = {
    ...{ id: `inc_month_${index}`, type: each.type, severity: each.severity, resourceId: each.resourceId, createdAt },
    ...{ status: 'open', outcome: null, closedBy: null, category: null, closedAt: null, attempt: last, owner: null },
    ...{
      kept: false,
      review: false,
      groupId: `grp_${index % 40}`,
      role: index < 40 ? 'leader' : 'follower',
      rows,
      approvals,
    },
  }
  each.attempts.forEach((own, number) => {
    const isOpen = number + 1 === last && each.open !== ''
    workOn(own, number + 1, write)
    if (isOpen) return
    const [by, outcome] = own.end
    const unshown = own.marked === 'sentence' &&
      outcome !== 'cancelled' && { unshown: [{ text: 'it was full', why: 'no row' }] }
    const claims = own.marked === 'claim' ? [{ kind: 'was', text: 'it was full', quotes: [], shown: false }] : []
    const kind = outcome === 'escalated' || outcome === 'cancelled' ? outcome : 'resolved'
    write(
      number + 1,
      kind,
      actors[by],
      kind === 'resolved'
        ? { resolution: outcome, outcome, claims, ...unshown }
        : { ...unshown, reason: outcome, code: 'AGENT' },
    )
    if (number + 1 === last)
      Object.assign(made, {
        ...{ status: kind, closedBy: by, closedAt: at, outcome: kind === 'resolved' ? outcome : null },
        category: kind === 'escalated' ? each.category : null,
      })
  })
  if (made.closedAt === null) {
    made.kept = each.open === 'kept'
    made.status = made.kept ? 'open' : (each.open as Incident['status'])
    if (made.status === 'awaiting_approval')
      for (const _ of each.asked === '' ? [1, 2] : [1])
        approvals.push({ status: 'pending', isOver: each.after, requestedAt: at, decidedAt: null })
  }
  made.review = made.outcome === 'changed' && each.after
  if (made.status === 'escalated' || made.status === 'open') made.owner = each.owner
  if (each.asked) {
    const requestedAt = createdAt + minute
    approvals.push({
      status: each.asked,
      isOver: true,
      requestedAt,
      decidedAt: requestedAt + (1 + each.minutes) * 1_000,
    })
  }
  // What a person writes once it is over is no hand in its end.
  if (made.closedAt !== null) for (const verdict of each.graded) write(last, 'graded', 'user:anna', { verdict })
  if (each.after && made.closedAt !== null) write(last, 'commented', 'user:anna', { text: 'nice' })
  return made
}

type Work = typeof attempt extends fc.Arbitrary<infer T> ? T : never

function workOn(
  own: Work,
  number: number,
  write: (number: number, kind: string, actor: string, metadata?: Record<string, unknown>) => void,
): void {
  if (own.claims) write(number, 'claimed', systemActor)
  if (own.told) write(number, 'commented', 'user:anna', { text: 'look at the disk' })
  for (let turn = 0; turn < own.answers; turn += 1)
    write(number, 'model_answered', agentActor, {
      usage: { promptTokens: own.tokens, completionTokens: turn },
      cost: { dollars: own.tokens / 1_000, in: 1, out: 1 },
      durationMs: own.tokens,
    })
  for (let read = 0; read < own.reads; read += 1)
    write(number, 'tool_finished', agentActor, {
      callId: `c${read}`,
      effect: 'read',
      result: { ok: true },
      discovered: [],
      targets: [],
    })
  if (own.refused) write(number, 'call_judged', agentActor, { callId: 'r', verdict: 'refuse', code: own.refused })
  if (own.corrected) write(number, 'correction_sent', agentActor, { code: own.corrected, text: 'again' })
  if (own.verified.length > 0) {
    write(number, 'tool_finished', agentActor, {
      callId: 'w',
      effect: 'write',
      result: { ok: true },
      discovered: [],
      targets: [],
    })
    for (const outcome of own.verified)
      write(number, 'verification', agentActor, {
        callId: 'w',
        tool: 'x',
        writeSeq: 1,
        postcondition: '',
        outcome,
        targets: [],
        observed: '',
      })
  }
}

const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString())

/**
 * Stores them as their rows would have left them. The chain of hashes is not made: nothing here
 * reads it.
 */
export async function storeMonth(
  owner: Db,
  month: readonly MadeIncident[],
  operators: { reader: string; other: string },
): Promise<void> {
  const incidents = month.map((each) => ({
    ...{ id: each.id, type: each.type, severity: each.severity, status: each.status, title: each.id },
    ...{
      resource_kind: each.resourceId && 'node',
      resource_id: each.resourceId,
      attempt: each.attempt,
      role: each.role,
    },
    ...{ group_id: each.groupId, queued_at: iso(each.createdAt), created_at: iso(each.createdAt) },
    ...{ closed_at: iso(each.closedAt), closed_by: each.closedBy, outcome: each.outcome, category: each.category },
    ...{
      owner_id: each.owner && operators[each.owner],
      owned_at: each.owner && iso(each.createdAt),
      kept_reason: each.kept ? 'by hand' : null,
      review_wanted_at: each.review ? iso(each.closedAt) : null,
    },
    assigned_to: ['investigating', 'awaiting_approval'].includes(each.status) ? `run ${each.id}` : null,
    ...{ reopened: each.attempt - 1, next_seq: each.rows.length + 1 },
  }))
  const rows = month.flatMap((each) =>
    each.rows.map(({ at, ...row }, index) => ({
      ...row,
      ...{
        incident_id: each.id,
        seq: index + 1,
        action: 'investigated',
        detail: row.kind,
        at: iso(at),
        prev_hash: '',
        hash: '',
      },
    })),
  )
  const approvals = month.flatMap((each) =>
    each.approvals.map(({ status, isOver, requestedAt, decidedAt }, index) => ({
      ...{
        id: `apr_${each.id}_${index}`,
        incident_id: each.id,
        attempt: each.attempt,
        call_id: `a${index}`,
        tool: 'x',
      },
      ...{
        args: {},
        targets: [],
        reason: 'why',
        action_digest: `${each.id}${index}`,
        state_fingerprint: '',
        risk: 'high',
      },
      ...{ reversible: true, required: 1, dry_run: { summary: 'x', details: {} }, status, announced: true },
      ...{
        requested_at: iso(requestedAt),
        decided_at: iso(decidedAt),
        expires_at: isOver ? iso(requestedAt + minute) : '2999-01-01T00:00:00Z',
      },
    })),
  )
  await insertAll(owner, 'incident', incidents)
  await insertAll(owner, 'incident_event', rows)
  await insertAll(owner, 'approval', approvals)
}

export async function insertAll(owner: Db, table: string, rows: readonly Record<string, unknown>[]): Promise<void> {
  const columns = sql.join(Object.keys(rows[0] ?? {}).map((name) => sql.ref(name)))
  await sql`insert into ${sql.table(table)} (${columns})
    select ${columns} from jsonb_populate_recordset(null::${sql.table(table)}, ${JSON.stringify(rows)}::jsonb)`.execute(
    owner,
  )
}
