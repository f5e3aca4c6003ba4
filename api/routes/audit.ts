import { z } from '@hono/zod-openapi'
import { auditChoices, listAudit } from '../../db/log/audit.ts'
import { auditRow } from '../../domain/audit.ts'
import { page, pageOf, pageQuery } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { moment, storedMoment } from '../http/moments.ts'
import { incidentId } from './examples.ts'

export const tag = 'audit'
const place = z.string().regex(new RegExp(`^${storedMoment}~[1-3]~\\d{1,15}$`), 'is not the cursor of a page')

const choicesEndpoint = endpoint({
  method: 'get',
  path: '/audit/choices',
  permission: 'audit',
  tag,
  summary: 'Recent people and actions, as values for the filters of the audit',
  answer: z.object({ who: z.array(z.string()), what: z.array(z.string()) }),
  example: { who: ['admin', 'anna'], what: ['approval.approved', 'config.changed'] },
  run: ({ scope }) => auditChoices(scope),
})

export const auditRoutes = [
  choicesEndpoint,
  endpoint({
    method: 'get',
    path: '/audit',
    permission: 'audit',
    tag,
    summary: 'Who did what, newest first',
    description:
      'Decisions, configuration, tokens, people, actions of people on incidents, accepted and refused sign-ins, and possible attacks. `what` is a code (`token.revoked`) or its first part (`token`). Values of settings are left out.',
    query: z.object({
      who: z.string().min(1).max(100).optional(),
      what: z
        .string()
        .regex(/^[a-z_]+(\.[a-z_]+)?$/)
        .max(80)
        .optional(),
      since: moment.optional(),
      limit: pageQuery.limit,
      cursor: place.optional(),
    }),
    answer: pageOf(auditRow),
    example: {
      items: [
        {
          id: '2026-11-21T01:47:30.000000Z~3~812',
          at: '2026-11-21T01:47:30.000000Z',
          who: 'anna',
          what: 'approval.approved',
          subject: 'apr_01kahnv4q2e8w9r7c5x3m1t6zp',
          detail: 'Approved by anna',
          incidentId,
          address: null,
        },
      ],
      nextCursor: null,
    },
    async run({ scope, query: { limit, cursor, ...filter } }) {
      const rows = await listAudit(scope, filter, { before: cursor ?? null, limit: limit + 1 })
      return page(rows, limit, (last) => last.id)
    },
  }),
]
