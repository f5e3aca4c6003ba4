import { z } from '@hono/zod-openapi'
import { ImportFaultsError, importSiteFile, knownKeys, readSiteFile } from '../../db/inventory/import-site.ts'
import { listResources, showResource, surroundingsOf } from '../../db/inventory/show-resource.ts'
import { HasDeviceError } from '../../db/inventory/site.ts'
import { recordAudit } from '../../db/log/audit.ts'
import { idPattern } from '../../domain/kinds.ts'
import {
  inventoryKind,
  listedResource,
  parseResourceKey,
  type ShownResource,
  shownResource,
} from '../../domain/registry.ts'
import {
  findSiteFaults,
  type SiteChange,
  type SiteFault,
  type SiteFile,
  siteChange,
  siteFile,
} from '../../domain/site.ts'
import { listJobs } from '../../effects/jobs/jobs.ts'
import type { ApiDeps } from '../deps.ts'
import { page, pageOf, pageQuery } from '../http/body.ts'
import { endpoint, type Router } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/middleware.ts'
import { readResourceState } from './resources.ts'

const tag = 'platform'

const example: SiteFile = {
  groups: [{ id: 'hosts', region: 'site', role: 'web' }],
  nodes: [{ id: 'web-1', group: 'hosts', hostname: 'web-1.example.com', ip: '192.0.2.11' }],
  hosts: [],
  resources: [{ kind: 'service_unit', id: 'web-1:nginx.service', name: 'nginx.service' }],
  relations: [{ from: 'service_unit:web-1:nginx.service', kind: 'runs_on', to: 'node:web-1' }],
}

/** Thrown to take an import back that was only to be shown. */
class OnlyShown extends Error {
  readonly change: SiteChange
  constructor(change: SiteChange) {
    super('a dry run')
    this.change = change
  }
}

export function inventoryRoutes(router: Router, deps: ApiDeps): void {
  const { db } = deps

  endpoint(router, deps, {
    method: 'get',
    path: '/inventory',
    permission: 'read',
    tag,
    summary: 'What was imported, as a file that can be imported again',
    answer: siteFile,
    example,
    async run() {
      await deps.state.refresh()
      return await readSiteFile(db, { hasPlatform: deps.platform !== null })
    },
  })

  endpoint(router, deps, {
    method: 'put',
    path: '/inventory',
    permission: 'manage_devices',
    tag,
    summary: 'Imports hosts, nodes, groups, and other resources with their relations',
    description:
      'Adds and changes what the body holds; with `?prune=true`, removes what it does not. With `?dry_run=true` nothing is stored, and the answer says what would be. 409 `PLATFORM_KEEPS` for hosts, nodes and groups where a platform is configured, 422 with every fault of resources and relations, and 409 `HAS_DEVICE` for what has a device and would be removed.',
    query: z.object({ dry_run: z.enum(['true', 'false']).optional(), prune: z.enum(['true', 'false']).optional() }),
    body: siteFile,
    bodyExample: example,
    async checkBody(body, c) {
      const faults = findSiteFaults(body, await knownKeys(db, { prune: c.req.query('prune') === 'true' }))
      if (faults.length > 0) throw toProblem(faults)
    },
    answer: siteChange.extend({ applied: z.boolean() }),
    example: { added: ['web-1'], changed: [], removed: [], kept: [], applied: true },
    problems: [409],
    async run({ body, query: { dry_run: isDry, prune }, principal }) {
      if (deps.platform && body.groups.length + body.nodes.length + body.hosts.length > 0) {
        const detail =
          'The platform says which hosts, nodes and groups there are: only resources and relations are imported beside it.'
        throw new Problem(409, 'PLATFORM_KEEPS', detail)
      }
      try {
        const change = await db.transaction().execute(async (trx) => {
          const made = await importSiteFile(trx, body, { prune: prune === 'true', hasPlatform: deps.platform !== null })
          if (isDry === 'true') throw new OnlyShown(made)
          const detail = `${made.added.length} added, ${made.changed.length} changed, ${made.removed.length} removed`
          await recordAudit(trx, { who: principal.name, what: 'inventory.imported', subject: 'inventory', detail })
          return made
        })
        return { ...change, applied: true }
      } catch (error) {
        if (error instanceof OnlyShown) return { ...error.change, applied: false }
        if (error instanceof ImportFaultsError)
          throw toProblem(error.faults.map((message) => ({ field: null, message })))
        if (error instanceof HasDeviceError) throw new Problem(409, 'HAS_DEVICE', error.message)
        throw error
      }
    },
  })
}

const mostFaults = 200

/** All faults at once, so that a file is put right in one go. */
function toProblem(faults: readonly SiteFault[]): Problem {
  const errors = faults.slice(0, mostFaults).map(({ field, message }) => ({ in: 'body', field, message }))
  const more = faults.length > mostFaults ? `, the first ${mostFaults} of them named` : ''
  const first = faults.slice(0, 3).map(({ field, message }) => (field === null ? message : `${field}: ${message}`))
  const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`
  return new Problem(422, 'INVALID', `The file has ${count}${more}: ${first.join('; ')}`, { fields: { errors } })
}

const registryTag = 'platform'

/** `kind:id`, as addresses of the page name a resource. */
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
    tag: registryTag,
    summary: 'Everything that any source lists, by kind and id',
    description:
      '`needs=host:host-1`: what runs on it, belongs to it or depends on it. `needed_by=vm:vm-1`: what that one runs on, belongs to or depends on.',
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
    async run({ scope, query: { kind, q, stale, needs, needed_by: neededBy, limit, cursor } }) {
      await deps.state.refresh()
      const isStale = stale === undefined ? null : stale === 'true'
      const ends = { needs: toRef(needs), neededBy: toRef(neededBy) }
      const filter = { kind: kind ?? null, q: q ?? null, isStale, ...ends }
      const rows = await listResources(scope, filter, { after: cursor ?? null, limit: limit + 1 })
      return page(rows, limit, (last) => `${last.kind}:${last.id}`)
    },
  })

  endpoint(router, deps, {
    method: 'get',
    path: '/inventory/resources/{kind}/{id}',
    permission: 'read',
    tag: registryTag,
    summary: 'One resource: who says what of it, its relations, what fires on it, its incidents',
    params: z.object({ kind: inventoryKind, id: z.string().min(1).max(128) }),
    query: z.object({ brief: z.enum(['true', 'false']).optional() }),
    answer: shownResource,
    example: exampleResource,
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
        : { ...found, ...jobs, state, around: await surroundingsOf(scope, params) }
    },
  })
}
