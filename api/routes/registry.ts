import { z } from '@hono/zod-openapi'
import { listResources, showResource, surroundingsOf } from '../../db/inventory/show-resource.ts'
import { idPattern } from '../../domain/kinds.ts'
import { listedResource, type ShownResource, shownResource } from '../../domain/listed-resource.ts'
import { inventoryKind, parseResourceKey } from '../../domain/registry.ts'
import { listJobs } from '../../effects/jobs/jobs.ts'
import { page, pageOf, pageQuery } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound } from '../http/problem.ts'
import { readResourceState } from './resource-state.ts'

const registryTag = 'platform'

/** A resource as `kind:id`, in the form that addresses of pages have. */
const resourceKey = z
  .string()
  .max(160)
  .regex(new RegExp(`^(${inventoryKind.options.join('|')}):${idPattern.source.slice(1)}`), 'is not kind:id')

function toRef(key: string | undefined) {
  return key === undefined ? null : parseResourceKey(key)
}

const exampleResource: ShownResource = {
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
  acts: [],
  state: { health: 'nominal', observed: 'node web-1 is nominal', fields: {} },
  relations: [{ from: 'node:web-1', kind: 'belongs_to', to: 'shard:hosts', source: 'site', hasAuthority: true }],
  disagreements: [],
  neighbours: 1,
  alerts: [],
  incidents: [],
}

/** Routes for the registry: every resource that a source lists, with its sources. */
export const registryRoutes = [
  endpoint({
    method: 'get',
    path: '/inventory/resources',
    permission: 'read',
    tag: registryTag,
    summary: 'All resources that a source lists, by kind and id',
    description:
      '`needs=host:host-1`: resources that run on, belong to or depend on host-1. `needed_by=vm:vm-1`: resources that vm-1 runs on, belongs to or depends on.',
    query: z.object({
      kind: inventoryKind.optional(),
      q: z.string().min(1).max(100).optional(),
      stale: z.enum(['true', 'false']).optional(),
      needs: resourceKey.optional(),
      needed_by: resourceKey.optional(),
      limit: pageQuery.limit,
      cursor: z
        .string()
        .max(160)
        .regex(/^[a-z_]+:[A-Za-z0-9._:@-]+$/, 'is not the cursor of a page')
        .optional(),
    }),
    answer: pageOf(listedResource),
    example: { items: [listedResource.parse(exampleResource)], nextCursor: null },
    async run({ scope, query: { kind, q, stale, needs, needed_by: neededBy, limit, cursor } }, deps) {
      await deps.state.refresh()
      const isStale = stale === undefined ? null : stale === 'true'
      const ends = { needs: toRef(needs), neededBy: toRef(neededBy) }
      const filter = { kind: kind ?? null, q: q ?? null, isStale, ...ends }
      const rows = await listResources(scope, filter, { after: cursor ?? null, limit: limit + 1 })
      return page(rows, limit, (last) => `${last.kind}:${last.id}`)
    },
  }),
  endpoint({
    method: 'get',
    path: '/inventory/resources/{kind}/{id}',
    permission: 'read',
    tag: registryTag,
    summary: 'One resource: its sources, relations, firing alerts and incidents',
    params: z.object({ kind: inventoryKind, id: z.string().min(1).max(128) }),
    query: z.object({ brief: z.enum(['true', 'false']).optional() }),
    answer: shownResource,
    example: exampleResource,
    problems: [404],
    async run({ scope, params, query: { brief } }, deps) {
      await deps.state.refresh()
      const found = await showResource(scope, params)
      if (!found) throw notFound(`${params.kind} ${params.id}`)
      const state = await readResourceState(scope, deps, params)
      const fitting = listJobs(deps.jobs, params).map(({ name, about }) => ({ name, about }))
      const jobs = fitting.length > 0 ? { jobs: fitting } : {}
      return brief === 'true'
        ? { ...found, ...jobs, state, said: found.said.slice(0, 4), relations: found.relations.slice(0, 20) }
        : { ...found, ...jobs, state, around: await surroundingsOf(scope, params) }
    },
  }),
]
