import { z } from '@hono/zod-openapi'
import { capabilityGaps } from '../../db/incidents/capability-gaps.ts'
import { incidentIdsAfter } from '../../db/incidents/incidents.ts'
import { append } from '../../db/log/append.ts'
import { auditChoices, listAudit, verifyAudit } from '../../db/log/audit.ts'
import { type Difference, verifyGrants, verifyIncident } from '../../db/verify/incident.ts'
import { auditRow } from '../../domain/operator.ts'
import { type CapabilityGap, capabilityGap } from '../../domain/status.ts'
import { type ApiDeps, toRowKey } from '../deps.ts'
import { moment, numberCursor, page, pageOf, pageQuery, storedMoment } from '../http/body.ts'
import { endpoint, type Router } from '../http/endpoint.ts'
import { incidentId } from './examples.ts'

const place = z.string().regex(new RegExp(`^${storedMoment}~[1-3]~\\d{1,15}$`), 'is not the cursor of a page')

export function auditRoutes(router: Router, deps: ApiDeps): void {
  declareChoices(router, deps)
  endpoint(router, deps, {
    method: 'get',
    path: '/audit',
    permission: 'audit',
    tag: 'audit',
    summary: 'Who did what, newest first',
    description:
      'Decisions, configuration, tokens, people, what people did to incidents, sign-ins that were made and refused, and what looked like an attack. `what` is a word (`token.revoked`) or its first part (`token`). Values of settings are left out.',
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
  })
}

function declareChoices(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/audit/choices',
    permission: 'audit',
    tag: 'audit',
    summary: 'Who did something of late, and what was done: what the audit may be filtered by',
    answer: z.object({ who: z.array(z.string()), what: z.array(z.string()) }),
    example: { who: ['admin', 'anna'], what: ['approval.approved', 'config.changed'] },
    run: ({ scope }) => auditChoices(scope),
  })
}

const tag = 'audit'
const hash = z.string().regex(/^[0-9a-f]{64}$/, 'is no hash of a row: 64 hexadecimal digits')
const count = z.number().int()

export function verifyRoutes(router: Router, deps: ApiDeps): void {
  const { db } = deps

  endpoint(router, deps, {
    method: 'get',
    path: '/verify',
    permission: 'audit',
    tag,
    summary: 'Incidents, approvals, effects and grants, held against the log',
    description:
      'Of each incident of the page: its chain, and its row, approvals and effects as stored against what its rows fold to. The last page (`nextCursor` null) also holds standing grants against the log.',
    query: z.object({
      limit: z.coerce.number().int().min(1).max(100).default(50),
      cursor: z.string().max(100).optional(),
    }),
    answer: z.object({
      incidents: count,
      events: count,
      differences: z.array(z.object({ subject: z.string(), what: z.string() })),
      nextCursor: z.string().nullable(),
    }),
    example: {
      incidents: 50,
      events: 1_843,
      nextCursor: incidentId,
      differences: [{ subject: incidentId, what: 'status is "open", the rows say "resolved"' }],
    },
    async run({ query: { limit, cursor } }) {
      const ids = await incidentIdsAfter(db, cursor ?? '', limit)
      const differences: Difference[] = []
      let events = 0
      for (const id of ids) {
        const verified = await verifyIncident(db, id)
        events += verified.events
        differences.push(...verified.found)
      }
      const nextCursor = ids.length === limit ? (ids.at(-1) as string) : null
      if (nextCursor === null) differences.push(...(await verifyGrants(db)))
      return { incidents: ids.length, events, differences, nextCursor }
    },
  })

  endpoint(router, deps, {
    method: 'get',
    path: '/audit/verify',
    permission: 'audit',
    tag,
    summary: 'Recomputes the hash chain of the audit',
    description: 'With `head`, a hash that was noted before, it must still be in the chain.',
    query: z.object({ head: hash.optional() }),
    answer: z.object({
      ok: z.boolean(),
      rows: count,
      headHash: z.string(),
      problem: z.object({ seq: count, what: z.string() }).nullable(),
    }),
    example: {
      ok: true,
      rows: 214,
      headHash: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      problem: null,
    },
    run: ({ query: { head } }) => verifyAudit(db, head),
  })
}

const example: CapabilityGap = {
  id: '4712',
  incidentId,
  category: 'remediation',
  description: 'No tool restarts one service on one node.',
  actor: 'agent:incident-investigator',
  at: '2026-11-21T01:47:10.000000Z',
}
const { category } = capabilityGap.shape
const gapsTag = 'capability gaps'

export function capabilityGapRoutes(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/capability-gaps',
    permission: 'read',
    tag: gapsTag,
    summary: 'What investigations lacked, newest first',
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
  })

  endpoint(router, deps, {
    method: 'post',
    path: '/capability-gaps',
    permission: 'record',
    tag: gapsTag,
    summary: 'Reports something that an incident would have needed',
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
    async run({ body: { incident_id, category, description }, actor, judged }) {
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
  })
}
