import { html, raw } from 'hono/html'

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

/** Renders the OpenAPI document as one page that loads no further files. */
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
