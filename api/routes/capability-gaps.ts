import { z } from '@hono/zod-openapi'
import { capabilityGaps } from '../../db/incidents/capability-gaps.ts'
import { append } from '../../db/log/append.ts'
import { type CapabilityGap, capabilityGap } from '../../domain/capability-gap.ts'
import { toRowKey } from '../deps.ts'
import { numberCursor, page, pageOf, pageQuery } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { incidentId } from './examples.ts'

const tag = 'capability gaps'
const example: CapabilityGap = {
  id: '4712',
  incidentId,
  category: 'remediation',
  description: 'No tool restarts one service on one node.',
  actor: 'agent:incident-investigator',
  at: '2026-11-21T01:47:10.000000Z',
}
const { category } = capabilityGap.shape

export const capabilityGapRoutes = [
  endpoint({
    method: 'get',
    path: '/capability-gaps',
    permission: 'read',
    tag,
    summary: 'Tools that investigations lacked, newest first',
    query: z.object({
      category: category.optional(),
      incident: z.string().optional(),
      limit: pageQuery.limit,
      cursor: numberCursor,
    }),
    answer: pageOf(capabilityGap),
    example: { items: [example], nextCursor: null },
    async run({ scope, query: { limit, cursor, category, incident } }) {
      const filter = { category, incidentId: incident }
      const rows = await capabilityGaps(scope, filter, { before: cursor ?? null, limit: limit + 1 })
      return page(rows, limit, (last) => last.id)
    },
  }),
  endpoint({
    method: 'post',
    path: '/capability-gaps',
    permission: 'record',
    tag,
    summary: 'Reports a tool that an investigation lacked',
    body: z.strictObject({ incident_id: z.string(), category, description: z.string().min(3).max(1000) }),
    bodyExample: { incident_id: incidentId, category: 'remediation', description: example.description },
    answer: capabilityGap,
    example,
    status: 201,
    problems: [404, 409],
    agent: {
      tool: 'report_capability_gap',
      identity: (_params, { incident_id, category, description }) => ({ incident_id, category, description }),
    },
    async run({ body: { incident_id, category, description }, actor, judged }, deps) {
      const { event } = await deps.db.transaction().execute((trx) =>
        append(trx, incident_id, judged?.attempt ?? null, {
          kind: 'capability_gap',
          actor,
          turn: judged?.turn ?? null,
          stepKey: toRowKey(judged, 'capability_gap'),
          detail: description,
          metadata: { category, description },
        }),
      )
      const { id, at, incidentId } = event
      return { id, incidentId, category, description, actor, at }
    },
  }),
]
