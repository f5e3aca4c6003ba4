import { appendFileSync, mkdirSync, readFileSync, renameSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { announce, settle } from './settle.ts'

/** A web node: serves `/` for each tenant of its shard, chosen by the Host header, and writes an access log. */
const spec = settle<{ tenants: string[] }>()

const accessLog = 'logs/access.log'
const rotateBytes = 256 * 1024
const keptRotations = 3

mkdirSync('logs', { recursive: true })

function rotate(): void {
  for (let n = keptRotations - 1; n >= 1; n--) {
    try {
      renameSync(`${accessLog}.${n}`, `${accessLog}.${n + 1}`)
    } catch {
      // There are not yet so many.
    }
  }
  renameSync(accessLog, `${accessLog}.1`)
}

function record(tenant: string, status: number, path: string): void {
  appendFileSync(accessLog, `${new Date().toISOString()} ${tenant} ${status} ${JSON.stringify(path.slice(0, 200))}\n`)
  if (statSync(accessLog).size > rotateBytes) rotate()
}

announce(
  createServer((request, response) => {
    const tenant = (request.headers.host ?? '').replace(/:\d+$/, '')
    if (!spec.tenants.includes(tenant)) {
      record('-', 404, request.url!)
      response.writeHead(404).end('no such tenant\n')
      return
    }
    try {
      // Read at each request, so that a drifted file shows in what is served.
      const config = JSON.parse(readFileSync('etc/config.json', 'utf8')) as Record<string, unknown>
      const page = readFileSync(`tenants/${tenant}/index.html`)
      response.writeHead(200, {
        'content-type': 'text/html; charset=utf-8',
        'cache-control': `max-age=${Number(config.maxAgeSeconds)}`,
        'x-node': spec.id,
      })
      response.end(page)
      record(tenant, 200, request.url!)
    } catch (error) {
      response.writeHead(500).end()
      record(tenant, 500, `${request.url} ${(error as Error).message}`)
    }
  }),
)
