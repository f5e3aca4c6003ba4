import { z } from '@hono/zod-openapi'
import { decide, isTokenFor } from '../../db/approvals/decide.ts'
import { extendApproval } from '../../db/approvals/extend.ts'
import { listApprovals } from '../../db/approvals/find.ts'
import { mintDecisionToken } from '../../db/approvals/tokens.ts'
import { databaseTime } from '../../db/clock.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { type Scope, systemScope } from '../../db/scope.ts'
import {
  type Approval,
  approval,
  approvalDetail,
  approvalStatus,
  type Decision,
  type DecisionOutcome,
  decisionBody,
  decisionToken,
  mintingBody,
} from '../../domain/approval.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import { listFaults } from '../../domain/schema-faults.ts'
import { tools } from '../../tools/registry.ts'
import { type ApiDeps, requirePerson } from '../deps.ts'
import { page, pageOf, pageQuery } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'
import { limitDecisions } from '../http/rate-limits.ts'
import { askForDecision, readDetail, refusalToGrant } from './approval-detail.ts'
import { approvalExample, approvalId, incidentId } from './examples.ts'
import { dryRunJudge } from './judge.ts'

const params = z.object({ id: z.string().max(100) })
const tag = 'approvals'

// A day, and the hour that a change of the clock may add.
const maxAgainMs = 25 * 3_600_000

/** "Not now" is a denial with an end: a time to come, within a day. */
function refuseBadMoment(decided: Decision, at: string, now: string): void {
  const inMs = Date.parse(at) - Date.parse(now)
  const message =
    decided !== 'deny'
      ? 'belongs to a denial'
      : inMs <= 0 || inMs > maxAgainMs
        ? 'takes a time to come, within a day'
        : null
  if (message === null) return
  const errors = [{ in: 'body', field: 'askAgainAt', message }]
  throw new Problem(422, 'INVALID', `askAgainAt: ${message}.`, { fields: { errors } })
}

/** The row is what counts: a run that is not woken reads it within a minute. */
const wakeWithinMs = 2_000

const listApprovalsEndpoint = endpoint({
  method: 'get',
  path: '/approvals',
  permission: 'read',
  tag,
  summary: 'What the agent asks of people, newest first',
  query: z.object({
    status: approvalStatus.optional(),
    incident: z.string().max(100).optional(),
    idPrefix: z.string().max(100).optional(),
    ...pageQuery,
  }),
  answer: pageOf(approval),
  example: { items: [approvalExample], nextCursor: null },
  async run({ scope, query: { status, incident, idPrefix, limit, cursor } }) {
    const filter = { status, incidentId: incident, idPrefix }
    const rows = await listApprovals(scope, filter, { before: cursor ?? null, limit: limit + 1 })
    return page(rows, limit, (last) => last.id)
  },
})

const getApprovalEndpoint = endpoint({
  method: 'get',
  path: '/approvals/{id}',
  permission: 'read',
  tag,
  summary: 'What exactly is asked, why, and what would happen',
  description:
    '`evidence` are rows of the log: `#e-<seq>` on the page of the incident. `grantRefused` says why approving it cannot be made a standing grant; null when it can. `replacedBy` is the approval of the same call that was asked again. `run` is what the approved call has done so far, step by step. `together` are the other approvals of its card: calls of the same answer that were asked about with it, each with its own token and decision. `next` are the calls that the same answer proposes after this one and nobody is asked about yet. `schema` is what the arguments may be.',
  params,
  answer: approvalDetail,
  example: {
    ...approvalExample,
    evidence: [{ seq: 7, what: 'look', tool: 'get_host', about: [], found: '{"id": "host-osl-2", "state": "dead"}' }],
    grantRefused: 'execute_migration is not one of the tools that may be granted: it is asked about every time.',
    replaces: null,
    replacedBy: null,
  },
  problems: [404],
  async run({ scope, params: { id } }, deps) {
    return await readDetail(deps, scope, await requireApproval(scope, id))
  },
})

const mintTokenEndpoint = endpoint({
  method: 'post',
  path: '/approvals/{id}/token',
  permission: 'decide',
  tag,
  summary: 'Mints a decision token',
  description:
    'For the signed-in person, this one approval and the decision as it stands here, with its reason, category, arguments and grant; good once, stored as a hash. Shown by another person, or for another approval or decision, it is spent. With `purpose` `temporal` it is for a Signal or Update at Temporal and carries the verdict alone. The plain token is in this answer and nowhere else, so no answer is stored under an `Idempotency-Key`.',
  params,
  body: mintingBody,
  bodyExample: { decision: 'approve', reason: 'the host is dead' },
  answer: decisionToken,
  example: {
    token: '…43 characters…',
    approvalId,
    incidentId,
    decision: 'approve',
    purpose: 'decision',
    expiresAt: '2026-11-21T01:56:02.000000Z',
  },
  status: 201,
  problems: [404, 410],
  secret: true,
  async run({ params: { id }, body: { purpose, ...said }, principal, c }, { db }) {
    await limitDecisions(db, c, principal, id)
    const minted = await mintDecisionToken(db, principal, id, said, purpose)
    if (minted.outcome === 'minted') {
      const { outcome: _, ...answer } = minted
      return answer
    }
    const status = { not_found: 404, forbidden: 403, gone: 410 }[minted.outcome]
    throw new Problem(status, minted.outcome.toUpperCase(), minted.message)
  },
})

const decideEndpoint = endpoint({
  method: 'post',
  path: '/approvals/{id}/decision',
  permission: 'decide',
  tag,
  summary: 'Approves or denies',
  description:
    'Who decides is whom the token was minted for, and nobody else can send it; what is decided is what it was minted for, word for word. The same decision again is answered the same; a contrary one is a 409. The agent reads why something was denied: a denial may have a `category`, with `askAgainAt` (within a day) it ends then and the incident is investigated afresh, and without words it is recorded as "no reason given". An approval with `args` supersedes this one (`schema` of the approval says what they may be; a 422 names each that does not fit): the changed call is judged and dry-run like any other and asked again with your vote. With `grant` the very same action may run again so many times without asking, for tools that allow it.',
  params,
  body: decisionBody.extend({ token: z.string().min(1).max(200) }),
  bodyExample: { decision: 'approve', token: '…43 characters…', reason: null },
  answer: z.object({
    outcome: z.enum(['recorded', 'repeated']),
    status: approvalStatus,
    approvalId: z.string(),
    incidentId: z.string(),
  }),
  example: { outcome: 'recorded', status: 'approved', approvalId, incidentId },
  problems: [404, 409, 410],
  async run({ scope, params: { id }, body, principal, actor, c }, deps) {
    await limitDecisions(deps.db, c, principal, id)
    const caller = requirePerson(principal, actor).operatorId
    const via = c.get('browser') ? 'page' : 'api'
    const asked = body.decision === 'approve' ? await askForDecision(deps, id) : undefined
    const request = { ...body, approvalId: id, incidentId: null, caller, via, ...(asked && { asked }) }
    if (body.askAgainAt) refuseBadMoment(body.decision, body.askAgainAt, await databaseTime(deps.db))
    // A foreign token is refused as that, whatever stands beside it.
    if ((body.args || body.grant) && (await isTokenFor(deps.db, request))) {
      if (body.args) await refuseBadEdit(deps, id, body.decision, { args: body.args, who: caller })
      if (body.grant) await refuseBadGrant(scope, id, body.decision, body.args !== null)
    }
    const decided = await decide(deps.db, request)
    if (!('approvalId' in decided)) {
      deps.metrics.refusedDecisions.inc({ outcome: decided.outcome })
      throw refusal(id, decided)
    }
    if (decided.outcome === 'recorded') {
      await wake(deps, decided.incidentId)
    }
    const { outcome, status, approvalId, incidentId } = decided
    return { outcome, status, approvalId, incidentId }
  },
})

const extendEndpoint = endpoint({
  method: 'post',
  path: '/approvals/{id}/extend',
  permission: 'decide',
  tag,
  summary: 'Gives a pending approval 15 more minutes',
  description:
    'For a person who may decide it; as often as needed, but never beyond four hours after it was asked (409). The run that waits for it waits on. Leaves a row in the log and one in the audit.',
  params,
  answer: z.object({ approvalId: z.string(), expiresAt: z.string() }),
  example: { approvalId, expiresAt: '2026-11-21T03:01:02.000000Z' },
  problems: [404, 409, 410],
  async run({ params: { id }, principal, actor, c }, { db }) {
    await limitDecisions(db, c, principal, id)
    const extended = await extendApproval(db, requirePerson(principal, actor), id)
    if (extended.outcome === 'extended') return { approvalId: id, expiresAt: extended.expiresAt }
    if (extended.outcome === 'not_found') throw notFound(`approval ${id}`)
    const status = { forbidden: 403, conflict: 409, gone: 410 }[extended.outcome]
    throw new Problem(status, extended.outcome.toUpperCase(), extended.message)
  },
})

async function requireApproval(scope: Scope, id: string): Promise<Approval> {
  const [found] = await listApprovals(scope, { id }, { before: null, limit: 1 })
  if (!found) throw notFound(`approval ${id}`)
  return found
}

async function refuseBadGrant(scope: Scope, id: string, decided: 'approve' | 'deny', edits: boolean): Promise<void> {
  const refused = refusalToGrant(await requireApproval(scope, id))
  if (refused) throw new Problem(422, 'NOT_GRANTABLE', refused)
  if (decided === 'deny') throw new Problem(422, 'NOT_GRANTABLE', 'A denial cannot carry a grant.')
  if (edits) throw new Problem(422, 'NOT_GRANTABLE', 'Changed arguments are asked about again. Give the grant then.')
}

/**
 * An edit that the judge would refuse is refused before anything changes: the person reads why, not
 * the agent.
 */
async function refuseBadEdit(
  deps: ApiDeps,
  id: string,
  decided: 'approve' | 'deny',
  { args, who }: { args: Record<string, unknown>; who: string },
): Promise<void> {
  if (decided === 'deny') throw new Problem(422, 'INVALID', 'A denial cannot change arguments.')
  const found = await requireApproval(systemScope(deps.db), id)
  const incident = await incidentById(deps.db, found.incidentId)
  if (!incident) throw notFound(`approval ${id}`)
  if (found.status !== 'pending') return
  if (incident.type === manualChangeType)
    throw new Problem(
      422,
      'EDIT_REFUSED',
      'A person asked for exactly this call. Deny it, and ask for the changed one.',
    )
  const ruling = await dryRunJudge(deps, incident, { tool: found.tool, args, callId: found.callId }, who)
  if (ruling.verdict === 'refuse') {
    const text = `The changed call would be refused (${ruling.code}): ${ruling.reason}`
    const error = tools.get(found.tool)?.input.safeParse(args).error
    const faults = error ? listFaults(error) : []
    const errors = faults.map(({ field, message }) => ({ in: 'body', field: `args.${field}`, message }))
    throw new Problem(422, 'EDIT_REFUSED', text, { fields: { errors } })
  }
}

/** Signals the run that a decision was made. */
export async function wake(deps: ApiDeps, incidentId: string): Promise<void> {
  const incident = await incidentById(deps.db, incidentId)
  if (incident) await deps.runs.tell({ incidentId, attempt: incident.attempt }, 'decided', wakeWithinMs)
}

function refusal(id: string, decided: Exclude<DecisionOutcome, { outcome: 'recorded' | 'repeated' }>): Problem {
  switch (decided.outcome) {
    case 'not_found':
      return notFound(`approval ${id}`)
    case 'forbidden':
      return new Problem(403, decided.code, decided.message)
    case 'conflict':
      return new Problem(409, 'CONFLICT', decided.message, { fields: { approvalStatus: decided.status } })
    case 'gone':
      return new Problem(410, 'GONE', decided.message, { fields: { approvalStatus: decided.status } })
  }
}

export const approvalRoutes = [
  listApprovalsEndpoint,
  getApprovalEndpoint,
  mintTokenEndpoint,
  decideEndpoint,
  extendEndpoint,
]
