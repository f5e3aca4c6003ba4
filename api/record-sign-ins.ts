import { z } from 'zod'
import { recordAudit } from '../db/audit.ts'
import { addressOf } from './address.ts'
import type { ApiDeps } from './deps.ts'
import type { Middleware } from './hono.ts'

const person = z.looseObject({ name: z.string(), role: z.string() })
const problem = z.looseObject({ detail: z.string() })

/** Writes down who signed a browser in, and every try that was refused. What was shown is never part of it. */
export function recordSignIns(deps: Pick<ApiDeps, 'db' | 'log'>): Middleware {
  return async (c, next) => {
    await next()
    if (c.req.method !== 'POST' || c.req.path !== '/auth/session') return
    const { status } = c.res
    if (status !== 200 && status !== 401 && status !== 403) return
    const said: unknown = await c.res.clone().json()
    const subject = 'browser'
    const address = addressOf(c)
    if (status === 200) {
      const { name, role } = person.parse(said)
      await recordAudit(deps.db, { who: name, what: 'sign_in.done', subject, detail: `Signed in as ${role}`, address })
    } else {
      const { detail } = problem.parse(said)
      await recordAudit(deps.db, { who: 'unknown', what: 'sign_in.refused', subject, detail, address })
    }
  }
}
