import { z } from '@hono/zod-openapi'
import { type Closing, closeIncident, firingAgainst, type Person } from '../../db/incidents/close-incident.ts'
import { incidentById, lockIncident, NotAllowedError } from '../../db/incidents/incidents.ts'
import { handOver, releaseOwnership, takeIncident } from '../../db/incidents/owners.ts'
import { investigateAgain } from '../../db/incidents/person-requests.ts'
import { append, IncidentNotFoundError } from '../../db/log/append.ts'
import { rulingDetailsOf } from '../../db/log/calls.ts'
import type { Scope } from '../../db/scope.ts'
import { boundOf, claim, marked, maxClaims } from '../../domain/claim.ts'
import { certainties } from '../../domain/hypothesis.ts'
import {
  escalationCategory,
  type IncidentStatus,
  incident,
  incidentActions,
  runningStatuses,
  sayableOutcome,
} from '../../domain/incident.ts'
import { plainWords } from '../../domain/say.ts'
import { type ApiDeps, requirePerson, toRowKey } from '../deps.ts'
import { writtenText } from '../http/body.ts'
import { endpoint } from '../http/endpoint.ts'
import { moment } from '../http/moments.ts'
import { Problem } from '../http/problem.ts'
import { incidentExample } from './examples.ts'
import { incidentParams, requireIncident } from './incidents.ts'

const tag = 'incidents'
/**
 * Milliseconds for a signal to a run. A run that gets no signal finds the new status of its
 * incident in the database.
 */
const tellWithinMs = 2_000

const resolveEndpoint = endpoint({
  method: 'post',
  path: '/incidents/{id}/resolve',
  permission: 'record',
  tag,
  summary: 'Closes an incident as resolved',
  description:
    'An agent must send claims with evidence, which code checks first. The caller must name an outcome; there is no default. While an alert fires, an agent gets 409 `STILL_FIRING` for `no_fault` and `self_resolved`; a person is reminded once.',
  params: incidentParams,
  body: z.strictObject({
    resolution: z.string().min(3).max(2000),
    outcome: sayableOutcome,
    claims: z.array(claim).max(maxClaims).default([]),
    next_step: z.string().max(1000).optional(),
    certainty: z.enum(certainties).optional(),
  }),
  bodyExample: { resolution: 'The replica was restarted by hand.', outcome: 'repaired', claims: [] },
  answer: incident,
  example: { ...incidentExample, status: 'resolved' },
  problems: [404, 409],
  agent: {
    tool: 'resolve_incident',
    identity: ({ id }, { resolution, outcome, claims, next_step, certainty }) => ({
      id,
      resolution,
      outcome,
      claims,
      ...given({ next_step, certainty }),
    }),
  },
  async run({ params: { id }, body: { resolution, outcome, claims, certainty }, ...by }, deps) {
    const found = by.judged && (await rulingDetailsOf(deps.db, by.judged))
    const shown = found ? marked(claims, found) : { claims: [], unshown: [] }
    const sure = found ? boundOf(found) : given({ certainty })
    return await close(deps, id, { status: 'resolved', resolution, outcome, confidence: null, ...shown, ...sure }, by)
  },
})

const escalateEndpoint = endpoint({
  method: 'post',
  path: '/incidents/{id}/escalate',
  permission: 'record',
  tag,
  summary: 'Escalates an incident to people',
  description:
    '`certainty` is how sure the cause is. An agent needs rows for it: `confirmed` needs a supported hypothesis or a verified write, `likely` a hypothesis that is not refuted.',
  params: incidentParams,
  body: z.strictObject({
    reason: z.string().min(3).max(2000),
    category: escalationCategory.optional(),
    next_step: z.string().min(3).max(1000).optional(),
    certainty: z.enum(certainties).optional(),
  }),
  bodyExample: { reason: 'The disk of node-osl-2 is failing: the node needs new hardware.' },
  answer: incident,
  example: { ...incidentExample, status: 'escalated' },
  problems: [404, 409],
  agent: {
    tool: 'escalate_incident',
    identity: ({ id }, { category, next_step, certainty }) => ({ id, ...given({ category, next_step, certainty }) }),
  },
  async run({ params: { id }, body: { reason, category, next_step: nextStep, certainty }, ...by }, deps) {
    const code = by.judged ? 'AGENT' : 'PERSON'
    const found = by.judged && (await rulingDetailsOf(deps.db, by.judged))
    const { unshown } = found ? marked([], found) : { unshown: [] }
    const sure = found ? boundOf(found) : given({ certainty })
    const words = { reason: plainWords(reason), nextStep: nextStep ?? null, unshown, ...sure }
    return await close(deps, id, { status: 'escalated', code, ...words, ...(category && { category }) }, by)
  },
})

const cancelEndpoint = endpoint({
  method: 'post',
  path: '/incidents/{id}/cancel',
  permission: 'manage_incident',
  tag,
  summary: 'Stops an investigation',
  description:
    'A run first finishes a started write and checks it, then closes the incident; until then the answer shows the run as active. Without a run the incident is closed at once. The cancellation holds until `until` (default one day); later alerts are investigated again.',
  params: incidentParams,
  body: z.strictObject({
    reason: writtenText(3, 2000),
    /** The time from which an alert that still fires is investigated again. */
    until: moment.optional(),
  }),
  bodyExample: { reason: 'A planned failover, nothing to investigate.', until: '2026-11-22T18:00:00Z' },
  answer: incident,
  example: incidentExample,
  problems: [404, 409],
  async run({ scope, params: { id }, body: { reason, until }, actor, judged }, deps) {
    const untilSeconds = until === undefined ? undefined : secondsUntil(until)
    const run = await requestCancel(deps, id, { reason, actor, until })
    if (run && (await deps.runs.tell(run, 'cancelInvestigation', tellWithinMs)) === 'told') {
      return await requireIncident(scope, id)
    }
    const closing = { status: 'cancelled' as const, reason, ...(untilSeconds !== undefined && { untilSeconds }) }
    return await close(deps, id, closing, { scope, actor, judged }, false)
  },
})

const takeEndpoint = endpoint({
  method: 'post',
  path: '/incidents/{id}/take',
  permission: 'manage_incident',
  tag,
  summary: 'Takes an incident: while you own it, nobody is reminded and the agent does not investigate it',
  description:
    'A run ends first: code checks a started write, then the incident is escalated to you. The incident is given back automatically if you take no action on it for `owner.lapse` while an alert fires.',
  params: incidentParams,
  answer: incident,
  example: incidentExample,
  problems: [404, 409],
  async run({ scope, params: { id }, actor, principal }, deps) {
    await takeForPerson(deps, id, requirePerson(principal, actor))
    return await requireIncident(scope, id)
  },
})

const giveBackEndpoint = endpoint({
  method: 'post',
  path: '/incidents/{id}/give-back',
  permission: 'manage_incident',
  tag,
  summary:
    'Gives an incident back: people are reminded of its alert again, and the agent investigates when the alert begins again',
  params: incidentParams,
  answer: incident,
  example: { ...incidentExample, status: 'escalated' },
  problems: [404, 409],
  async run({ scope, params: { id }, actor, principal }, { db }) {
    const given = await db.transaction().execute((trx) => releaseOwnership(trx, id, { actor, name: principal.name }))
    if (!given) throw new Problem(409, 'NOT_TAKEN', `Nobody has taken ${id}, so there is nothing to give back.`)
    return await requireIncident(scope, id)
  },
})

const investigateEndpoint = endpoint({
  method: 'post',
  path: '/incidents/{id}/investigate',
  permission: 'manage_incident',
  tag,
  summary: 'Lets the agent investigate an open incident, or a closed incident again',
  description:
    'The call also works for an open incident that `agent.investigate` leaves to people (`keptReason`). An incident that is queued already gets 409.',
  params: incidentParams,
  answer: incident,
  example: { ...incidentExample, status: 'open', assignedTo: null },
  status: 202,
  problems: [404, 409],
  async run({ scope, params: { id }, actor, principal }, deps) {
    await deps.db.transaction().execute((trx) => investigateAgain(trx, id, { actor, operatorId: principal.operatorId }))
    deps.runs.triggerQueue()
    return await requireIncident(scope, id)
  },
})

/**
 * Returns only the fields that were sent, because two actions are equal only if they have equal
 * fields.
 */
function given<T extends Record<string, unknown>>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>
}

const maxCancelSeconds = 30 * 24 * 3600

function secondsUntil(until: string): number {
  const seconds = Math.ceil((Date.parse(until) - Date.now()) / 1000)
  if (seconds > 0 && seconds <= maxCancelSeconds) return seconds
  throw new Problem(422, 'UNTIL_OUT_OF_RANGE', '`until` must be in the future, at most 30 days.')
}

type By = { scope: Scope; actor: string; judged: Parameters<typeof toRowKey>[0] }

/**
 * Closes an incident once, even if several requests compete. An active run gets a signal; without
 * the signal, the closed incident stops it too.
 */
async function close(deps: ApiDeps, id: string, closing: Closing, { scope, actor, judged }: By, tell = true) {
  const before = await requireIncident(scope, id)
  const closed = await deps.db.transaction().execute(async (trx) => {
    const firing = judged && closing.status === 'resolved' ? await firingAgainst(trx, id, closing.outcome) : null
    if (firing && closing.status === 'resolved') {
      throw new Problem(409, 'STILL_FIRING', `${id} cannot end as ${closing.outcome}: ${firing}.`)
    }
    return await closeIncident(trx, id, judged?.attempt ?? null, closing, {
      actor,
      stepKey: toRowKey(judged, closing.status),
      turn: judged?.turn ?? null,
    })
  })
  if (closed && tell && !judged && runningStatuses.includes(before.status)) {
    await deps.runs.tell({ incidentId: id, attempt: before.attempt }, 'cancelInvestigation', tellWithinMs)
  }
  return await requireIncident(scope, id)
}

/**
 * Stores the request to cancel as a row, which the run reads when it ends. Null if the incident has
 * no run.
 */
async function requestCancel(
  deps: ApiDeps,
  id: string,
  { reason, actor, until }: { reason: string; actor: string; until: string | undefined },
) {
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
      detail: `Cancellation requested: ${reason}`,
      metadata: { text: reason, confidence: null, action: 'cancel_requested', ...(until && { until }) },
    })
    const current = await incidentById(trx, id)
    return current && { incidentId: id, attempt: current.attempt }
  })
}

/**
 * Assigns an incident to a person, from API or Slack. A run is first asked to end, so that it
 * verifies a running write and hands over. Without a run, the person has the incident at once.
 * Returns whether the person has the incident now.
 */
export async function takeForPerson(deps: Pick<ApiDeps, 'db' | 'runs'>, id: string, by: Person): Promise<boolean> {
  const taken = await deps.db.transaction().execute((trx) => takeIncident(trx, id, by))
  return await finishTake(deps, id, by, taken)
}

/** Finishes the assignment of an incident after the request is stored. */
export async function finishTake(
  { db, runs }: Pick<ApiDeps, 'db' | 'runs'>,
  id: string,
  by: Person,
  taken: Awaited<ReturnType<typeof takeIncident>>,
): Promise<boolean> {
  if (taken.taken) return true
  if ((await runs.tell(taken.run, 'cancelInvestigation', tellWithinMs)) === 'told') return false
  await db.transaction().execute((trx) => handOver(trx, id, null, by))
  return true
}

export const incidentEndingRoutes = [
  resolveEndpoint,
  escalateEndpoint,
  cancelEndpoint,
  takeEndpoint,
  giveBackEndpoint,
  investigateEndpoint,
]
