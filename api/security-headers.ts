import type { Middleware } from './hono.ts'

const headers = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
}

/** Answers are data of this origin: no page may frame them, no browser may guess at them. A page sets its own policy. */
export const securityHeaders: Middleware = async (c, next) => {
  await next()
  for (const [name, value] of Object.entries(headers)) if (!c.res.headers.has(name)) c.res.headers.set(name, value)
  if (!c.res.headers.has('cache-control')) c.res.headers.set('cache-control', 'no-store')
}
