import { z } from '@hono/zod-openapi'
import { ImportFaultsError, importSiteFile, knownKeys, readSiteFile } from '../../db/inventory/import-site.ts'
import { beginImport, showImport } from '../../db/inventory/imports.ts'
import { HasDeviceError } from '../../db/inventory/site.ts'
import {
  countEntries,
  findSiteFaults,
  type InventoryImport,
  inventoryImport,
  maxEntriesAtOnce,
  type SiteFault,
  type SiteFile,
  siteChange,
  siteFile,
} from '../../domain/site.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'
import { importApart } from '../import-apart.ts'

const tag = 'platform'

const example: SiteFile = {
  groups: [{ id: 'hosts', region: 'site', role: 'web' }],
  nodes: [{ id: 'web-1', group: 'hosts', hostname: 'web-1.example.com', ip: '192.0.2.11' }],
  hosts: [],
  resources: [{ kind: 'service_unit', id: 'web-1:nginx.service', name: 'nginx.service' }],
  relations: [{ from: 'service_unit:web-1:nginx.service', kind: 'runs_on', to: 'node:web-1' }],
}

const importQuery = z.object({
  dry_run: z.enum(['true', 'false']).optional(),
  prune: z.enum(['true', 'false']).optional(),
})
const importId = z.object({ id: z.string().regex(/^imp_[0-9a-z]{26}$/, 'must be imp_ and 26 digits and letters') })

const exampleChange = { added: ['web-1'], changed: [], removed: [], kept: [] }
const exampleImport: InventoryImport = {
  id: 'imp_01kam3x0q2v8d5t7w9y1b3c5e7',
  state: 'running',
  entries: 20_000,
  step: 'resources',
  done: 5_000,
  total: 20_000,
  change: null,
  applied: false,
  reason: null,
  faults: [],
  createdAt: '2026-11-21T01:45:40.120000Z',
  endedAt: null,
}

export const inventoryRoutes = [
  endpoint({
    method: 'get',
    path: '/inventory',
    permission: 'read',
    tag,
    summary: 'The imported inventory, as a file that can be imported again',
    answer: siteFile,
    example,
    async run(_, deps) {
      await deps.state.refresh()
      return await readSiteFile(deps.db, { hasPlatform: deps.platform !== null })
    },
  }),
  endpoint({
    method: 'put',
    path: '/inventory',
    permission: 'manage_devices',
    tag,
    summary: 'Imports hosts, nodes, groups, and other resources with their relations',
    description:
      'Adds and changes the entries of the request; with `?prune=true`, removes all other entries. With `?dry_run=true` nothing is stored, and the answer lists what would change. 409 `PLATFORM_KEEPS` for hosts, nodes and groups if a platform is configured; 422 with every fault of resources and relations; 409 `HAS_DEVICE` for an entry with a device that would be removed.',
    query: importQuery,
    body: siteFile,
    bodyExample: example,
    async checkBody(body, c, { db }) {
      const faults = findSiteFaults(body, await knownKeys(db, { prune: c.req.query('prune') === 'true' }))
      if (faults.length > 0) throw toProblem(faults)
    },
    answer: siteChange.extend({ applied: z.boolean() }),
    example: { added: ['web-1'], changed: [], removed: [], kept: [], applied: true },
    problems: [409],
    async run({ body, query: { dry_run: isDry, prune }, principal }, deps) {
      refuseBesidePlatform(body, deps)
      const entries = countEntries(body)
      if (entries > maxEntriesAtOnce) {
        const detail = `The file has ${entries} entries, and at most ${maxEntriesAtOnce} are imported at once: PUT /inventory/imports/{id} takes up to 100,000 as a job, as "nightshift inventory import" does.`
        throw new Problem(413, 'TOO_LARGE', detail)
      }
      const wish = { isDryRun: isDry === 'true', isPruning: prune === 'true', hasPlatform: deps.platform !== null }
      try {
        const change = await importSiteFile(deps.db, body, { ...wish, who: principal.name })
        return { ...change, applied: !wish.isDryRun }
      } catch (error) {
        if (error instanceof ImportFaultsError)
          throw toProblem(error.faults.map((message) => ({ field: null, message })))
        if (error instanceof HasDeviceError) throw new Problem(409, 'HAS_DEVICE', error.message)
        throw error
      }
    },
  }),
  endpoint({
    method: 'put',
    path: '/inventory/imports/{id}',
    permission: 'manage_devices',
    tag,
    summary: 'Imports a large file of the inventory as a job',
    description:
      'The caller chooses the id, so a repeated request does not start a second import. One import runs at a time: 409 `BUSY`. `GET` shows its progress and result: the whole file is imported, or nothing, and then `faults` names each fault.',
    params: importId,
    query: importQuery,
    body: z.looseObject({}),
    bodyExample: example,
    answer: inventoryImport,
    example: exampleImport,
    status: 202,
    problems: [409],
    async run({ params: { id }, body: file, query: { dry_run: isDry, prune }, principal, scope }, deps) {
      refuseBesidePlatform(file, deps)
      const wish = { isDryRun: isDry === 'true', isPruning: prune === 'true', hasPlatform: deps.platform !== null }
      const who = principal.name
      const begun = await beginImport(deps.db, { id, who, isDryRun: wish.isDryRun, entries: countEntries(file) })
      if (begun === 'busy')
        throw new Problem(
          409,
          'BUSY',
          'Another import is running, and only one may run at a time. Try again when it has ended.',
        )
      if (begun === 'begun')
        void importApart(deps, { ...wish, id, who, file }).catch((error) =>
          deps.log.error({ err: error, id }, 'the end of an import could not be recorded'),
        )
      return (await showImport(scope, id)) as InventoryImport
    },
  }),
  endpoint({
    method: 'get',
    path: '/inventory/imports/{id}',
    permission: 'read',
    tag,
    summary: 'The progress or result of the import of a large file',
    params: importId,
    answer: inventoryImport,
    example: { ...exampleImport, state: 'done', step: 'relations', change: exampleChange, applied: true },
    problems: [404],
    async run({ params: { id }, scope }) {
      const found = await showImport(scope, id)
      if (!found) throw notFound(`import ${id}`)
      return found
    },
  }),
]

/** Refuses groups, nodes and hosts in a file if a platform lists them. */
function refuseBesidePlatform(file: Record<string, unknown>, { platform }: ApiDeps): void {
  const { groups, nodes, hosts } = file
  if (!platform || countEntries({ groups, nodes, hosts }) === 0) return
  const detail = 'The platform lists hosts, nodes and groups, so only resources and relations can be imported.'
  throw new Problem(409, 'PLATFORM_KEEPS', detail)
}

const maxFaults = 200

/** Returns all faults of a file at once, so that a person can correct the file in one step. */
function toProblem(faults: readonly SiteFault[]): Problem {
  const errors = faults.slice(0, maxFaults).map(({ field, message }) => ({ in: 'body', field, message }))
  const more = faults.length > maxFaults ? `, the first ${maxFaults} of them named` : ''
  const first = faults.slice(0, 3).map(({ field, message }) => (field === null ? message : `${field}: ${message}`))
  const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`
  return new Problem(422, 'INVALID', `The file has ${count}${more}: ${first.join('; ')}`, { fields: { errors } })
}
