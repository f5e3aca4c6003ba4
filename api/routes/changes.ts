import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { every } from 'hono/combine'
import { databaseTime } from '../../db/clock.ts'
import {
  beganAt,
  changesNear,
  hasChanges,
  listChanges,
  type TakenChange,
  takeChanges,
} from '../../db/inventory/changes.ts'
import { showResource } from '../../db/inventory/show-resource.ts'
import { readSettings } from '../../db/settings.ts'
import { changeSources, nearChange, type StoredChange, storedChange, summarizeChange } from '../../domain/change.ts'
import { inventoryKind, parseResourceKey, resourceKey } from '../../domain/registry.ts'
import { parseDuration } from '../../domain/source.ts'
import { type ChangeSender, senderOf } from '../../ingest/changes/senders.ts'
import { fitSummary } from '../../sources/kind.ts'
import type { ApiDeps, Context, Env, Middleware } from '../deps.ts'
import { afterFailure } from '../http/authenticate.ts'
import { page, pageOf, pageQuery, requireMediaType, storedMoment } from '../http/body.ts'
import { endpoint, type Router } from '../http/endpoint.ts'
import { permit } from '../http/guards.ts'
import { limitBody, notFound, Problem } from '../http/middleware.ts'

const tag = 'platform'

const example: StoredChange = {
  id: 'chg_01kam3x0q2v8d5t7w9y1b3c5e7',
  at: '2026-11-21T01:41:40.000000Z',
  receivedAt: '2026-11-21T01:41:42.120000Z',
  source: 'github',
  title: 'Deployment of acme/shop to production: success',
  author: 'anna',
  url: 'https://github.com/acme/shop/actions/runs/123',
  revision: '8f3c2d1b',
  environment: 'production',
  resource: { kind: 'workload', id: 'shop' },
  why: 'label repository names workload:shop',
  labels: { repository: 'acme/shop', environment: 'production' },
}

const resourceKeyText = z
  .string()
  .max(160)
  .regex(
    new RegExp(`^(${inventoryKind.options.join('|')}):[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$`),
    `is kind:id, as node:web-1, with a kind of ${inventoryKind.options.join(', ')}`,
  )

const cursorShape = new RegExp(`^(${storedMoment}) (chg_[0-9a-z]{26})$`)

/** What was deployed or configured, as a list and near a resource. */
export function changeRoutes(router: Router, deps: ApiDeps): void {
  declareList(router, deps)
  declareNear(router, deps)
  declareSummary(router, deps)
}

function declareList(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/changes',
    permission: 'read',
    tag,
    summary: 'Changes by their moment, newest first',
    description: '`unmatched=true`: those for which no resource was found; `why` says what was tried.',
    query: z.object({
      resource: resourceKeyText.optional(),
      source: z.enum(changeSources).optional(),
      unmatched: z.enum(['true', 'false']).optional(),
      q: z.string().min(1).max(200).optional(),
      limit: pageQuery.limit,
      cursor: z.string().max(100).regex(cursorShape, 'is not the cursor of a page').optional(),
    }),
    answer: pageOf(storedChange),
    example: { items: [example], nextCursor: null },
    async run({ scope, query: { resource, source, unmatched, q, limit, cursor } }) {
      const [, at, id] = cursorShape.exec(cursor ?? '') ?? []
      const filter = {
        resource: resource === undefined ? null : parseResourceKey(resource),
        source: source ?? null,
        q: q ?? null,
        isUnmatched: unmatched === 'true',
      }
      const rows = await listChanges(scope, filter, { before: at && id ? { at, id } : null, limit: limit + 1 })
      return page(rows, limit, (last) => `${last.at} ${last.id}`)
    },
  })
}

const params = z.object({ kind: inventoryKind, id: z.string().min(1).max(128) })
const [leastSeconds, mostSeconds] = [60, 30 * 86_400]
const window = z
  .string()
  .max(20)
  .refine((text) => {
    const seconds = parseDuration(text)
    return seconds !== null && seconds >= leastSeconds && seconds <= mostSeconds
  }, 'is a duration from 1m to 30d, as 6h')

function declareNear(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/inventory/resources/{kind}/{id}/changes',
    permission: 'read',
    tag,
    summary: 'Changes of a resource and of what it runs on or depends on, newest first',
    description: '`steps` says how far away the changed thing is. At most 50; `found` counts all of the window.',
    params,
    query: z.object({ window: window.default('7d') }),
    answer: z.object({ items: z.array(nearChange), found: z.number().int() }),
    example: { items: [{ ...example, steps: 1 }], found: 1 },
    async run({ scope, params, query }) {
      const fromIso = before(await databaseTime(deps.db), query.window)
      const { changes, found } = await changesNear(scope, params, { fromIso, limit: 50 })
      return { items: changes, found }
    },
  })
}

/** Rows that are looked at for a summary of 2 kB. */
const mostSummarized = 30

function declareSummary(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/inventory/resources/{kind}/{id}/changes/summary',
    permission: 'read',
    tag,
    summary: 'The same in 2 kB at most, as a model reads it',
    description:
      'With `incident`, the window ends with the beginning of that incident, and what came after it is there as well.',
    params,
    query: z.object({
      window: window.default('6h'),
      incident: z
        .string()
        .regex(/^inc_[0-9a-z]{26}$/)
        .optional(),
    }),
    answer: z.looseObject({ resource: z.string(), found: z.number().int(), changes: z.array(z.looseObject({})) }),
    example: {
      resource: 'workload:shop',
      window: '6h',
      from: '2026-11-20T19:45:40.000Z',
      found: 1,
      changes: [{ when: '4 min before it began', at: example.at, title: example.title, source: 'github' }],
    },
    problems: [404],
    async run({ scope, params, query }) {
      if (!(await showResource(scope, params))) throw notFound(`${params.kind} ${params.id}`)
      const began = query.incident ? await beganAt(deps.db, query.incident) : null
      const from = { iso: began ?? (await databaseTime(deps.db)), isBegin: began !== null }
      const fromIso = before(from.iso, query.window)
      const { changes, found } = await changesNear(scope, params, { fromIso, limit: mostSummarized })
      const isSilent = found === 0 && !(await hasChanges(scope))
      const head = { resource: resourceKey(params), window: query.window, from: fromIso, found }
      return fitSummary(
        changes.map((change) => summarizeChange(change, from)),
        (kept) => ({
          ...head,
          // Newest first.
          changes: kept,
          ...(found > kept.length && { notShown: found - kept.length }),
          ...(isSilent && { note: 'no change was ever reported here: this says nothing about what was changed' }),
        }),
      ) as typeof head & { changes: Record<string, unknown>[] }
    },
  })
}

function before(iso: string, text: string): string {
  return new Date(Date.parse(iso) - (parseDuration(text) ?? 0) * 1000).toISOString()
}

const takenChange = z.object({
  id: z.string(),
  outcome: z.enum(['stored', 'repeated']),
  resource: z.string().nullable(),
  why: z.string(),
})

const route = createRoute({
  method: 'post',
  path: '/ingest/change',
  tags: ['ingest'],
  summary: 'Takes changes in: what was deployed or configured',
  description: [
    'A delivery with the header `X-GitHub-Event` or `X-Gitlab-Event` is read as such; any other is `generic`: one object, or a list of 100 at most.',
    'A repeat is stored once, so no `Idempotency-Key`.',
    'Where `change.github_secret` or `change.gitlab_token` is set, deliveries of that sender have to be proven by it (`X-Hub-Signature-256`, `X-Gitlab-Token`), and need no token.',
    'Permission: `ingest`.',
  ].join('\n\n'),
  security: [{ bearer: [] }],
  'x-permission': 'ingest',
  request: {
    body: {
      required: true,
      content: {
        'application/json': {
          schema: z.looseObject({}),
          example: {
            title: 'nginx 1.29 on web-1',
            at: '2026-11-21T01:41:40Z',
            resources: ['node:web-1'],
            author: 'anna',
            revision: '8f3c2d1',
          },
        },
      },
    },
  },
  responses: {
    202: {
      description:
        'Committed: per resource of each change, what was found. `ignored` says why a delivery holds no change.',
      content: {
        'application/json': {
          schema: z.object({ changes: z.array(takenChange), ignored: z.string().nullable() }),
          example: {
            changes: [
              {
                id: 'chg_01kam3x0q2v8d5t7w9y1b3c5e7',
                outcome: 'stored' as const,
                resource: 'node:web-1',
                why: 'it names node:web-1',
              },
            ],
            ignored: null,
          },
        },
      },
    },
    400: { description: 'These bytes can never be a change: sending them again is of no use.' },
    401: {
      description:
        'No token, or one that is unknown, expired or revoked; `NOT_PROVEN`: the signature or secret token is wrong.',
    },
    403: { description: 'The role may not.' },
    413: { description: 'More than 1 MiB.' },
    415: { description: 'Not JSON.' },
    422: { description: 'A parameter of the query is given more than once.' },
    503: { description: 'The database cannot be reached, or too many came with a wrong secret: send it again.' },
  },
})

const path = '/api/v1/ingest/change'

/**
 * The door of senders that share a secret with this server and can send no token. It stands before the one that asks for a
 * token, and lets through to it what is no such delivery.
 */
export function provenChangeRoutes(app: OpenAPIHono<Env>, deps: ApiDeps): void {
  const takeProven: Middleware = async (c, next) => {
    const sender = c.req.method === 'POST' ? readSender(c) : null
    const secret = sender?.secretSetting ? await readSecret(deps, sender.secretSetting) : null
    if (!sender || secret === null) return await next()
    const bytes = new Uint8Array(await c.req.arrayBuffer())
    if (!sender.isProven(secret, (name) => c.req.header(name), bytes)) {
      deps.log.warn({ sender: sender.name }, 'a change came without the proof of its sender')
      const flood = await afterFailure(deps.db, c)
      if (flood) throw flood
      const detail = `This delivery is not proven by the secret that is set for ${sender.name}. Set the same secret at both ends.`
      throw new Problem(401, 'NOT_PROVEN', detail)
    }
    return await take(deps, c, sender)
  }
  app.use(path, limitBody, takeProven)
}

async function readSecret({ db }: ApiDeps, setting: string): Promise<string | null> {
  return (await readSettings(db)).value<string | null>(setting)
}

export function ingestChangeRoutes(router: Router, deps: ApiDeps): void {
  // Bytes go to the sender's parser as they came; the schema above is only what the document says.
  router.openAPIRegistry.registerPath(route)
  router.post('/ingest/change', every(permit('ingest')), (c) => take(deps, c, readSender(c)))
}

function readSender(c: Context): ChangeSender {
  const sender = senderOf((name) => c.req.header(name))
  if (sender) return sender
  throw new Problem(400, 'UNPARSABLE', 'Two senders are named: X-GitHub-Event and X-Gitlab-Event. Send one of them.')
}

async function take(deps: ApiDeps, c: Context, sender: ChangeSender): Promise<Response> {
  requireMediaType(c, ['application/json'])
  const { eventHeader, keyHeader } = sender
  const delivery = {
    bytes: new Uint8Array(await c.req.arrayBuffer()),
    event: (eventHeader !== null && c.req.header(eventHeader)) || null,
    key: (keyHeader !== null && c.req.header(keyHeader)) || null,
  }
  const parsed = sender.parse(delivery, new Date().toISOString())
  if (!parsed.ok) throw new Problem(400, 'UNPARSABLE', `Not a change of ${sender.name}: ${parsed.reason}.`)
  const taken = await takeChanges(deps.db, parsed.changes)
  return c.json({ changes: taken.flatMap(toAnswer), ignored: parsed.ignored }, 202)
}

function toAnswer({ outcome, about }: TakenChange): z.input<typeof takenChange>[] {
  return about.map(({ id, resource, why }) => ({ id, outcome, resource: resource && resourceKey(resource), why }))
}
