import { z } from 'zod'
import { recordAudit } from '../db/audit.ts'
import { addressOf } from './address.ts'
import { afterFailure } from './attempts.ts'
import type { ApiDeps } from './deps.ts'
import type { Middleware } from './hono.ts'
import { answerProblem } from './problem.ts'

const person = z.looseObject({ name: z.string(), role: z.string() })
const problem = z.looseObject({ detail: z.string() })

/**
 * Writes down who signed a browser in, and every try that was refused until there were too many. What was shown is never
 * part of it.
 */
export function recordSignIns({ db }: Pick<ApiDeps, 'db'>): Middleware {
  return async (c, next) => {
    await next()
    // Asking who is signed in shows nothing that could be guessed.
    if (c.req.method !== 'POST') return
    const { status } = c.res
    const flood = status === 401 ? await afterFailure(db, c) : null
    if (flood) {
      c.res = undefined
      c.res = answerProblem(c, flood)
      return
    }
    if (c.req.path !== '/auth/session' || ![200, 401, 403].includes(status)) return
    const said: unknown = await c.res.clone().json()
    const where = { subject: 'browser', address: addressOf(c) }
    if (status === 200) {
      const { name, role } = person.parse(said)
      await recordAudit(db, { who: name, what: 'sign_in.done', detail: `Signed in as ${role}`, ...where })
    } else {
      const { detail } = problem.parse(said)
      await recordAudit(db, { who: 'unknown', what: 'sign_in.refused', detail, ...where })
    }
  }
}
