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

// Maximum milliseconds of a "not now": a day, and the hour that a clock change may add.
const maxAgainMs = 25 * 3_600_000

/** Refuses an end of a "not now" that is not in a denial, not in the future, or after a day. */
function refuseBadMoment(decided: Decision, at: string, now: string): void {
  const inMs = Date.parse(at) - Date.parse(now)
  const message =
    decided !== 'deny'
      ? 'is only allowed in a denial'
      : inMs <= 0 || inMs > maxAgainMs
        ? 'must be a time within the next 24 hours'
        : null
  if (message === null) return
  const errors = [{ in: 'body', field: 'askAgainAt', message }]
  throw new Problem(422, 'INVALID', `askAgainAt: ${message}.`, { fields: { errors } })
}

/** Milliseconds to notify a run. A run that is not notified reads the decision within a minute. */
const wakeWithinMs = 2_000

const listApprovalsEndpoint = endpoint({
  method: 'get',
  path: '/approvals',
  permission: 'read',
  tag,
  summary: 'Approvals that the agent requested, newest first',
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
  summary: 'One approval: the exact action, the reason, and the dry run',
  description:
    '`evidence` are rows of the log: `#e-<seq>` on the page of the incident. `grantRefused` is the reason why the approval cannot become a standing grant, or null. `replacedBy` is the newer approval of the same call. `run` is what the approved call has done so far, step by step. `together` are the other approvals of the same card: calls of the same model answer, each with its own token and decision. `next` are later calls of the same answer for which no approval is requested yet. `schema` is the schema of the arguments.',
  params,
  answer: approvalDetail,
  example: {
    ...approvalExample,
    evidence: [{ seq: 7, what: 'look', tool: 'get_host', about: [], found: '{"id": "host-osl-2", "state": "dead"}' }],
    grantRefused: 'execute_migration cannot get a standing grant: each call needs approval.',
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
    'The token is valid for the signed-in person, this approval and exactly this decision, with its reason, category, arguments and grant. The token works once and is stored as a hash. The token becomes invalid if another person sends it, or if it is sent for another approval or decision. With `purpose` `temporal` the token is for a Signal or Update at Temporal and contains only the verdict. Only this response contains the plain token, so no response is stored under an `Idempotency-Key`.',
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
    'Only the person for whom the token was minted can send it, and only with the decision for which it was minted. The same decision again gets the same response; a contrary decision gets 409. The agent reads the reason of a denial. A denial may have a `category`; with `askAgainAt` (within a day) the incident is investigated again at that time. A denial without a reason is recorded as "no reason given". An approval with `args` replaces this approval: the changed call gets a policy decision, a dry run and a new approval with your vote. `schema` of the approval is the schema of `args`; a 422 names each wrong argument. With `grant` the same action may run again that many times without approval, if the tool allows it.',
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
    // Checks the token first: a foreign token is refused as foreign, whatever else was sent.
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
    'The caller must be a person who may decide the approval. The extension can be repeated until the deadline is four hours after the request (then 409). The run keeps waiting. The log and the audit each get a row.',
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
  if (edits)
    throw new Problem(422, 'NOT_GRANTABLE', 'Changed arguments need a new approval. Give the grant with that approval.')
}

/**
 * Refuses changed arguments that the judge would refuse, before anything is stored, so that the
 * person sees the reason.
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
      'A person requested exactly this call. Deny this approval, and request the changed call.',
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
