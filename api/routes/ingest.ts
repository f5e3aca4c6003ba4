import { setTimeout as sleep } from 'node:timers/promises'
import { createRoute, z } from '@hono/zod-openapi'
import { every } from 'hono/combine'
import type { IngestResult } from '../../db/alerts/alerts.ts'
import { ingestBody } from '../../db/alerts/ingest-body.ts'
import { ingestOutcome } from '../../domain/alert.ts'
import { dialectOf, dialects } from '../../ingest/dialects.ts'
import type { ApiDeps } from '../deps.ts'
import { requireMediaType } from '../http/body.ts'
import type { Router } from '../http/endpoint.ts'
import { permit } from '../http/guards.ts'
import { notFound, Problem } from '../http/problem.ts'
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

    const ingested = await ingestBody(
      deps.db,
      parsed.alerts.map((each) => ({ ...each, sender: c.get('principal').name })),
    )
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
async function tellRuns(deps: ApiDeps, ingested: IngestResult[]): Promise<void> {
  if (ingested.some(({ wakesQueue }) => wakesQueue)) deps.runs.triggerQueue()
  try {
    const over = new Map(ingested.flatMap(({ tellRun }) => (tellRun ? [[tellRun.incidentId, tellRun]] : [])))
    for (const run of over.values()) await deps.runs.tell(run, 'alertResolved', 2_000)
  } catch (error) {
    deps.log.warn({ err: error }, 'the end of an alert was stored, but its run was not told')
  }
}
