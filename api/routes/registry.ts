import { z } from '@hono/zod-openapi'
import { listResources, showResource } from '../../db/registry-view.ts'
import { listedResource, type ShownResource, shownResource } from '../../domain/registry.ts'
import { inventoryKind } from '../../domain/resource.ts'
import { listJobs } from '../../effects/jobs/jobs.ts'
import type { ApiDeps } from '../deps.ts'
import { page, pageOf, pageQuery } from '../http/body.ts'
import { endpoint, type Router } from '../http/endpoint.ts'
import { notFound } from '../http/problem.ts'
import { readResourceState } from './resources.ts'

const tag = 'platform'

const example: ShownResource = {
  kind: 'node',
  id: 'web-1',
  name: 'web-1.example.com',
  aliases: ['192.0.2.11'],
  canonical: 'node:web-1',
  sources: ['site'],
  seenAt: '2026-11-21T01:45:40.120000Z',
  isStale: false,
  firstSeenAt: '2026-11-20T09:12:00.000000Z',
  said: [
    {
      source: 'site',
      seenAt: '2026-11-21T01:45:40.120000Z',
      name: 'web-1.example.com',
      attributes: { ip: '192.0.2.11' },
    },
  ],
  sameAs: [],
  state: { health: 'nominal', observed: 'node web-1 is nominal', fields: {} },
  relations: [{ from: 'node:web-1', kind: 'belongs_to', to: 'shard:hosts', source: 'site', hasAuthority: true }],
  alerts: [],
  incidents: [],
}

/** The registry: every resource that any source lists, with who says so. */
export function registryRoutes(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/inventory/resources',
    permission: 'read',
    tag,
    summary: 'Everything that any source lists, by kind and id',
    query: z.object({
      kind: inventoryKind.optional(),
      q: z.string().min(1).max(100).optional(),
      stale: z.enum(['true', 'false']).optional(),
      limit: pageQuery.limit,
      cursor: z
        .string()
        .max(160)
        .regex(/^[a-z_]+:[A-Za-z0-9._:@-]+$/, 'is not the cursor of a page')
        .optional(),
    }),
    answer: pageOf(listedResource),
    example: { items: [listedResource.parse(example)], nextCursor: null },
    async run({ scope, query: { kind, q, stale, limit, cursor } }) {
      await deps.state.refresh()
      const filter = { kind: kind ?? null, q: q ?? null, isStale: stale === undefined ? null : stale === 'true' }
      const rows = await listResources(scope, filter, { after: cursor ?? null, limit: limit + 1 })
      return page(rows, limit, (last) => `${last.kind}:${last.id}`)
    },
  })

  endpoint(router, deps, {
    method: 'get',
    path: '/inventory/resources/{kind}/{id}',
    permission: 'read',
    tag,
    summary: 'One resource: who says what of it, its relations, what fires on it, its incidents',
    params: z.object({ kind: inventoryKind, id: z.string().min(1).max(128) }),
    query: z.object({ brief: z.enum(['true', 'false']).optional() }),
    answer: shownResource,
    example,
    problems: [404],
    async run({ scope, params, query: { brief } }) {
      await deps.state.refresh()
      const found = await showResource(scope, params)
      if (!found) throw notFound(`${params.kind} ${params.id}`)
      const state = await readResourceState(scope, deps, params)
      const fitting = listJobs(deps.jobs, params).map(({ name, about }) => ({ name, about }))
      const jobs = fitting.length > 0 ? { jobs: fitting } : {}
      return brief === 'true'
        ? { ...found, ...jobs, state, said: found.said.slice(0, 4), relations: found.relations.slice(0, 20) }
        : { ...found, ...jobs, state }
    },
  })
}
