import { z } from '@hono/zod-openapi'
import type { Trx } from '../../db/connect.ts'
import { lockIncident } from '../../db/incidents/incidents.ts'
import { type MessageOutcome, tellAgent } from '../../db/incidents/messages.ts'
import { append } from '../../db/log/append.ts'
import { bodyOfIncident } from '../../db/log/bodies.ts'
import { eventsOf } from '../../db/log/events.ts'
import { hypothesisFields } from '../../domain/claim.ts'
import { eventAction, eventKind, recordableAction } from '../../domain/event.ts'
import { withSpaces } from '../../domain/format.ts'
import { findHypothesis, foldHypotheses, type StoredHypothesis } from '../../domain/hypothesis.ts'
import { maxMessageCharacters, maxUnread } from '../../domain/message.ts'
import { requirePerson, toRowKey } from '../deps.ts'
import { numberCursor, page, pageOf } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { Problem } from '../http/problem.ts'
import { eventExample } from './examples.ts'
import { incidentParams, requireIncident } from './incidents.ts'

const tag = 'incidents'
/**
 * Number of log rows per page. A complete log is read more often than a page, and most logs have
 * fewer rows.
 */
const rowLimit = z.coerce.number().int().min(1).max(1_000).default(50)
const example = eventExample as EventAnswer

/**
 * A row of the log in a response. The metadata of a row has a shape per kind, which
 * `domain/event.ts` defines.
 */
const eventSchema = z
  .object({
    id: z.string(),
    incidentId: z.string(),
    attempt: z.number().int(),
    seq: z.number().int(),
    stepKey: z.string().nullable(),
    turn: z.number().int().nullable(),
    kind: eventKind,
    action: eventAction,
    actor: z.string(),
    detail: z.string(),
    metadata: z.record(z.string(), z.unknown()),
    at: z.string(),
    prevHash: z.string(),
    hash: z.string(),
  })
  .openapi('IncidentEvent')

const listEventsEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/events',
  permission: 'read',
  tag,
  summary: 'The log of an incident, oldest first',
  description: '`after` is the number of the last row that you have; rows are numbered from 1 without gaps.',
  params: incidentParams,
  query: z.object({ after: numberCursor, limit: rowLimit, cursor: numberCursor }),
  answer: pageOf(eventSchema),
  example: { items: [example], nextCursor: null },
  problems: [404],
  async run({ scope, params: { id }, query: { after, cursor, limit } }, { db }) {
    await requireIncident(scope, id)
    const rows = await eventsOf(db, id, { afterSeq: cursor ?? after ?? 0, limit: limit + 1 })
    return page(rows as EventAnswer[], limit, (last) => last.seq)
  },
})

const getBodyEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/bodies/{digest}',
  permission: 'read',
  tag,
  summary: 'A whole large result, by the digest in its row',
  params: incidentParams.extend({ digest: z.string().regex(/^[0-9a-f]{64}$/) }),
  answer: z.object({ digest: z.string(), text: z.string() }),
  example: { digest: '0'.repeat(64), text: '{"items":[]}' },
  problems: [404],
  async run({ scope, params: { id, digest } }) {
    await requireIncident(scope, id)
    const text = await bodyOfIncident(scope, id, digest)
    if (text === null) throw new Problem(404, 'NOT_FOUND', 'No row of this incident has a text with this digest.')
    return { digest, text }
  },
})

const appendEventEndpoint = endpoint({
  method: 'post',
  path: '/incidents/{id}/events',
  permission: 'record',
  tag,
  summary: 'Records a step or a finding',
  params: incidentParams,
  description:
    'With `hypothesis` the step proposes, supports or refutes a possible cause. `hypothesis_id` names an existing hypothesis; without the id, the same text names the same hypothesis, and any other text names a new hypothesis. An agent must quote rows to support or refute a hypothesis.',
  body: z.strictObject({ action: recordableAction, detail: z.string().min(1).max(2000), ...hypothesisFields }),
  bodyExample: { action: 'investigated', detail: 'The replica stopped at 01:40.' },
  answer: eventSchema,
  example: { ...example, kind: 'commented' },
  status: 201,
  problems: [404, 409],
  agent: {
    tool: 'add_incident_event',
    identity: ({ id }, body) => ({ incident_id: id, ...body }),
  },
  async run({ params: { id }, body, actor, judged }, { db }) {
    const { action, detail } = body
    const { event } = await db.transaction().execute(async (trx) => {
      const hypothesis = await hypothesisIn(trx, id, body)
      const isUnproved = judged !== null && action === 'fix_succeeded' && !(await hasHeld(trx, id, judged.attempt))
      return await append(trx, id, judged?.attempt ?? null, {
        kind: 'commented',
        action,
        actor,
        turn: judged?.turn ?? null,
        stepKey: toRowKey(judged, 'commented'),
        // Marks an action that claims success if no write of the attempt was verified, because
        // readers rely on the action.
        detail: isUnproved ? `${detail} [not verified: no write of this attempt was verified]` : detail,
        metadata: { text: detail, confidence: null, action, ...(hypothesis && { hypothesis }) },
      })
    })
    return event as EventAnswer
  },
})

async function hasHeld(trx: Trx, id: string, attempt: number): Promise<boolean> {
  const rows = await eventsOf(trx, id, { attempt })
  return rows.some((row) => row.kind === 'verification' && row.metadata.outcome === 'held')
}

type Said = z.output<z.ZodObject<typeof hypothesisFields>> & { detail: string }

/** Finds a row's hypothesis, or the number of a new one. Null if the row is about none. */
async function hypothesisIn(trx: Trx, id: string, said: Said): Promise<StoredHypothesis | null> {
  if (said.hypothesis === undefined) return null
  const attempt = (await lockIncident(trx, id))?.attempt ?? 0
  const known = foldHypotheses(await eventsOf(trx, id, { attempt }), attempt)
  const meant = findHypothesis(known, { id: said.hypothesis_id, text: said.detail })
  const own = meant?.id ?? `h${known.length + 1}`
  return { id: own, text: meant?.text ?? said.detail, state: said.hypothesis, quotes: said.quotes ?? [] }
}

/** Describes why a message was refused, and what to do instead. */
function refusedMessage(id: string, told: Exclude<MessageOutcome, { outcome: 'told' }>): Problem {
  if (told.outcome === 'not_allowed') return new Problem(403, 'OUT_OF_SCOPE', `${told.why}.`)
  if (told.outcome === 'too_many') {
    const detail = `The run of ${id} has ${maxUnread} unread messages: write again after its next turn.`
    return new Problem(409, 'TOO_MANY_UNREAD', detail)
  }
  const detail = `${id} is ${withSpaces(told.status)}: no run works on the incident. Add a note, which its next attempt reads, or have the incident investigated again.`
  return new Problem(409, 'NOT_INVESTIGATED', detail)
}

const tellEndpoint = endpoint({
  method: 'post',
  path: '/incidents/{id}/messages',
  permission: 'record',
  tag,
  summary: 'Sends the agent a message while it investigates',
  description:
    'The next turn of its run reads the message once, as the words of a person; the message approves nothing. A resource in the message, as `kind:id` or by a unique name, counts as if the agent had looked it up. 409 `NOT_INVESTIGATED` if no run works on the incident; 409 `TOO_MANY_UNREAD` while ten messages are unread.',
  params: incidentParams,
  body: z.strictObject({ text: z.string().min(1).max(maxMessageCharacters).regex(/\S/) }),
  bodyExample: { text: 'We changed the certificate of web-osl-1 at noon. Look there first.' },
  answer: eventSchema,
  example: { ...example, kind: 'commented' },
  status: 201,
  problems: [404, 409],
  async run({ params: { id }, body: { text }, principal, actor }, deps) {
    const answered = await tellAgent(deps.db, id, requirePerson(principal, actor), text.trim())
    if (answered.outcome !== 'told') throw refusedMessage(id, answered)
    return answered.event as EventAnswer
  },
})

type EventAnswer = z.input<typeof eventSchema>

export const incidentEventRoutes = [listEventsEndpoint, getBodyEndpoint, appendEventEndpoint, tellEndpoint]
