import { z } from '@hono/zod-openapi'
import { recordAudit } from '../../db/audit.ts'
import { HasDeviceError, readSite, writeSite } from '../../db/site.ts'
import { type Site, type SiteChange, site, siteChange } from '../../domain/site.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint, type Router } from '../http/endpoint.ts'
import { Problem } from '../http/problem.ts'

const tag = 'platform'

const example: Site = {
  groups: [{ id: 'hosts', region: 'site', role: 'web' }],
  nodes: [{ id: 'web-1', group: 'hosts', hostname: 'web-1.example.com', ip: '192.0.2.11' }],
  hosts: [],
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
    summary: 'Hosts, and nodes in their groups, as a file that can be imported',
    answer: site,
    example,
    async run() {
      await deps.state.refresh()
      return await readSite(db)
    },
  })

  endpoint(router, deps, {
    method: 'put',
    path: '/inventory',
    permission: 'manage_devices',
    tag,
    summary: 'Imports hosts, nodes and groups',
    description:
      'Adds and changes what the body holds; with `?prune=true`, removes what it does not. With `?dry_run=true` nothing is stored, and the answer says what would be. 409 `PLATFORM_KEEPS` where a platform is configured, and 409 `HAS_DEVICE` for what has a device and would be removed.',
    query: z.object({ dry_run: z.enum(['true', 'false']).optional(), prune: z.enum(['true', 'false']).optional() }),
    body: site,
    bodyExample: example,
    answer: siteChange.extend({ applied: z.boolean() }),
    example: { added: ['web-1'], changed: [], removed: [], kept: [], applied: true },
    problems: [409],
    async run({ body, query: { dry_run: isDry, prune }, principal }) {
      if (deps.platform) {
        const detail = 'The platform says what there is: nothing can be imported beside it.'
        throw new Problem(409, 'PLATFORM_KEEPS', detail)
      }
      try {
        const change = await db.transaction().execute(async (trx) => {
          const made = await writeSite(trx, body, { prune: prune === 'true' })
          if (isDry === 'true') throw new OnlyShown(made)
          const detail = `${made.added.length} added, ${made.changed.length} changed, ${made.removed.length} removed`
          await recordAudit(trx, { who: principal.name, what: 'inventory.imported', subject: 'inventory', detail })
          return made
        })
        return { ...change, applied: true }
      } catch (error) {
        if (error instanceof OnlyShown) return { ...error.change, applied: false }
        if (error instanceof HasDeviceError) throw new Problem(409, 'HAS_DEVICE', error.message)
        throw error
      }
    },
  })
}
