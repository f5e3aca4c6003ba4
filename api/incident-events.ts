import { z } from '@hono/zod-openapi'
import { append } from '../db/append.ts'
import { bodyOfIncident } from '../db/bodies.ts'
import { eventsOf } from '../db/events.ts'
import { recordableAction } from '../domain/event.ts'
import type { ApiDeps } from './deps.ts'
import { type EventAnswer, eventSchema } from './event-schema.ts'
import { eventExample } from './examples.ts'
import { endpoint, type Router } from './http/endpoint.ts'
import { numberCursor, page, pageOf } from './http/paging.ts'
import { Problem } from './http/problem.ts'
import { incidentParams, requireIncident } from './incidents.ts'
import { rowKey } from './row-key.ts'

const tag = 'incidents'
/** A whole log is read at once far more often than a page of it: nearly every one is shorter than this. */
const rowLimit = z.coerce.number().int().min(1).max(1_000).default(50)
const example = eventExample as EventAnswer

export function incidentEventRoutes(router: Router, deps: ApiDeps): void {
  const { db } = deps

  endpoint(router, deps, {
    method: 'get',
    path: '/incidents/{id}/events',
    permission: 'read',
    tag,
    summary: 'The log of an incident, oldest first',
    description: '`after` is the number of the last row already seen; numbers are dense from 1.',
    params: incidentParams,
    query: z.object({ after: numberCursor, limit: rowLimit, cursor: numberCursor }),
    answer: pageOf(eventSchema),
    example: { items: [example], nextCursor: null },
    problems: [404],
    async run({ params: { id }, query: { after, cursor, limit } }) {
      await requireIncident(deps, id)
      const rows = await eventsOf(db, id, { afterSeq: cursor ?? after ?? 0, limit: limit + 1 })
      return page(rows as EventAnswer[], limit, (last) => last.seq)
    },
  })

  endpoint(router, deps, {
    method: 'get',
    path: '/incidents/{id}/bodies/{digest}',
    permission: 'read',
    tag,
    summary: 'The whole of a large result, by the digest its row keeps',
    params: incidentParams.extend({ digest: z.string().regex(/^[0-9a-f]{64}$/) }),
    answer: z.object({ digest: z.string(), text: z.string() }),
    example: { digest: '0'.repeat(64), text: '{"items":[]}' },
    problems: [404],
    async run({ params: { id, digest } }) {
      await requireIncident(deps, id)
      const text = await bodyOfIncident(db, id, digest)
      if (text === null) throw new Problem(404, 'NOT_FOUND', 'No row of this incident has a body with this digest.')
      return { digest, text }
    },
  })

  endpoint(router, deps, {
    method: 'post',
    path: '/incidents/{id}/events',
    permission: 'record',
    tag,
    summary: 'Records a step or a finding',
    params: incidentParams,
    body: z.strictObject({ action: recordableAction, detail: z.string().min(1).max(2000) }),
    bodyExample: { action: 'investigated', detail: 'The replica stopped at 01:40.' },
    answer: eventSchema,
    example: { ...example, kind: 'commented' },
    status: 201,
    problems: [404, 409],
    agent: {
      tool: 'add_incident_event',
      identity: ({ id }, { action, detail }) => ({ incident_id: id, action, detail }),
    },
    async run({ params: { id }, body: { action, detail }, actor, judged }) {
      const { event } = await db.transaction().execute((trx) =>
        append(trx, id, judged?.attempt ?? null, {
          kind: 'commented',
          action,
          actor,
          turn: judged?.turn ?? null,
          stepKey: rowKey(judged, 'commented'),
          detail,
          metadata: { text: detail, confidence: null, action },
        }),
      )
      return event as EventAnswer
    },
  })
}
