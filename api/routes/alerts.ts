import { setTimeout as sleep } from 'node:timers/promises'
import { createRoute, z } from '@hono/zod-openapi'
import { every } from 'hono/combine'
import { type Ingested, listAlerts } from '../../db/alerts/alerts.ts'
import { explainAlerts } from '../../db/alerts/explain-alerts.ts'
import { ingestBody } from '../../db/alerts/ingest-body.ts'
import { alertState, type ExplainedAlert, explainedAlert, ingestOutcome, receivedAlert } from '../../domain/alert.ts'
import { parseResourceKey } from '../../domain/registry.ts'
import { dialectOf, dialects } from '../../ingest/dialects.ts'
import type { ApiDeps } from '../deps.ts'
import { page, pageOf, pageQuery, requireMediaType } from '../http/body.ts'
import { endpoint, type Router } from '../http/endpoint.ts'
import { permit } from '../http/guards.ts'
import { notFound, Problem } from '../http/middleware.ts'
import { incidentId } from './examples.ts'

/** A sender waits for the answer: telling the runs may not make it wait longer than this. */
const tellWithinMs = 100

const route = createRoute({
  method: 'post',
  path: '/ingest/{dialect}',
  tags: ['ingest'],
  summary: 'Takes alerts in',
  description: `Idempotent by fingerprint, so no \`Idempotency-Key\`. Dialects: ${Object.keys(dialects).join(', ')}.\n\nPermission: \`ingest\`.`,
  security: [{ bearer: [] }],
  'x-permission': 'ingest',
  request: {
    params: z.object({ dialect: z.enum(Object.keys(dialects) as [string, ...string[]]) }),
    body: {
      required: true,
      content: {
        'application/json': {
          schema: z.looseObject({}),
          example: {
            version: '4',
            status: 'firing',
            alerts: [
              { status: 'firing', labels: { alertname: 'replication_lag', shard: 'db-osl-1' }, annotations: {} },
            ],
          },
        },
      },
    },
  },
  responses: {
    202: {
      description:
        'Committed: per alert, what became of it. One that the database cannot hold is `refused`, with the reason; the others are stored.',
      content: {
        'application/json': {
          schema: z.object({
            alerts: z.array(
              z.object({
                fingerprint: z.string(),
                incidentId: z.string().nullable(),
                outcome: z.enum([...ingestOutcome.options, 'refused']),
                reason: z.string().optional(),
              }),
            ),
          }),
          example: { alerts: [{ fingerprint: 'd0735916ffe8d871', incidentId, outcome: 'opened' as const }] },
        },
      },
    },
    400: { description: 'These bytes can never be alerts: sending them again is of no use.' },
    401: { description: 'No token, or one that is unknown, expired or revoked.' },
    403: { description: 'The role may not.' },
    404: { description: 'There is no such dialect.' },
    413: { description: 'More than 1 MiB.' },
    422: { description: 'A parameter of the query is given more than once.' },
    415: { description: 'Not a content type of this dialect.' },
    503: { description: 'The database cannot be reached: send it again.' },
  },
})

export function ingestRoutes(router: Router, deps: ApiDeps): void {
  // Bytes go to the dialect as they came; the schema above is only what the document says.
  router.openAPIRegistry.registerPath(route)
  router.post('/ingest/:dialect', every(permit('ingest')), async (c) => {
    const name = c.req.param('dialect')
    const dialect = dialectOf(name)
    if (!dialect) throw notFound(`dialect ${name}: there are ${Object.keys(dialects).join(' and ')}`)
    requireMediaType(c, dialect.contentTypes)
    const bytes = new Uint8Array(await c.req.arrayBuffer())
    const parsed = dialect.parse(bytes, new Date().toISOString())
    if (!parsed.ok) throw new Problem(400, 'UNPARSABLE', `Not an alert of ${name}: ${parsed.reason}.`)

    const ingested = await ingestBody(deps.db, parsed.alerts)
    for (const { outcome, fingerprint, reason } of ingested) {
      deps.metrics.alerts.inc({ source: name, outcome })
      if (outcome === 'refused') deps.log.warn({ fingerprint, reason }, 'an alert could not be stored; the others were')
    }
    await Promise.race([tellRuns(deps, ingested), sleep(tellWithinMs, undefined, { ref: false })])
    const alerts = ingested.map(({ fingerprint, incidentId, outcome, reason }) => ({
      fingerprint,
      incidentId,
      outcome,
      ...(reason !== undefined && { reason }),
    }))
    return c.json({ alerts }, 202)
  })
}

/** Best effort: the queue ticks by itself, and a run sees in the rows that its alerts have ended. */
async function tellRuns(deps: ApiDeps, ingested: Ingested[]): Promise<void> {
  if (ingested.some(({ wakesQueue }) => wakesQueue)) deps.runs.triggerQueue()
  try {
    const over = new Map(ingested.flatMap(({ tellRun }) => (tellRun ? [[tellRun.incidentId, tellRun]] : [])))
    for (const run of over.values()) await deps.runs.tell(run, 'alertResolved', 2_000)
  } catch (error) {
    deps.log.warn({ err: error }, 'the end of an alert was stored, but its run was not told')
  }
}

/** A stored body of an alert source, as text. */
const explainedBody = z.strictObject({
  dialect: z.enum(Object.keys(dialects) as [string, ...string[]]),
  body: z.string().min(1).max(1_000_000),
})

export function explainRoutes(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'post',
    path: '/alerts/explain',
    permission: 'read',
    tag: 'alerts',
    summary: 'What would become of a body, with nothing stored',
    description:
      'Type, severity, title and resource of each alert in it, with the labels that were tried in their order and why a name was or was not found.',
    body: explainedBody,
    bodyExample: { dialect: 'generic', body: '{"summary":"Disk is 97 % full","labels":{"instance":"web-1:9100"}}' },
    answer: z.object({ alerts: z.array(explainedAlert) }),
    example: { alerts: [explainExample] },
    status: 200,
    problems: [400],
    async run({ body: { dialect: name, body } }) {
      const parsed = dialects[name]?.parse(Buffer.from(body), new Date().toISOString())
      if (!parsed?.ok) throw new Problem(400, 'UNPARSABLE', `Not an alert of ${name}: ${parsed?.reason}.`)
      return { alerts: await deps.db.transaction().execute((trx) => explainAlerts(trx, parsed.alerts)) }
    },
  })
}

const explainExample: ExplainedAlert = {
  fingerprint: 'd0735916ffe8d871',
  status: 'firing',
  name: 'Disk is 97 % full',
  title: 'Disk is 97 % full',
  type: 'disk_is_97_full',
  severity: 'warning',
  severityWord: null,
  resource: 'node:web-1',
  why: 'label instance names node:web-1',
  tried: [{ label: 'instance', name: 'web-1', result: 'found' }],
  candidates: [],
  becomes: 'opens',
  incidentId: null,
  groupKey: null,
  notes: ['no known severity: a warning by default'],
}

export function alertRoutes(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/alerts',
    permission: 'read',
    tag: 'alerts',
    summary: 'Alerts as they were taken in, newest first',
    description: 'A repeated alert is one entry with its `count`; `raw` is the whole of it after cleansing.',
    query: z.object({
      status: alertState.optional(),
      source: z.string().max(100).optional(),
      q: z.string().max(200).optional(),
      /** `kind:id`, under any of its names. */
      resource: z
        .string()
        .max(300)
        .refine((text) => parseResourceKey(text) !== null, 'It takes kind:id, as node:web-1.')
        .optional(),
      ...pageQuery,
    }),
    answer: pageOf(receivedAlert),
    example: {
      items: [
        {
          id: 'alr_01kam3x0q2v8d5t7w9y1b3c5e7',
          source: 'alertmanager',
          fingerprint: '93f1a0c2d4b6e8f0',
          status: 'firing',
          name: 'ReplicationLag',
          labels: { alertname: 'ReplicationLag', shard: 'db-osl-1', severity: 'critical' },
          annotations: { summary: 'Replica is 214 s behind its primary' },
          startsAt: '2026-11-21T01:45:38.000000Z',
          endsAt: null,
          count: 3,
          firstSeenAt: '2026-11-21T01:45:40.120000Z',
          lastSeenAt: '2026-11-21T01:46:40.120000Z',
          incidentId,
          links: {
            generator: 'https://prometheus.example.com/graph?g0.expr=up',
            external: 'https://alertmanager.example.com',
            runbook: null,
          },
          groupKey: '{}:{alertname="ReplicationLag"}',
          raw: { source: 'alertmanager', severity: 'critical', severitySource: 'alert' },
        },
      ],
      nextCursor: null,
    },
    async run({ scope, query: { limit, cursor, ...filter } }) {
      const rows = await listAlerts(scope, filter, { before: cursor ?? null, limit: limit + 1 })
      return page(rows, limit, (last) => last.id)
    },
  })
}
