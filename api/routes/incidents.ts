import { z } from '@hono/zod-openapi'
import { incidentById, listIncidents } from '../../db/incidents/incidents.ts'
import { openByHand } from '../../db/incidents/person-requests.ts'
import { queuePlaceOf } from '../../db/incidents/queue-place.ts'
import { waitOf } from '../../db/incidents/waits.ts'
import { verifyChain } from '../../db/log/chain.ts'
import { lastEventsOf } from '../../db/log/events.ts'
import { thinkingOf } from '../../db/models/slots.ts'
import { costOfIncident } from '../../db/models/spend.ts'
import { deliveriesOf } from '../../db/outbox/deliveries.ts'
import { findTombstone } from '../../db/retention/tombstones.ts'
import type { Scope } from '../../db/scope.ts'
import { verifyIncident } from '../../db/verify/incident.ts'
import { verifyChangesOf } from '../../db/verify/row-changes.ts'
import { verifiedIncident } from '../../domain/chain.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { addFindings } from '../../domain/findings.ts'
import {
  type Incident,
  incident,
  incidentRole,
  incidentStatus,
  incidentType,
  type QueuePlace,
  severity,
} from '../../domain/incident.ts'
import { detailedIncident, listedIncident } from '../../domain/incident-detail.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import { questionType } from '../../domain/question.ts'
import { resourceRef } from '../../domain/registry.ts'
import { describeTombstone } from '../../domain/retention.ts'
import { trustLostType } from '../../domain/trust.ts'
import type { ApiDeps } from '../deps.ts'
import { wordsOf, writtenText } from '../http/body.ts'
import { page, pageOf, pageQuery } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { moment } from '../http/moments.ts'
import { notFound, Problem } from '../http/problem.ts'
import { eventExample, incidentExample } from './examples.ts'

export const incidentParams = z.object({ id: z.string().max(100) })
const tag = 'incidents'
/** Milliseconds for Temporal. The page requests this every few seconds and must not wait. */
const askWithinMs = 500

const lastExample = { seq: 7, kind: 'tool_finished' as const, detail: eventExample.detail, at: eventExample.at }

/** Shortens a row for a list. */
function briefly(event: IncidentEvent | undefined) {
  if (!event) return null
  const { seq, kind, detail, at } = event
  return { seq, kind, detail: detail.length > 300 ? `${detail.slice(0, 299)}…` : detail, at }
}

/** Reads the incident, or throws a 404 that names its id. */
export async function requireIncident(scope: Scope, id: string): Promise<Incident> {
  const found = await incidentById(scope.db, id)
  if (!found) throw await goneOrMissing(scope.db, id)
  return found
}

/** Explains why an incident does not exist: retention removed it, or it never existed. */
export async function goneOrMissing(db: ApiDeps['db'], id: string): Promise<Problem> {
  const tombstone = await findTombstone(db, id)
  if (!tombstone) return notFound(`incident ${id}`)
  return new Problem(404, 'NOT_FOUND', `Incident ${id} was ${describeTombstone(tombstone)}.`)
}

/**
 * Finds the incident's place in the queue. Only the queue's Schedule at Temporal shows whether the
 * agent is off.
 */
async function placeOf(
  scope: Scope,
  { runs, environment }: ApiDeps,
  { id, status }: Incident,
): Promise<QueuePlace | null> {
  if (status !== 'open') return null
  const place = await queuePlaceOf(scope, id, environment)
  if (!place) return null
  const state = await (runs.queue?.(askWithinMs) ?? null)
  if (!state?.schedule?.paused) return place
  return {
    ...place,
    why: 'off',
    text: 'Queued, but the agent is off: no incident is investigated until the agent is on again.',
  }
}

const listIncidentsEndpoint = endpoint({
  method: 'get',
  path: '/incidents',
  permission: 'read',
  tag,
  summary: 'Incidents, newest first',
  description:
    '`q` is searched in titles and resources; one or two letters match only the beginning of a word. The id of an incident or approval finds that incident. `owner` is `me`, `none` or the name of a person; `since` and `until` limit the opening time.',
  query: z.object({
    status: wordsOf(incidentStatus),
    type: incidentType.optional(),
    severity: wordsOf(severity),
    role: wordsOf(incidentRole),
    group: z.string().max(100).optional(),
    owner: z.string().max(100).optional(),
    since: moment.optional(),
    until: moment.optional(),
    q: z.string().max(200).optional(),
    idPrefix: z.string().max(100).optional(),
    ...pageQuery,
  }),
  answer: pageOf(listedIncident),
  example: { items: [{ ...incidentExample, lastEvent: lastExample }], nextCursor: null },
  async run({ scope, query: { limit, cursor, ...filter } }) {
    const rows = await listIncidents(scope, filter, { before: cursor ?? null, limit: limit + 1 })
    const { items, nextCursor } = page(rows, limit, (last) => last.id)
    const last = await lastEventsOf(
      scope,
      items.map(({ id }) => id),
    )
    return { items: items.map((item) => ({ ...item, lastEvent: briefly(last.get(item.id)) })), nextCursor }
  },
})

const getIncidentEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}',
  permission: 'read',
  tag,
  summary: 'An incident and its current state',
  description:
    '`model`: whether the run of the incident asks the model now or waits for the model, since when, and how many runs are ahead. `queue`: for a queued incident, how many are ahead and why it waits. `waits`: the system that does not answer a step of its run, and since when.',
  params: incidentParams,
  answer: detailedIncident,
  example: {
    ...incidentExample,
    model: { state: 'waiting', since: '2026-11-21T01:45:44.530000Z', ahead: 2 },
    queue: null,
    cost: 0.04,
    waits: null,
  },
  problems: [404],
  async run({ scope, params }, deps) {
    const found = await requireIncident(scope, params.id)
    const [model, queue, waits, cost] = await Promise.all([
      thinkingOf(scope, params.id),
      placeOf(scope, deps, found),
      waitOf(deps.db, params.id),
      costOfIncident(scope, params.id),
    ])
    return { ...found, model, queue, waits, cost }
  },
})

const openIncidentEndpoint = endpoint({
  method: 'post',
  path: '/incidents',
  permission: 'manage_incident',
  tag,
  summary: 'Opens an incident by hand',
  description: 'The person who opens an incident cannot approve its critical actions.',
  body: z.strictObject({
    type: incidentType
      .refine(
        (type) => type !== manualChangeType,
        'cannot be opened by hand, because a direct action of a person opens an incident of this type',
      )
      .refine(
        (type) => type !== trustLostType,
        'cannot be opened by hand, because a repair that was wrong or did not last opens an incident of this type',
      ),
    severity,
    title: writtenText(3, 300),
    resource: resourceRef.nullable().default(null),
  }),
  bodyExample: { type: 'replication_lag', severity: 'warning', title: 'The replica feels slow', resource: null },
  answer: incident,
  example: incidentExample,
  status: 201,
  async run({ body, actor, principal }, deps) {
    const by = { actor, operatorId: principal.operatorId }
    const opened = await deps.db
      .transaction()
      .execute((trx) => openByHand(trx, body, `Opened by hand: ${body.title}`, by))
    deps.runs.triggerQueue()
    return opened
  },
})

const askAgentEndpoint = endpoint({
  method: 'post',
  path: '/agent',
  permission: 'manage_incident',
  tag,
  summary: 'Asks the agent a question',
  description:
    'Opens an incident of type `question`; the answer closes it. A question about a resource may name the resource; `node` is short for a resource of the kind node.',
  body: z.strictObject({
    question: writtenText(3, 2_000),
    resource: resourceRef.nullable().default(null),
    node: z.string().min(1).max(200).optional(),
  }),
  bodyExample: { question: 'Which host runs vm-osl-3 now?', resource: null },
  answer: incident,
  example: { ...incidentExample, type: 'question', status: 'open', severity: 'info', severitySource: 'person' },
  problems: [409],
  status: 201,
  async run({ body: { question, node, ...named }, actor, principal }, deps) {
    if (node !== undefined && named.resource !== null)
      throw new Problem(
        409,
        'AMBIGUOUS',
        'The question names a resource by `node` and by `resource`: send only one of them.',
      )
    const resource = node === undefined ? named.resource : { kind: 'node' as const, id: node }
    const by = { actor, operatorId: principal.operatorId }
    const opened = await deps.db
      .transaction()
      .execute((trx) =>
        openByHand(trx, { type: questionType, severity: 'info', title: question, resource }, question, by),
      )
    deps.runs.triggerQueue()
    return opened
  },
})

const verificationStateEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/verify',
  permission: 'read',
  tag,
  summary: 'Recomputes the hash chain of the log, and compares the stored data of the incident with it',
  description:
    'Compares the row of the incident, its alerts, approvals, votes, effects, decision tokens and standing grants. `head` is an earlier hash, for example from a webhook, which must still be in the chain.',
  params: incidentParams,
  query: z.object({ head: z.string().max(128).optional() }),
  answer: verifiedIncident,
  example: {
    ...{ ok: true, events: 7, headHash: '60303ae2…', problem: null },
    ...{ differences: [], checked: { incidents: 1, votes: 1 }, untold: {} },
  },
  problems: [404],
  async run({ params: { id }, query: { head } }, { db }) {
    const report = await verifyChain(db, id, head)
    if (!report) throw await goneOrMissing(db, id)
    const { events: _, ...found } = await verifyIncident(db, id)
    addFindings(found, await verifyChangesOf(db, id))
    return { ...report, ...found, ok: report.ok && found.differences.length === 0 }
  },
})

const listDeliveriesEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/deliveries',
  permission: 'read',
  tag,
  summary: 'Every attempt to deliver a message about an incident',
  params: incidentParams,
  answer: pageOf(
    z.object({
      id: z.number().int(),
      messageId: z.string(),
      destination: z.string(),
      attempt: z.number().int(),
      status: z.enum(['pending', 'sending', 'sent', 'failed', 'dropped']),
      responseStatus: z.number().int().nullable(),
      response: z.string().nullable(),
      nextAt: z.string(),
      finishedAt: z.string().nullable(),
      /**
       * The latest time at which a delayed page is sent. The other fields show why it was sent, or
       * was not needed.
       */
      holdUntil: z.string().nullable(),
      releasedWhy: z.string().nullable(),
    }),
  ),
  example: {
    items: [
      {
        id: 1,
        messageId: 'msg_01kam3x0q2v8d5t7w9y1b3c5e7',
        destination: 'webhook.escalated',
        attempt: 1,
        status: 'sent',
        responseStatus: 200,
        response: 'ok',
        nextAt: '2026-11-21T01:50:00.000000Z',
        finishedAt: '2026-11-21T01:50:00.200000Z',
        holdUntil: null,
        releasedWhy: null,
      },
    ],
    nextCursor: null,
  },
  problems: [404],
  async run({ scope, params: { id } }) {
    await requireIncident(scope, id)
    return { items: await deliveriesOf(scope, id), nextCursor: null }
  },
})

export const incidentRoutes = [
  listIncidentsEndpoint,
  getIncidentEndpoint,
  openIncidentEndpoint,
  askAgentEndpoint,
  verificationStateEndpoint,
  listDeliveriesEndpoint,
]
