import { randomUUID } from 'node:crypto'
import type { Middleware } from './hono.ts'

/** One id per request, the caller's where it brings a plain one: in every answer, problem and log line. */
export const requestId: Middleware = async (c, next) => {
  const given = c.req.header('x-request-id')
  const id = given && /^[A-Za-z0-9._-]{1,64}$/.test(given) ? given : randomUUID()
  c.set('requestId', id)
  await next()
  c.res.headers.set('x-request-id', id)
}
