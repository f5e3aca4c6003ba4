import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Hono } from 'hono'
import { html, raw } from 'hono/html'
import { sha256 } from '../../domain/digest.ts'
import type { Context, Env } from '../deps.ts'
import { Problem } from '../http/middleware.ts'

/** Nothing from elsewhere, nothing inline: text that slipped into a page could load and run nothing. */
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
}

type WebFile = { type: string; bytes: Buffer; packed: Buffer; tag: string }
export type Web = { index: WebFile; files: Map<string, WebFile> }

/** The built pages, read once: a few files. Null where they were not built. */
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

/** The pages at their addresses. Which data they show is decided behind `/api/v1`: the files hold no secret. */
export function webRoutes(app: Hono<Env>, web: Web): void {
  for (const page of pages) app.get(page, (c) => send(c, web.index, 'no-cache'))
  for (const [path, file] of web.files) {
    // Their names carry their hash: another content is another name.
    const hashed = path.startsWith('/assets/')
    if (path !== '/index.html')
      app.get(path, (c) => send(c, file, hashed ? 'public, max-age=31536000, immutable' : 'no-cache'))
  }
}

/**
 * An address that leads nowhere, for a person in a browser: the page that says so, with status 404. Null for programs, and below the
 * addresses of the API, which answer with a problem.
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

/** Answers at the addresses of the pages where the pages were not built. */
export function signpostRoutes(app: Hono<Env>): void {
  app.get('/', (c) => c.redirect('/docs'))
  for (const kind of ['incidents', 'approvals'] as const) {
    app.get(`/${kind}/:id`, (c) => {
      const id = c.req.param('id')
      if (!signpostId.test(id)) throw new Problem(404, 'NOT_FOUND', 'There is no such incident or approval.')
      c.header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
      return c.html(signpost(kind, id))
    })
  }
}

/**
 * The page behind a link from a message where the operator's pages were not built: it names the commands that show and decide
 * the incident or approval. It needs no sign-in, because it shows nothing but the id of the link.
 */
export function signpost(kind: 'incidents' | 'approvals', id: string): ReturnType<typeof html> {
  const commands =
    kind === 'incidents'
      ? [`incidents show ${id}`, `incidents watch ${id}`]
      : [`approvals show ${id}`, `approvals approve ${id}`, `approvals deny ${id} --reason "…"`]
  const lines = commands.map(
    (command) => html`<pre>npm run -s nightshift -- ${command}</pre>
`,
  )
  return html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Nightshift</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${raw(signpostStyle)}</style></head><body>
<h1>${id}</h1>
<p>On the machine that runs Nightshift:</p>
${lines}<p>Or over the API: <a href="/docs">/docs</a>.</p></body></html>`
}

/** An id of ours: a link that holds anything else is not shown. */
export const signpostId = /^(inc|apr)_[0-9a-z]{26}$/

const signpostStyle = `body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.1rem;overflow-wrap:anywhere}pre{background:#f6f8fa;padding:.8rem;overflow:auto;border-radius:6px}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}pre{background:#161b22}a{color:#79c0ff}}`

type Operation = {
  summary?: string
  description?: string
  tags?: string[]
  'x-permission'?: string
  'x-agent-tool'?: string
  requestBody?: { content?: Record<string, { example?: unknown }> }
  responses?: Record<string, { description?: string; content?: Record<string, { example?: unknown }> }>
}
type Document = { info: { title: string; version: string }; paths?: Record<string, Record<string, Operation>> }

type Html = ReturnType<typeof html>

/** The OpenAPI document as one page that loads nothing from anywhere. */
export function docsPage(openApi: object): Html {
  const document = openApi as Document
  const operations = Object.entries(document.paths ?? {}).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  const tags = [...new Set(operations.map(({ operation }) => operation.tags?.[0] ?? 'other'))]
  const sections = tags.map((tag) => {
    const own = operations.filter(({ operation }) => (operation.tags?.[0] ?? 'other') === tag)
    return html`<section><h2>${tag}</h2>${own.map(operationHtml)}</section>
`
  })
  const { title, version } = document.info
  return html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${raw(style)}</style></head><body><main>
<h1>${title} <small>${version}</small></h1>
<p>The same as data: <a href="/openapi.json">/openapi.json</a>. Every path takes <code>Authorization: Bearer …</code>.</p>
${sections}</main></body></html>`
}

function operationHtml({ path, method, operation }: { path: string; method: string; operation: Operation }): Html {
  const { summary = '', description = '', 'x-agent-tool': agentTool, requestBody, responses = {} } = operation
  const body = Object.values(requestBody?.content ?? {})[0]?.example
  const [status, answer] = Object.entries(responses).find(([code]) => code.startsWith('2')) ?? []
  const example = Object.values(answer?.content ?? {})[0]?.example
  const refusals = Object.entries(responses)
    .filter(([code]) => !code.startsWith('2'))
    .map(([code, refusal]) => html`<li><b>${code}</b> ${refusal.description ?? ''}</li>`)
  return html`<details><summary><code class="${method}">${method}</code> <code>${path}</code> ${summary}</summary>
${description.split('\n\n').map((paragraph) => html`<p>${paragraph}</p>`)}
${agentTool ? html`<p>Tool of the agent: <code>${agentTool}</code></p>` : ''}
${body === undefined ? '' : html`<h3>Body</h3><pre tabindex="0">${text(body)}</pre>`}
${example === undefined ? '' : html`<h3>Answer ${status}</h3><pre tabindex="0">${text(example)}</pre>`}
<h3>Refusals</h3><ul>${refusals}</ul></details>`
}

function text(example: unknown): string {
  return typeof example === 'string' ? example : JSON.stringify(example, null, 2)
}

const style = `:root{color-scheme:light dark}code,b,p,li{overflow-wrap:anywhere}body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1 small{font-weight:400;color:#57606a}h2{margin-top:2rem;text-transform:capitalize}h3{margin:.8rem 0 .2rem;font-size:1rem}
details{border:1px solid #d0d7de;border-radius:6px;margin:.4rem 0;padding:.4rem .8rem}summary{cursor:pointer}
pre{background:#f6f8fa;padding:.8rem;overflow:auto;border-radius:6px}code.GET{color:#0550ae}code.POST{color:#116329}code.PUT{color:#7d4e00}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}pre{background:#161b22}details{border-color:#30363d}
a{color:#79c0ff}code.GET{color:#79c0ff}code.POST{color:#7ee787}code.PUT{color:#ffa657}h1 small{color:#8b949e}}`
