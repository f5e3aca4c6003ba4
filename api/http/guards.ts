import { typeOfApproval, typeOfIncident } from '../../db/access/operators.ts'
import type { Db } from '../../db/connect.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { recordSecurityEvent } from '../../db/log/audit.ts'
import { authorityOf, judgedRow, wasApprovalUsed } from '../../db/log/calls.ts'
import { actionDigest } from '../../domain/digest.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { isType } from '../../domain/incident-type.ts'
import { type Permission, permissions, permissionsOf, typesOf } from '../../domain/permissions.ts'
import { questionType } from '../../domain/question.ts'
import type { Context, Middleware } from '../deps.ts'
import { Problem } from './problem.ts'

/** Refuses a principal who lacks the permission. Every endpoint names a permission. */
export function permit(permission: Permission): Middleware {
  return async (c, next) => {
    const principal = c.get('principal')
    if (!permissionsOf(principal).includes(permission)) {
      const { role, name } = principal
      const narrowed = permissions[role].includes(permission) ? ", which is outside this token's scopes" : ''
      throw new Problem(
        403,
        'FORBIDDEN',
        `${name} (${role}) may not do this without the permission ${permission}${narrowed}.`,
      )
    }
    await next()
  }
}

/**
 * Limits a token for some incident types to incidents of these types. Reads the incident from the
 * path, and refuses a path without an incident. A new operation is refused until this function
 * knows its path.
 */
export function withinTypes(db: Db): Middleware {
  return async (c, next) => {
    const principal = c.get('principal')
    const types = typesOf(principal)
    if (types) {
      const type = await getRequestedType(db, c)
      if (type === null || !types.some((each) => isType(each, type))) {
        const said = `This token of ${principal.name} works only for incidents of type ${types.join(', ')}.`
        throw new Problem(403, 'OUT_OF_SCOPE', said)
      }
    }
    await next()
  }
}

async function getRequestedType(db: Db, c: Context): Promise<string | null> {
  const [, kind, id] = /^\/api\/v1\/([a-z-]+)(?:\/([^/]+))?/.exec(c.req.path) ?? []
  if (kind === 'incidents' && id) return await typeOfIncident(db, id)
  if (kind === 'approvals' && id) return await typeOfApproval(db, id)
  if (kind === 'trust' && id) return id
  if (kind === 'agent') return questionType
  if (kind === 'incidents' || (kind === 'stops' && !id)) {
    const body: unknown = await c.req.json().catch(() => null)
    const type = (body as { type?: unknown } | null)?.type
    return typeof type === 'string' ? type : null
  }
  return null
}

/**
 * The action behind an agent's request: its tool, and how the request becomes the arguments that
 * are compared. `params` and `body` are as they were sent, before a schema parsed them.
 */
export type AgentAction = {
  /** The names of the tools for the OpenAPI document, if one route serves several tools. */
  tools?: string
  /**
   * The tool behind the request. If one route serves several tools, a function that reads the tool
   * from the body, or returns null.
   */
  tool: string | ((body: Record<string, unknown>) => string | null)
  identity(
    params: Record<string, string>,
    body: Record<string, unknown>,
    db: Db,
  ): Record<string, unknown> | Promise<Record<string, unknown> | null>
  /** True if the action needs an approval, which the run that announced it has used up. */
  approved?: boolean
  /** True if a write needs a used-up approval, or the use of a standing grant. */
  approvedWrites?: boolean
}

/**
 * Refuses an agent's write unless a run announced exactly this action: the log has `tool_started`
 * under the request's key with this digest, for the current attempt. Otherwise the response is
 * `UNJUDGED`, and the incident gets a security event. Requests of people are not checked. A route
 * without an action is closed to agents.
 */
export function onlyJudged(db: Db, action: AgentAction | null): Middleware {
  return async (c, next) => {
    if (c.get('principal').role !== 'agent') return await next()
    const key = c.req.header('idempotency-key') ?? ''
    const params = c.req.param() as Record<string, string>
    const body = await readSentBody(c)
    const tool = typeof action?.tool === 'function' ? action.tool(body) : (action?.tool ?? null)
    const identity = action && tool !== null && key ? await action.identity(params, body, db) : null
    const row = tool !== null && identity ? await judgedRow(db, key, actionDigest(tool, identity)) : null
    if (!action || !row || !(await isAuthorized(db, action, row))) {
      const named = [params.id, body.incident_id, row?.incidentId, key.split('.')[0]]
      await recordUnjudged(db, named, c.req.path, tool ?? 'no tool')
      const detail = 'No run announced this request, so it was not judged. Nothing was done.'
      throw new Problem(403, 'UNJUDGED', detail)
    }
    c.set('judged', row)
    return await next()
  }
}

async function isAuthorized(db: Db, action: AgentAction, row: IncidentEvent<'tool_started'>): Promise<boolean> {
  if (action.approved && !(await isApproved(db, row))) return false
  return !action.approvedWrites || row.metadata.effect === 'read' || (await authorityOf(db, row)) !== null
}

async function isApproved(
  db: Db,
  row: { incidentId: string; metadata: { approvalId: string | null; actionDigest: string } },
) {
  const { approvalId, actionDigest: digest } = row.metadata
  if (approvalId === null) return false
  return await wasApprovalUsed(db, { id: approvalId, incidentId: row.incidentId, actionDigest: digest })
}

async function readSentBody(c: Context): Promise<Record<string, unknown>> {
  try {
    const body: unknown = JSON.parse(await c.req.text())
    return body !== null && typeof body === 'object' && !Array.isArray(body) ? (body as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** Writes a security event to the first of the named incidents that exists. */
async function recordUnjudged(db: Db, named: unknown[], path: string, tool: string): Promise<void> {
  for (const id of named) {
    if (typeof id !== 'string' || !/^inc_[0-9a-z]{26}$/.test(id) || !(await incidentById(db, id))) continue
    await db.transaction().execute((trx) =>
      recordSecurityEvent(trx, id, {
        code: 'UNJUDGED',
        door: 'api',
        subject: 'agent',
        detail: `${tool} at ${path} was refused, because no run announced the call`.slice(0, 300),
      }),
    )
    return
  }
}
