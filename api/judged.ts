import type { Db } from '../db/connect.ts'
import { incidentById } from '../db/incidents.ts'
import { authorityOf, judgedRow, wasConsumed } from '../db/judged.ts'
import { recordSecurityEvent } from '../db/security-events.ts'
import { actionDigest } from '../domain/digest.ts'
import type { IncidentEvent } from '../domain/event.ts'
import type { Context, Middleware } from './hono.ts'
import { Problem } from './problem.ts'

/**
 * What a request of an agent stands for: the tool, and how the request becomes the identity of its action, exactly as the
 * tool's arguments do. `params` and `body` are what was sent, before any schema touched it.
 */
export type AgentAction = {
  /** Where one route serves several tools, the one that was asked for; null: none. */
  tool: string | ((body: Record<string, unknown>) => string | null)
  identity(
    params: Record<string, string>,
    body: Record<string, unknown>,
  ): Record<string, unknown> | Promise<Record<string, unknown> | null>
  /** The action needs a person's approval, used up by the run that announced it. */
  approved?: boolean
  /** The same, or a use of a standing grant, where the ruling was about a write. */
  approvedWrites?: boolean
}

/**
 * No write of an agent is done unless a run announced this very action: its log holds `tool_started` under the request's key
 * with the same digest, for the attempt that is current. Anything else is `UNJUDGED` and leaves its trace on the incident.
 * People pass. A route that names no action is closed to agents.
 */
export function onlyJudged(db: Db, action: AgentAction | null): Middleware {
  return async (c, next) => {
    if (c.get('principal').role !== 'agent') return await next()
    const key = c.req.header('idempotency-key') ?? ''
    const params = c.req.param() as Record<string, string>
    const body = await sentBody(c)
    const tool = typeof action?.tool === 'function' ? action.tool(body) : (action?.tool ?? null)
    const identity = action && tool !== null && key ? await action.identity(params, body) : null
    const row = tool !== null && identity ? await judgedRow(db, key, actionDigest(tool, identity)) : null
    if (!action || !row || !(await hasLeave(db, action, row))) {
      const named = [params.id, body.incident_id, row?.incidentId, key.split('.')[0]]
      await suspect(db, named, c.req.path, tool ?? 'no tool')
      const detail = 'No judged and announced action of a run stands behind this request. Nothing was done.'
      throw new Problem(403, 'UNJUDGED', detail)
    }
    c.set('judged', row)
    return await next()
  }
}

async function hasLeave(db: Db, action: AgentAction, row: IncidentEvent<'tool_started'>): Promise<boolean> {
  if (action.approved && !(await isApproved(db, row))) return false
  return !action.approvedWrites || row.metadata.effect === 'read' || (await authorityOf(db, row)) !== null
}

async function isApproved(
  db: Db,
  row: { incidentId: string; metadata: { approvalId: string | null; actionDigest: string } },
) {
  const { approvalId, actionDigest: digest } = row.metadata
  if (approvalId === null) return false
  return await wasConsumed(db, { id: approvalId, incidentId: row.incidentId, actionDigest: digest })
}

async function sentBody(c: Context): Promise<Record<string, unknown>> {
  try {
    const body: unknown = JSON.parse(await c.req.text())
    return body !== null && typeof body === 'object' && !Array.isArray(body) ? (body as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** On the first of the named incidents that there is. */
async function suspect(db: Db, named: unknown[], path: string, tool: string): Promise<void> {
  for (const id of named) {
    if (typeof id !== 'string' || !/^inc_[0-9a-z]{26}$/.test(id) || !(await incidentById(db, id))) continue
    await db.transaction().execute((trx) =>
      recordSecurityEvent(trx, id, {
        code: 'UNJUDGED',
        door: 'api',
        subject: 'agent',
        detail: `${tool} at ${path} was refused: no run announced it`.slice(0, 300),
      }),
    )
    return
  }
}
