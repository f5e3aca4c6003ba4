import type { Hono } from 'hono'
import { TrieRouter } from 'hono/router/trie-router'
import type { Context, Env, Middleware } from './hono.ts'
import { Problem } from './problem.ts'

type Declared = { literal: Map<string, Set<string>>; patterns: TrieRouter<string> }

/**
 * Which methods each path has, read from the routes themselves, so that a route which is added later is known here too. A path
 * that exists answers 405 with `Allow` to every other method (RFC 9110, 15.5.6).
 */
export function declaredMethods(app: Hono<Env>) {
  let read: Declared | null = null
  const declared = () => {
    read ??= readRoutes(app)
    return read
  }

  /** `/config/effective` is no key of `/config/{key}`, whatever the method: the literal path wins. */
  const onlyDeclared: Middleware = async (c, next) => {
    const own = declared().literal.get(c.req.path)
    if (own && !own.has(c.req.method)) throw notTaken(c, own)
    await next()
  }

  /** What is said where no route answers. */
  function noRoute(c: Context): Problem {
    const { literal, patterns } = declared()
    const own = literal.get(c.req.path) ?? withHead(patterns.match('ALL', c.req.path)[0].map(([method]) => method))
    return own.size > 0 ? notTaken(c, own) : new Problem(404, 'NOT_FOUND', `There is nothing at ${c.req.path}.`)
  }
  return { onlyDeclared, noRoute }
}

function readRoutes(app: Hono<Env>): Declared {
  const literal = new Map<string, Set<string>>()
  const patterns = new TrieRouter<string>()
  for (const { method, path } of app.routes) {
    // ALL is middleware: no route of ours answers every method.
    if (method === 'ALL') continue
    patterns.add('ALL', path, method)
    if (!/[:*]/.test(path)) literal.set(path, withHead([...(literal.get(path) ?? []), method]))
  }
  return { literal, patterns }
}

function withHead(methods: readonly string[]): Set<string> {
  return new Set(methods.includes('GET') ? [...methods, 'HEAD'] : methods)
}

function notTaken(c: Context, own: ReadonlySet<string>): Problem {
  const allow = [...own].sort().join(', ')
  const detail = `${c.req.path} does not take ${c.req.method}. It takes ${allow}.`
  return new Problem(405, 'METHOD_NOT_ALLOWED', detail, { headers: { allow } })
}
