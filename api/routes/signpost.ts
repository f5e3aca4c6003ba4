import type { Hono } from 'hono'
import { html, raw } from 'hono/html'
import type { Env } from '../deps.ts'
import { Problem } from '../http/problem.ts'

/** Routes at the addresses of the pages, for an installation whose pages were not built. */
export function signpostRoutes(app: Hono<Env>, commandPrefix: string): void {
  app.get('/', (c) => c.redirect('/docs'))
  for (const kind of ['incidents', 'approvals'] as const) {
    app.get(`/${kind}/:id`, (c) => {
      const id = c.req.param('id')
      if (!signpostId.test(id)) throw new Problem(404, 'NOT_FOUND', 'There is no such incident or approval.')
      c.header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
      return c.html(signpost(kind, id, commandPrefix))
    })
  }
}

/**
 * Builds the page behind a message's link if the pages were not built. It names the commands that
 * show and decide the approval or incident. The page needs no sign-in, because it shows only the id
 * in the link.
 */
function signpost(kind: 'incidents' | 'approvals', id: string, commandPrefix: string): ReturnType<typeof html> {
  const commands =
    kind === 'incidents'
      ? [`incidents show ${id}`, `incidents watch ${id}`]
      : [`approvals show ${id}`, `approvals approve ${id}`, `approvals deny ${id} --reason "…"`]
  const lines = commands.map(
    (command) => html`<pre>${commandPrefix} ${command}</pre>
`,
  )
  return html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Nightshift</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${raw(signpostStyle)}</style></head><body>
<h1>${id}</h1>
<p>On the machine that runs Nightshift:</p>
${lines}<p>Or over the API: <a href="/docs">/docs</a>.</p></body></html>`
}

/** The form of an id of Nightshift. Any other text of a link is not shown. */
export const signpostId = /^(inc|apr)_[0-9a-z]{26}$/

const signpostStyle = `body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.1rem;overflow-wrap:anywhere}pre{background:#f6f8fa;padding:.8rem;overflow:auto;border-radius:6px}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}pre{background:#161b22}a{color:#79c0ff}}`
