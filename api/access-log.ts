import { routePath } from 'hono/route'
import type { Logger } from 'pino'
import { isDataFlaw } from '../db/connect.ts'
import type { Middleware } from './hono.ts'
import type { Metrics } from './metrics.ts'

const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** One line and one count per request: the route, never the query, which may quote what was searched for. */
export function accessLog(log: Logger, metrics: Metrics): Middleware {
  return async (c, next) => {
    const beganAt = performance.now()
    await next()
    const durationMs = Math.round(performance.now() - beganAt)
    const route = routePath(c, -1)
    const method = methods.has(c.req.method) ? c.req.method : 'other'
    metrics.requests.inc({ method, route, status: String(c.res.status) })
    metrics.requestSeconds.observe({ method, route }, durationMs / 1000)
    const line = {
      requestId: c.get('requestId'),
      method: c.req.method,
      path: c.req.path,
      status: c.res.status,
      durationMs,
      by: c.get('principal')?.name,
    }
    if (c.res.status >= 500) log.error({ ...line, err: c.error }, 'request failed')
    else if (isDataFlaw(c.error)) log.warn({ ...line, err: c.error }, 'PostgreSQL refused a value that no schema did')
    else log.debug(line, 'request')
  }
}
