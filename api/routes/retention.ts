import { z } from '@hono/zod-openapi'
import { holdIncident, listHolds, releaseIncident } from '../../db/retention/holds.ts'
import { previewRetention } from '../../db/retention/preview.ts'
import {
  incidentHold,
  maxRetentionDays,
  minRetentionDays,
  type RetainedKind,
  retainedKinds,
  retention,
} from '../../domain/retention.ts'
import { requirePerson } from '../deps.ts'
import { writtenText } from '../http/body.ts'
import { pageOf } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { Problem } from '../http/problem.ts'
import { incidentId } from './examples.ts'
import { goneOrMissing, incidentParams, requireIncident } from './incidents.ts'

const tag = 'retention'

const days = z
  .union([z.literal('keep'), z.coerce.number().int().min(minRetentionDays).max(maxRetentionDays)])
  .transform((given) => (given === 'keep' ? null : given))
  .optional()

const hold = {
  id: 'hld_01kaabbccddeeffgghhjjkkmmn',
  incidentId,
  reason: 'The insurer asks for it.',
  heldBy: 'admin',
  heldAt: '2026-11-28T03:00:00.000000Z',
  endedAt: null,
}

const because = z.strictObject({ reason: writtenText(3, 2000) })

export const retentionRoutes = [
  endpoint({
    method: 'get',
    path: '/retention',
    permission: 'audit',
    tag,
    summary: 'The data that retention would remove now, and older data that is kept',
    description:
      'Uses the settings `retention.*`; a number of days, or `keep`, in the query replaces one of these settings for this answer. Checks the oldest 5,000 incidents; `isPartial` means that there are more.',
    query: z.object({ incidents: days, deliveries: days, alerts: days } satisfies Record<RetainedKind, z.ZodType>),
    answer: retention,
    example: {
      items: [
        {
          kind: 'incidents' as const,
          setting: retainedKinds.incidents.setting,
          days: 400,
          due: 312,
          kept: { held: 1 },
          isPartial: false,
        },
      ],
      bodies: 40,
      lastRound: { endedAt: '2026-11-28T03:00:00.000000Z', removed: { incidents: 12 } },
    },
    run: ({ query, scope }) => previewRetention(scope, query),
  }),
  endpoint({
    method: 'get',
    path: '/holds',
    permission: 'read',
    tag,
    summary: 'Incidents that a person keeps at any age',
    answer: pageOf(incidentHold),
    example: { items: [hold], nextCursor: null },
    run: async ({ scope }) => ({ items: await listHolds(scope), nextCursor: null }),
  }),
  endpoint({
    method: 'post',
    path: '/incidents/{id}/hold',
    permission: 'manage_incident',
    tag,
    summary: 'Keeps an incident at any age',
    description: 'Retention does not remove the incident until an admin releases it.',
    params: incidentParams,
    body: because,
    bodyExample: { reason: hold.reason },
    answer: incidentHold,
    example: hold,
    status: 201,
    problems: [404, 409],
    async run({ scope, params: { id }, body: { reason }, actor, principal }, { db }) {
      await requireIncident(scope, id)
      const made = await holdIncident(db, id, reason, requirePerson(principal, actor))
      if (made === 'gone') throw await goneOrMissing(db, id)
      if (!made) throw new Problem(409, 'CONFLICT', `${id} is on hold already.`)
      return made
    },
  }),
  endpoint({
    method: 'post',
    path: '/incidents/{id}/release',
    permission: 'write_config',
    tag,
    summary: 'Releases an incident: retention may remove it again',
    params: incidentParams,
    body: because,
    bodyExample: { reason: 'The case is closed.' },
    answer: incidentHold,
    example: { ...hold, endedAt: '2026-12-01T03:00:00.000000Z' },
    problems: [404, 409],
    async run({ scope, params: { id }, body: { reason }, actor, principal }, { db }) {
      await requireIncident(scope, id)
      const ended = await releaseIncident(db, id, reason, requirePerson(principal, actor))
      if (!ended) throw new Problem(409, 'CONFLICT', `There is no hold on ${id}.`)
      return ended
    },
  }),
]
