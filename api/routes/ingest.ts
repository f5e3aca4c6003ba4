import { setTimeout as sleep } from 'node:timers/promises'
import { createRoute, z } from '@hono/zod-openapi'
import { every } from 'hono/combine'
import { ingestBody } from '../../db/alerts/ingest-body.ts'
import { noteRefusedBody } from '../../db/alerts/refused-bodies.ts'
import { isAnyWaiting, storeWaiting } from '../../db/alerts/waiting-bodies.ts'
import type { Db } from '../../db/connect.ts'
import { readSettings } from '../../db/settings.ts'
import { type Alert, ingestOutcome } from '../../domain/alert.ts'
import {
  describeNearest,
  maxAlertBytes,
  maxAlertsAtOnce,
  maxBytesAtOnce,
  maxLargeAtOnce,
} from '../../domain/alert-body.ts'
import { formatList } from '../../domain/format.ts'
import type { StateRule } from '../../domain/state-words.ts'
import { tellRuns } from '../../effects/tell-runs.ts'
import { dialectOf, dialects } from '../../ingest/dialects.ts'
import { hintOf } from '../../ingest/nearest.ts'
import type { SiteWords } from '../../ingest/state-words.ts'
import type { ApiDeps, Context, Middleware } from '../deps.ts'
import { requireMediaType } from '../http/body.ts'
import type { Router } from '../http/endpoint.ts'
import { permit } from '../http/guards.ts'
import { limitBytes } from '../http/middleware.ts'
import { notFound, Problem } from '../http/problem.ts'
import { incidentId } from './examples.ts'

/** Milliseconds to notify runs, because the sender waits for the response to its alerts. */
const tellWithinMs = 100

const takenAlerts = z.object({
  alerts: z.array(
    z.object({
      fingerprint: z.string(),
      incidentId: z.string().nullable(),
      outcome: z.enum([...ingestOutcome.options, 'refused']),
      reason: z.string().optional(),
    }),
  ),
  waiting: z.object({ body: z.number().int(), alerts: z.number().int() }).optional(),
  ignored: z.string().optional(),
})

const route = createRoute({
  method: 'post',
  path: '/ingest/{dialect}',
  tags: ['ingest'],
  summary: 'Receives alerts',
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
        'The alerts are stored; the response has the result of each alert. An alert that the database cannot store is `refused`, with the reason; the others are stored. A request with more than 1,000 alerts or 1 MiB is `waiting`, and so is a later request with one of the same alerts: a worker handles both in order. `ignored` is the reason why a request has no alert.',
      content: {
        'application/json': {
          schema: takenAlerts,
          example: { alerts: [{ fingerprint: 'd0735916ffe8d871', incidentId, outcome: 'opened' as const }] },
        },
      },
    },
    400: { description: 'The request contains no valid alerts: do not send it again.' },
    401: { description: 'The token is missing, unknown, expired or revoked.' },
    403: { description: 'The role lacks the permission.' },
    404: { description: 'There is no such dialect.' },
    413: { description: 'More than 16 MiB.' },
    422: { description: 'A parameter of the query is given more than once.' },
    415: { description: 'Not a content type of this dialect.' },
    503: {
      description: 'The database cannot be reached, or too many large requests are being read: send the request again.',
    },
  },
})

export function ingestRoutes(router: Router, deps: ApiDeps): void {
  const note = (c: Context, problem: Problem) => noteRefusal(deps, c, problem)
  // Passes the bytes unchanged to the parser of the dialect. The schema above only documents them.
  router.openAPIRegistry.registerPath(route)
  router.post(
    '/ingest/:dialect',
    every(permit('ingest'), limitLarge(deps.log), limitBytes(maxAlertBytes, note)),
    async (c) => {
      const name = c.req.param('dialect')
      const sender = c.get('principal').name
      const answer = await takeBody(deps, c, { name, sender }).catch(async (error) => {
        if (error instanceof Problem) await note(c, error)
        throw error
      })
      return c.json(answer, 202)
    },
  )
}

/**
 * A check of alerts that a route makes before they are stored. `ignored`: why no alert is stored.
 */
type AlertSift = (alerts: Alert[]) => Promise<{ alerts: Alert[]; ignored?: string | undefined }>

/**
 * Reads a request body in its dialect, and stores its alerts: at once, or through a worker if there
 * are many.
 */
export async function takeBody(
  deps: ApiDeps,
  c: Context,
  { name, sender, sift }: { name: string; sender: string; sift?: AlertSift },
): Promise<z.input<typeof takenAlerts>> {
  const read = await readAlerts(deps, c, { name, sender })
  const { bytes } = read
  const { alerts, ignored = read.ignored } = sift ? await sift(read.alerts) : read
  if (ignored !== undefined) deps.log.info({ sender, dialect: name, ignored }, 'a request contains no alert')
  if (alerts.length > maxAlertsAtOnce || bytes > maxBytesAtOnce || (await isAnyWaiting(deps.db, alerts))) {
    const { body } = await storeWaiting(deps.db, { dialect: name, sender, alerts })
    deps.metrics.alerts.inc({ source: name, outcome: 'waiting' }, alerts.length)
    return { alerts: [], waiting: { body, alerts: alerts.length } }
  }
  const ingested = await ingestBody(deps.db, alerts)
  for (const { outcome, fingerprint, reason } of ingested) {
    deps.metrics.alerts.inc({ source: name, outcome })
    if (outcome === 'refused')
      deps.log.warn(
        { fingerprint, reason },
        'an alert could not be stored; the other alerts of the request were stored',
      )
  }
  await Promise.race([tellRuns(deps, ingested), sleep(tellWithinMs, undefined, { ref: false })])
  const answers = ingested.map(({ fingerprint, incidentId, outcome, reason }) => ({
    fingerprint,
    incidentId,
    outcome,
    ...(reason !== undefined && { reason }),
  }))
  return { alerts: answers, ...(ignored !== undefined && { ignored }) }
}

/**
 * Limits large bodies with a 503, after which Alertmanager repeats the request, so that no alert is
 * lost. The log names the senders. A body of unknown length counts as large.
 */
function limitLarge(log: ApiDeps['log']): Middleware {
  let atWork = 0
  return async (c, next) => {
    const length = c.req.header('content-length')
    const isUnknown = length === undefined && c.req.header('transfer-encoding') !== undefined
    if (!isUnknown && Number(length ?? 0) <= maxBytesAtOnce) return await next()
    if (atWork >= maxLargeAtOnce) {
      log.warn(
        { sender: c.get('principal').name, bytes: length },
        'a large request was refused: too many large requests are being read',
      )
      const detail = `${maxLargeAtOnce} requests of more than ${maxBytesAtOnce} bytes are being read. Send it again in 5 s.`
      throw new Problem(503, 'LARGE_BODIES', detail, { headers: { 'retry-after': '5' } })
    }
    atWork += 1
    try {
      await next()
    } finally {
      atWork -= 1
    }
  }
}

/**
 * Reads the installation's own words for alert states from the setting, for the sender with this
 * token.
 */
export async function siteWords(db: Db, token: string | null): Promise<SiteWords> {
  return { rules: (await readSettings(db)).value<StateRule[]>('alert.state_words'), token }
}

async function readAlerts(
  { db }: ApiDeps,
  c: Context,
  { name, sender }: { name: string; sender: string },
): Promise<{ alerts: Alert[]; bytes: number; ignored: string | undefined }> {
  const dialect = dialectOf(name)
  if (!dialect) throw notFound(`dialect ${name}. Dialects: ${formatList(Object.keys(dialects))}`)
  requireMediaType(c, dialect.contentTypes)
  const bytes = new Uint8Array(await c.req.arrayBuffer())
  const parsed = dialect.parse(bytes, new Date().toISOString(), await siteWords(db, sender))
  if (!parsed.ok) throw unparsable(name, parsed.reason, bytes)
  const alerts = parsed.alerts.map((each) => ({ ...each, sender }))
  return { alerts, bytes: bytes.byteLength, ignored: parsed.ignored }
}

/**
 * Makes the problem for bytes that are no alert in this dialect, with a guess at the right dialect.
 */
export function unparsable(name: string, reason: string, bytes: Uint8Array): Problem {
  const hint = hintOf(bytes)
  const detail = `The request is not an alert of ${name}: ${reason}.${hint ? describeNearest(hint) : ''}`
  const errors = hint?.mapping.map(({ field, path }) => ({ in: 'body', field: path, message: `would be ${field}` }))
  return new Problem(400, 'UNPARSABLE', detail, { fields: { ...(errors?.length && { errors }) } })
}

/**
 * Records the refusal for people, because senders do not repeat a refused body, or repeat it for
 * ever.
 */
async function noteRefusal(deps: ApiDeps, c: Context, { code, message: reason }: Problem): Promise<void> {
  await noteRefused(deps, { sender: c.get('principal').name, dialect: c.req.param('dialect') ?? '', code, reason })
}

export async function noteRefused(
  { db, log }: ApiDeps,
  body: { sender: string; dialect: string; code: string; reason: string },
): Promise<void> {
  log.warn(body, 'a request of a sender was refused')
  await noteRefusedBody(db, body).catch((error) => log.warn({ err: error }, 'a refused request could not be recorded'))
}
