import type { Db } from '../db/connect.ts'
import { typeOfApproval, typeOfIncident } from '../db/incident-type.ts'
import { typesOf } from '../domain/operator.ts'
import type { Context, Middleware } from './hono.ts'
import { Problem } from './problem.ts'

/**
 * Keeps a token for some incident types to incidents of those types. What it asks about is read from the path, and a path that
 * names no incident is refused: an operation that is added later is closed until somebody says what it is about.
 */
export function withinTypes(db: Db): Middleware {
  return async (c, next) => {
    const principal = c.get('principal')
    const types = typesOf(principal)
    if (types) {
      const type = await typeAsked(db, c)
      if (type === null || !types.includes(type)) {
        const said = `This token of ${principal.name} is for incidents of type ${types.join(', ')}.`
        throw new Problem(403, 'OUT_OF_SCOPE', said)
      }
    }
    await next()
  }
}

async function typeAsked(db: Db, c: Context): Promise<string | null> {
  const [, kind, id] = /^\/api\/v1\/([a-z-]+)(?:\/([^/]+))?/.exec(c.req.path) ?? []
  if (kind === 'incidents' && id) return await typeOfIncident(db, id)
  if (kind === 'approvals' && id) return await typeOfApproval(db, id)
  if (kind === 'agent') return 'question'
  if (kind === 'incidents') {
    const body: unknown = await c.req.json().catch(() => null)
    const type = (body as { type?: unknown } | null)?.type
    return typeof type === 'string' ? type : null
  }
  return null
}
