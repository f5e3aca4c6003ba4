import { z } from '@hono/zod-openapi'
import { ImportFaultsError, importSiteFile, knownKeys, readSiteFile } from '../../db/inventory/import-site.ts'
import { HasDeviceError } from '../../db/inventory/site.ts'
import { recordAudit } from '../../db/log/audit.ts'
import {
  findSiteFaults,
  type SiteChange,
  type SiteFault,
  type SiteFile,
  siteChange,
  siteFile,
} from '../../domain/site.ts'
import { endpoint } from '../http/endpoint.ts'
import { Problem } from '../http/problem.ts'

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

export const inventoryRoutes = [
  endpoint({
    method: 'get',
    path: '/inventory',
    permission: 'read',
    tag,
    summary: 'What was imported, as a file that can be imported again',
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
      'Adds and changes what the body holds; with `?prune=true`, removes what it does not. With `?dry_run=true` nothing is stored, and the answer says what would be. 409 `PLATFORM_KEEPS` for hosts, nodes and groups where a platform is configured, 422 with every fault of resources and relations, and 409 `HAS_DEVICE` for what has a device and would be removed.',
    query: z.object({ dry_run: z.enum(['true', 'false']).optional(), prune: z.enum(['true', 'false']).optional() }),
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
      if (deps.platform && body.groups.length + body.nodes.length + body.hosts.length > 0) {
        const detail =
          'The platform says which hosts, nodes and groups there are: only resources and relations are imported beside it.'
        throw new Problem(409, 'PLATFORM_KEEPS', detail)
      }
      try {
        const change = await deps.db.transaction().execute(async (trx) => {
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
  }),
]

const maxFaults = 200

/** All faults at once, so that a file is put right in one go. */
function toProblem(faults: readonly SiteFault[]): Problem {
  const errors = faults.slice(0, maxFaults).map(({ field, message }) => ({ in: 'body', field, message }))
  const more = faults.length > maxFaults ? `, the first ${maxFaults} of them named` : ''
  const first = faults.slice(0, 3).map(({ field, message }) => (field === null ? message : `${field}: ${message}`))
  const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`
  return new Problem(422, 'INVALID', `The file has ${count}${more}: ${first.join('; ')}`, { fields: { errors } })
}
