import { z } from '@hono/zod-openapi'
import { recordAudit } from '../../db/audit.ts'
import type { Effect } from '../../db/effects.ts'
import { HasDeviceError, readSite, writeSite } from '../../db/site.ts'
import { type Site, type SiteChange, site, siteChange } from '../../domain/site.ts'
import { reconcileEffect } from '../../effects/run-effect.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint, type Router } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'
import { incidentId } from './examples.ts'

export function effectRoutes(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/effects/{key}',
    permission: 'read',
    tag: 'platform',
    summary: 'What became of a write',
    description: '404 means that it was never accepted: nothing happened.',
    params: z.object({ key: z.string().min(1).max(400) }),
    answer: z.object({
      key: z.string(),
      status: z.enum(['running', 'done', 'failed', 'indeterminate']),
      detail: z.string(),
      result: z.record(z.string(), z.unknown()),
    }),
    example: {
      key: `${incidentId}.1:3:tool_started:0`,
      status: 'done',
      detail: '2 nodes converged',
      result: { nodes: 2 },
    },
    problems: [404],
    async run({ params }) {
      const effect = await reconcileEffect(deps, params.key)
      if (!effect) throw notFound(`effect ${params.key}`)
      const { key, status, detail, result } = effect
      return { key, status, detail, result }
    },
  })
}

/** The answer to a write: done, or a problem that says why not, or by which key to ask. */
export function answerEffect(effect: Effect): { detail: string; key: string } & Record<string, unknown> {
  const { key, status, detail, result } = effect
  if (status === 'done') return { detail, ...result, key }
  const fields = { key, result }
  if (status === 'failed') throw new Problem(502, 'EFFECT_FAILED', detail, { fields })
  const text = 'What became of it is not known yet: ask for its key.'
  throw new Problem(504, status === 'running' ? 'EFFECT_RUNNING' : 'EFFECT_INDETERMINATE', text, { fields })
}

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
