import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Hono } from 'hono'
import { sha256 } from '../../domain/digest.ts'
import type { Context, Env } from '../deps.ts'

/**
 * The content policy of pages: nothing from other sites and nothing inline, so that injected text
 * has no effect.
 */
const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "manifest-src 'self'",
  "worker-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

const pages = [
  '/',
  '/home',
  '/incidents',
  '/incidents/:id',
  '/incidents/:id/postmortem',
  '/approvals',
  '/approvals/:id',
  '/alerts',
  '/resources',
  '/resources/:id',
  '/jobs',
  '/jobs/:id',
  '/knowledge',
  '/knowledge/:id',
  '/config',
  '/health',
  '/shift',
  '/trust',
  '/trust/:id',
  '/reports',
  '/usage',
  '/gaps',
  '/devices',
  '/audit',
  '/people',
  '/tokens',
  '/sign-in',
]

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
}

type WebFile = { type: string; bytes: Buffer; packed: Buffer; tag: string }
type Web = { index: WebFile; files: Map<string, WebFile> }

/** Reads the built pages once. Null if the pages were not built. */
export function readWeb(dir: string): Web | null {
  if (!existsSync(join(dir, 'index.html'))) return null
  const files = new Map<string, WebFile>()
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    const type = types[extname(entry.name)]
    if (!entry.isFile() || !type) continue
    const path = join(entry.parentPath, entry.name)
    const bytes = readFileSync(path)
    const tag = `"${sha256(bytes).slice(0, 32)}"`
    files.set(path.slice(dir.length), { type, bytes, packed: gzipSync(bytes), tag })
  }
  return { index: files.get('/index.html') as WebFile, files }
}

/**
 * Serves the files of the pages, without authentication, because they contain no secret. The routes
 * below `/api/v1` check who may read data.
 */
export function webRoutes(app: Hono<Env>, web: Web): void {
  for (const page of pages) app.get(page, (c) => send(c, web.index, 'no-cache'))
  for (const [path, file] of web.files) {
    // Allows caching for ever: names of these files contain a hash, so other contents have another
    // name.
    const hashed = path.startsWith('/assets/')
    if (path !== '/index.html')
      app.get(path, (c) => send(c, file, hashed ? 'public, max-age=31536000, immutable' : 'no-cache'))
  }
}

/**
 * Returns the page for an unknown address, with status 404, if a person's browser requests it. Null
 * for programs, and for paths of the API, where the response is a problem.
 */
export function pageOfNowhere(c: Context, web: Web): Response | null {
  const isForPerson = /\btext\/html\b/.test(c.req.header('accept') ?? '')
  const isElsewhere = /^\/(api|auth|assets)\//.test(c.req.path)
  if (c.req.method !== 'GET' || !isForPerson || isElsewhere) return null
  c.header('cache-control', 'no-store')
  c.header('content-security-policy', pagePolicy)
  c.header('content-type', web.index.type)
  return c.body(new Uint8Array(web.index.bytes), 404)
}

function send(c: Context, file: WebFile, caching: string): Response {
  c.header('cache-control', caching)
  c.header('etag', file.tag)
  c.header('vary', 'accept-encoding')
  if (file.type.startsWith('text/html')) c.header('content-security-policy', pagePolicy)
  if (c.req.header('if-none-match') === file.tag) return c.body(null, 304)
  c.header('content-type', file.type)
  const packs = /\bgzip\b/.test(c.req.header('accept-encoding') ?? '')
  if (packs) c.header('content-encoding', 'gzip')
  return c.body(new Uint8Array(packs ? file.packed : file.bytes))
}
