import { z } from '@hono/zod-openapi'
import { append, IncidentNotFoundError } from '../db/append.ts'
import { type Closing, closeIncident, incidentById, lockIncident, NotAllowedError } from '../db/incidents.ts'
import { foundByRuling } from '../db/judged.ts'
import { investigateAgain } from '../db/requests.ts'
import { claim, marked, mostClaims } from '../domain/claim.ts'
import { type IncidentStatus, incident, incidentActions, resolveOutcome, runningStatuses } from '../domain/incident.ts'
import type { ApiDeps } from './deps.ts'
import { endpoint, type Router } from './endpoint.ts'
import { incidentExample } from './examples.ts'
import { incidentParams, requireIncident } from './incidents.ts'
import { rowKey } from './row-key.ts'

const tag = 'incidents'
/** How long a run is tried to be told that its incident is closed: it is fenced by the status whatever happens. */
const tellWithinMs = 2_000

export function incidentEndingRoutes(router: Router, deps: ApiDeps): void {
  const { db } = deps

  endpoint(router, deps, {
    method: 'post',
    path: '/incidents/{id}/resolve',
    permission: 'record',
    tag,
    summary: 'Closes an incident as resolved',
    description: 'An agent must bring claims with evidence; the gates stand before this door.',
    params: incidentParams,
    body: z.strictObject({
      resolution: z.string().min(3).max(2000),
      outcome: resolveOutcome.default('repaired'),
      claims: z.array(claim).max(mostClaims).default([]),
    }),
    bodyExample: { resolution: 'The replica was restarted by hand.', outcome: 'repaired', claims: [] },
    answer: incident,
    example: { ...incidentExample, status: 'resolved' },
    problems: [404, 409],
    agent: {
      tool: 'resolve_incident',
      identity: ({ id }, { resolution, outcome, claims }) => ({ id, resolution, outcome, claims }),
    },
    async run({ params: { id }, body: { resolution, outcome, claims }, ...by }) {
      const shown = by.judged ? marked(claims, await foundByRuling(db, by.judged)) : { claims: [], unshown: [] }
      return await close(deps, id, { status: 'resolved', resolution, outcome, confidence: null, ...shown }, by)
    },
  })

  endpoint(router, deps, {
    method: 'post',
    path: '/incidents/{id}/escalate',
    permission: 'record',
    tag,
    summary: 'Hands an incident to people',
    params: incidentParams,
    body: z.strictObject({ reason: z.string().min(3).max(2000) }),
    bodyExample: { reason: 'The disk of node-osl-2 is failing: it needs new hardware.' },
    answer: incident,
    example: { ...incidentExample, status: 'escalated' },
    problems: [404, 409],
    agent: { tool: 'escalate_incident', identity: ({ id }) => ({ id }) },
    async run({ params: { id }, body: { reason }, ...by }) {
      const { unshown } = by.judged ? marked([], await foundByRuling(db, by.judged)) : { unshown: [] }
      return await close(deps, id, { status: 'escalated', reason, code: by.judged ? 'AGENT' : 'PERSON', unshown }, by)
    },
  })

  endpoint(router, deps, {
    method: 'post',
    path: '/incidents/{id}/cancel',
    permission: 'manage_incident',
    tag,
    summary: 'Stops an investigation',
    description:
      'A run lets a started effect finish, looks once more, and closes the incident: until then it is still running in the answer. Without a run it is closed at once.',
    params: incidentParams,
    body: z.strictObject({ reason: z.string().trim().min(3).max(2000) }),
    bodyExample: { reason: 'A planned failover, nothing to investigate.' },
    answer: incident,
    example: incidentExample,
    problems: [404, 409],
    async run({ params: { id }, body: { reason }, actor, judged }) {
      const run = await requestCancel(deps, id, reason, actor)
      if (run && (await deps.runs.tell(run, 'cancelInvestigation', tellWithinMs)) === 'told') {
        return await requireIncident(deps, id)
      }
      return await close(deps, id, { status: 'cancelled', reason }, { actor, judged }, false)
    },
  })

  endpoint(router, deps, {
    method: 'post',
    path: '/incidents/{id}/investigate',
    permission: 'manage_incident',
    tag,
    summary: 'Puts an incident before the agent, again if it was closed',
    params: incidentParams,
    answer: incident,
    example: { ...incidentExample, status: 'open', assignedTo: null },
    status: 202,
    problems: [404, 409],
    async run({ params: { id }, actor, principal }) {
      await db.transaction().execute((trx) => investigateAgain(trx, id, { actor, operatorId: principal.operatorId }))
      deps.runs.triggerQueue()
      return await requireIncident(deps, id)
    },
  })
}

type By = { actor: string; judged: Parameters<typeof rowKey>[0] }

/** Closes it once, whoever else is at it. A run that a person closes over is told; its status fences it anyway. */
async function close(deps: ApiDeps, id: string, closing: Closing, { actor, judged }: By, tell = true) {
  const before = await requireIncident(deps, id)
  const closed = await deps.db.transaction().execute((trx) =>
    closeIncident(trx, id, judged?.attempt ?? null, closing, {
      actor,
      stepKey: rowKey(judged, closing.status),
      turn: judged?.turn ?? null,
    }),
  )
  if (closed && tell && !judged && runningStatuses.includes(before.status)) {
    await deps.runs.tell({ incidentId: id, attempt: before.attempt }, 'cancelInvestigation', tellWithinMs)
  }
  return await requireIncident(deps, id)
}

/** The wish as a row, which the run reads when it ends; null where no run works on the incident. */
async function requestCancel(deps: ApiDeps, id: string, reason: string, actor: string) {
  return await deps.db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, id)
    if (!row) throw new IncidentNotFoundError(id)
    if (!(incidentActions.cancel as IncidentStatus[]).includes(row.status)) {
      throw new NotAllowedError(id, 'cancel', row.status)
    }
    if (!runningStatuses.includes(row.status)) return null
    await append(trx, id, null, {
      kind: 'commented',
      actor,
      detail: `Cancellation asked: ${reason}`,
      metadata: { text: reason, confidence: null, action: 'cancel_requested' },
    })
    const current = await incidentById(trx, id)
    return current && { incidentId: id, attempt: current.attempt }
  })
}
