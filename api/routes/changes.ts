import { z } from '@hono/zod-openapi'
import { databaseTime } from '../../db/clock.ts'
import { beganAt, changesNear, hasChanges, listChanges } from '../../db/inventory/changes.ts'
import { showResource } from '../../db/inventory/show-resource.ts'
import { changeSources, nearChange, type StoredChange, storedChange, summarizeChange } from '../../domain/change.ts'
import { inventoryKind, parseResourceKey, resourceKey } from '../../domain/registry.ts'
import { parseDuration } from '../../domain/source.ts'
import { fitSummary } from '../../sources/kind.ts'
import { page, pageOf, pageQuery } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { storedMoment } from '../http/moments.ts'
import { notFound } from '../http/problem.ts'

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
    `must be kind:id, such as node:web-1, with a kind of ${inventoryKind.options.join(', ')}`,
  )

const cursorShape = new RegExp(`^(${storedMoment}) (chg_[0-9a-z]{26})$`)

const listEndpoint = endpoint({
  method: 'get',
  path: '/changes',
  permission: 'read',
  tag,
  summary: 'Changes by their time, newest first',
  description: '`unmatched=true`: only changes for which no resource was found; `why` lists what was tried.',
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

const params = z.object({ kind: inventoryKind, id: z.string().min(1).max(128) })
const [minWindowSeconds, maxWindowSeconds] = [60, 30 * 86_400]
const window = z
  .string()
  .max(20)
  .refine((text) => {
    const seconds = parseDuration(text)
    return seconds !== null && seconds >= minWindowSeconds && seconds <= maxWindowSeconds
  }, 'must be a duration from 1m to 30d, such as 6h')

const nearEndpoint = endpoint({
  method: 'get',
  path: '/inventory/resources/{kind}/{id}/changes',
  permission: 'read',
  tag,
  summary: 'Changes of a resource and of the resources that it runs on or depends on, newest first',
  description:
    '`steps` is the distance to the changed resource, in relations. At most 50 changes; `found` counts all changes in the window.',
  params,
  query: z.object({ window: window.default('7d') }),
  answer: z.object({ items: z.array(nearChange), found: z.number().int() }),
  example: { items: [{ ...example, steps: 1 }], found: 1 },
  async run({ scope, params, query }, deps) {
    const fromIso = before(await databaseTime(deps.db), query.window)
    const { changes, found } = await changesNear(scope, params, { fromIso, limit: 50 })
    return { items: changes, found }
  },
})

/** Maximum number of rows for a summary of 2 kB. */
const maxSummarized = 30

const summaryEndpoint = endpoint({
  method: 'get',
  path: '/inventory/resources/{kind}/{id}/changes/summary',
  permission: 'read',
  tag,
  summary: 'Changes of a resource in 2 kB at most, as the model reads them',
  description: 'With `incident`, the window ends at the beginning of that incident; later changes are listed too.',
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
  async run({ scope, params, query }, deps) {
    if (!(await showResource(scope, params))) throw notFound(`${params.kind} ${params.id}`)
    const began = query.incident ? await beganAt(deps.db, query.incident) : null
    const from = { iso: began ?? (await databaseTime(deps.db)), isBegin: began !== null }
    const fromIso = before(from.iso, query.window)
    const { changes, found } = await changesNear(scope, params, { fromIso, limit: maxSummarized })
    const isSilent = found === 0 && !(await hasChanges(scope))
    const head = { resource: resourceKey(params), window: query.window, from: fromIso, found }
    return fitSummary(
      changes.map((change) => summarizeChange(change, from)),
      (kept) => ({
        ...head,
        // The newest changes come first.
        changes: kept,
        ...(found > kept.length && { notShown: found - kept.length }),
        ...(isSilent && { note: 'no sender has reported changes here, so unknown changes are possible' }),
      }),
    ) as typeof head & { changes: Record<string, unknown>[] }
  },
})

function before(iso: string, text: string): string {
  return new Date(Date.parse(iso) - (parseDuration(text) ?? 0) * 1000).toISOString()
}

export const path = '/api/v1/ingest/change'

/** Routes for deployments and other changes: as a list, and near a resource. */
export const changeRoutes = [listEndpoint, nearEndpoint, summaryEndpoint]
