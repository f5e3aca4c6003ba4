import { randomUUID } from 'node:crypto'
import type { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { routePath } from 'hono/route'
import { TrieRouter } from 'hono/router/trie-router'
import type { Logger } from 'pino'
import { isDataFlaw } from '../../db/connect.ts'
import type { Context, Env, Middleware } from '../deps.ts'
import type { Metrics } from './metrics.ts'
import { answerProblem, Problem } from './problem.ts'

/**
 * Gives each request an id for its response, problem and log lines. Uses the id that the caller
 * sent if it is plain.
 */
export const requestId: Middleware = async (c, next) => {
  const given = c.req.header('x-request-id')
  const id = given && /^[A-Za-z0-9._-]{1,64}$/.test(given) ? given : randomUUID()
  c.set('requestId', id)
  await next()
  c.res.headers.set('x-request-id', id)
}

const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Logs and counts each request by route. Never logs the query, which may contain a search text. */
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
    else if (isDataFlaw(c.error))
      log.warn({ ...line, err: c.error }, "PostgreSQL refused a value that the request's schema had accepted")
    else log.debug(line, 'request')
  }
}

const headers = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
}

/**
 * Forbids framing, type guessing, and caching unless the route allows it. A page sets its own
 * content policy.
 */
export const securityHeaders: Middleware = async (c, next) => {
  await next()
  for (const [name, value] of Object.entries(headers)) if (!c.res.headers.has(name)) c.res.headers.set(name, value)
  if (!c.res.headers.has('cache-control')) c.res.headers.set('cache-control', 'no-store')
}

/**
 * Refuses a path or query that is not percent-encoded UTF-8 or contains NUL, so that the database
 * can store it and all routes read it alike.
 */
export const readableAddress: Middleware = async (c, next) => {
  const url = c.req.raw.url
  const start = url.indexOf('/', url.indexOf('://') + 3)
  const [path = '/', query = ''] = splitAt(start < 0 ? '/' : url.slice(start), '?')
  const problem = flawOf(path, 'path') ?? flawOf(query.replaceAll('+', ' '), 'query') ?? repeated(c.req.path, query)
  if (problem) throw problem
  await next()
}

function splitAt(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

function flawOf(text: string, part: 'path' | 'query'): Problem | null {
  let decoded: string
  try {
    decoded = decodeURIComponent(text)
  } catch {
    const detail = `The ${part} is not percent-encoded UTF-8. Write % as %25 and encode other characters as UTF-8.`
    return new Problem(400, 'BAD_ENCODING', detail)
  }
  if (!decoded.includes('\0')) return null
  return new Problem(400, 'NUL_CHARACTER', `The ${part} holds the character NUL (%00). Leave it out.`)
}

/** Refuses a repeated parameter, because choosing one of its values would be a guess. */
function repeated(path: string, query: string): Problem | null {
  if (!path.startsWith('/api/')) return null
  const names = [...new URLSearchParams(query).keys()]
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice === undefined) return null
  const errors = [{ in: 'query', field: twice, message: 'is given more than once' }]
  return new Problem(422, 'INVALID', `${twice}: is given more than once. Send it once.`, { fields: { errors } })
}

type Declared = { literal: Map<string, Set<string>>; patterns: TrieRouter<string> }

/**
 * Reads the methods of each path from the routes. A known path responds with 405 and `Allow` to
 * every other method (RFC 9110, 15.5.6).
 */
export function declaredMethods(app: Hono<Env>) {
  let read: Declared | null = null
  const declared = () => {
    read ??= readRoutes(app)
    return read
  }

  /** Prefers the literal path: for no method is `/config/effective` a key of `/config/{key}`. */
  const onlyDeclared: Middleware = async (c, next) => {
    const own = declared().literal.get(c.req.path)
    if (own && !own.has(c.req.method)) throw refuseMethod(c, own)
    await next()
  }

  /** Returns the problem for a request without a route: 405 or 404. */
  function noRoute(c: Context): Problem {
    const { literal, patterns } = declared()
    const own = literal.get(c.req.path) ?? withHead(patterns.match('ALL', c.req.path)[0].map(([method]) => method))
    return own.size > 0 ? refuseMethod(c, own) : new Problem(404, 'NOT_FOUND', `This API has no path ${c.req.path}.`)
  }
  return { onlyDeclared, noRoute }
}

function readRoutes(app: Hono<Env>): Declared {
  const literal = new Map<string, Set<string>>()
  const patterns = new TrieRouter<string>()
  for (const { method, path } of app.routes) {
    // Skips ALL, which stands for middleware and not for a route of every method.
    if (method === 'ALL') continue
    patterns.add('ALL', path, method)
    if (!/[:*]/.test(path)) literal.set(path, withHead([...(literal.get(path) ?? []), method]))
  }
  return { literal, patterns }
}

function withHead(methods: readonly string[]): Set<string> {
  return new Set(methods.includes('GET') ? [...methods, 'HEAD'] : methods)
}

function refuseMethod(c: Context, own: ReadonlySet<string>): Problem {
  const allow = [...own].sort().join(', ')
  const detail = `${c.req.path} does not support ${c.req.method}. Supported methods: ${allow}.`
  return new Problem(405, 'METHOD_NOT_ALLOWED', detail, { headers: { allow } })
}

const maxInventoryBytes = 48 * 1024 * 1024
export const maxBodyBytes = 1024 * 1024

/** Refuses a body above the limit, whatever its length header says. Calls `note` first. */
export const limitBytes = (
  maxSize: number,
  note: (c: Context, problem: Problem) => Promise<void> = async () => {},
): Middleware =>
  bodyLimit({
    maxSize,
    async onError(c) {
      const problem = new Problem(413, 'TOO_LARGE', `The request body is larger than ${maxSize} bytes.`)
      await note(c, problem)
      return answerProblem(c, problem)
    },
  })
const limitToMax = limitBytes(maxBodyBytes)
const limitInventory = limitBytes(maxInventoryBytes)

/**
 * Limits the body of most routes. An inventory file with 100,000 resources has about 20 MB. Alerts
 * have their own limit.
 */
export const limitBody: Middleware = (c, next) => {
  if (c.req.method === 'PUT' && /^\/api\/v1\/inventory(?:\/imports\/[^/]+)?$/.test(c.req.path))
    return limitInventory(c, next)
  const isOfAlerts = /^\/api\/v1\/ingest\/(?!change$)[^/]+$/.test(c.req.path)
  return isOfAlerts ? next() : limitToMax(c, next)
}
