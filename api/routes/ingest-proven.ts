import type { Hono } from 'hono'
import { readSettings } from '../../db/settings.ts'
import { isSigned } from '../../notify/pagerduty/webhook.ts'
import type { ApiDeps, Env, Middleware } from '../deps.ts'
import { limitBytes, maxBodyBytes } from '../http/middleware.ts'
import { Problem } from '../http/problem.ts'
import { afterFailure } from '../http/rate-limits.ts'
import { noteRefused, takeBody } from './ingest.ts'

/**
 * Senders that sign their alerts. If the setting is set, each delivery is verified, and no delivery
 * needs a token.
 */
const proofs = [{ dialect: 'pagerduty', setting: 'alert.pagerduty_secret', header: 'x-pagerduty-signature', isSigned }]

export function provenAlertRoutes(app: Hono<Env>, deps: ApiDeps): void {
  for (const { dialect, setting, header, isSigned } of proofs) {
    const takeProven: Middleware = async (c, next) => {
      const secret = c.req.method === 'POST' ? await readSecret(deps, setting) : null
      if (secret === null) return await next()
      try {
        if (!isSigned(secret, c.req.header(header), new Uint8Array(await c.req.arrayBuffer()))) {
          const detail = `The secret in ${setting} does not match this delivery.`
          throw (await afterFailure(deps.db, c)) ?? new Problem(401, 'NOT_PROVEN', detail)
        }
        return c.json(await takeBody(deps, c, { name: dialect, sender: dialect }), 202)
      } catch (error) {
        if (error instanceof Problem && error.status < 500)
          await noteRefused(deps, { sender: dialect, dialect, code: error.code, reason: error.message })
        throw error
      }
    }
    app.use(`/api/v1/ingest/${dialect}`, limitBytes(maxBodyBytes), takeProven)
  }
}

async function readSecret({ db }: ApiDeps, setting: string): Promise<string | null> {
  return (await readSettings(db)).value<string | null>(setting)
}
