import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { readWeb } from '../../api/routes/pages.ts'
import { listen } from '../../bench/stream.ts'
import { append } from '../../db/append.ts'
import { createToken } from '../../db/tokens.ts'
import { rootDir } from '../../start/web.ts'
import { useServedApi } from '../cli/run-cli.ts'
import { openedIncident, useDatabase } from '../support/database.ts'
import { compileCache, eventually, freePort } from '../support/directory.ts'
import { useApi } from './api.ts'

describe('listeners', () => {
  const api = useServedApi()

  test('ten pages whose connections keep being cut off hear every row once and in order', async () => {
    const incidents = await Promise.all(Array.from({ length: 4 }, () => openedIncident(api.db)))
    const pages = listen({ url: api.apiUrl, token: api.tokens.viewer, count: 10, dropEveryMs: 250 })
    await pages.ready
    try {
      const rows: string[] = []
      // Until enough was written, and enough was cut off while it was.
      while (rows.length < 300 || pages.counts.reconnects < 20)
        rows.push(...(await Promise.all(incidents.map(comment))))
      await eventually('every page has every row', () => pages.heard(rows).every(({ missing }) => missing === 0))
      const wanted = { received: rows.length, missing: 0, duplicates: 0, outOfOrder: 0 }
      expect(pages.heard(rows)).toEqual(Array.from({ length: 10 }, () => wanted))
    } finally {
      pages.end()
    }
  })

  async function comment(incidentId: string): Promise<string> {
    const { event } = await api.db.transaction().execute((trx) =>
      append(trx, incidentId, null, {
        kind: 'commented',
        actor: 'user:test',
        detail: 'a row',
        metadata: { text: 'a row', confidence: null, action: null },
      }),
    )
    return String(event.id)
  }
})

describe('process', () => {
  const database = useDatabase()

  test('the API starts and takes alerts in while Temporal is down, and leaves within five seconds of being told', async () => {
    const ingest = await createToken(database.db, { name: 'ingest', role: 'ingest', operatorId: null })
    const agent = await createToken(database.db, { name: 'agent', role: 'agent', operatorId: null })
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const child = spawn(process.execPath, ['api/main.ts'], {
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: compileCache,
        DATABASE_URL: database.url,
        TEMPORAL_ADDRESS: `127.0.0.1:${await freePort()}`,
        PORT: String(port),
        LOG_LEVEL: 'warn',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let log = ''
    child.stdout.on('data', (bytes) => {
      log += bytes
    })
    child.stderr.on('data', (bytes) => {
      log += bytes
    })
    try {
      await eventually('it to be ready', async () => (await fetch(`${url}/readyz`).catch(() => null))?.status === 200)
      const ready = await fetch(`${url}/readyz`)
      expect(await ready.json()).toMatchObject({
        status: 'ok',
        checks: { temporal: { status: 'failed', required: false } },
      })

      const taken = await fetch(`${url}/api/v1/ingest/generic`, {
        method: 'POST',
        headers: { authorization: `Bearer ${ingest}`, 'content-type': 'application/json' },
        body: JSON.stringify({ title: 'Backup failed' }),
      })
      expect(taken.status).toBe(202)

      const stream = await fetch(`${url}/api/v1/stream`, { headers: { authorization: `Bearer ${agent}` } })
      expect(stream.headers.get('x-accel-buffering')).toBe('no')
      const reading = stream.text()
      child.kill('SIGTERM')
      const [code] = await once(child, 'exit')
      expect(code).toBe(0)
      expect(await reading).toContain('retry: 3000')
      expect(log).not.toContain(ingest)
    } finally {
      child.kill('SIGKILL')
    }
  })
})

describe('signpost', () => {
  const api = useApi()
  const page = (path: string) => api.api.app.request(path)

  test('a link from a message leads to the commands that show and decide the thing, without a sign-in', async () => {
    const answer = await page('/approvals/apr_01m7ytcwv43rahnzpzzeghzv30')
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(await answer.text()).toContain('approvals approve apr_01m7ytcwv43rahnzpzzeghzv30')
    expect((await page('/')).headers.get('location')).toBe('/docs')
  })

  test.each(['/incidents/inc_%3Cscript%3E', '/incidents/x', '/approvals/..%2f'])(
    'a link to %s shows nothing of it',
    async (path) => {
      const answer = await page(path)
      expect(answer.status).toBe(404)
      expect(answer.headers.get('content-type')).toContain('problem+json')
    },
  )
})

describe('web', () => {
  const dist = join(rootDir, 'web', 'dist')
  const api = useApi(() => ({ webDir: dist }))
  const ask = (path: string, headers: Record<string, string> = {}) => api.api.app.request(path, { headers })
  const scripts = () => [...(readWeb(dist)?.files ?? [])].filter(([path]) => path.endsWith('.js'))

  test('every address of a page is the page, under a policy that lets nothing foreign and nothing inline in', async () => {
    const own = ['/', '/incidents', '/incidents/inc_1', '/approvals/apr_1', '/alerts', '/config', '/sign-in']
    for (const path of [...own, '/audit', '/people', '/tokens']) {
      const answer = await ask(path)
      expect([path, answer.status]).toEqual([path, 200])
      expect(answer.headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
      )
      expect(answer.headers.get('cache-control')).toBe('no-cache')
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    }
  })

  test('nothing on the page needs what its policy forbids', () => {
    const page = readFileSync(join(dist, 'index.html'), 'utf8')
    expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|https?:\/\//)
  })

  test('files whose name holds their hash are kept for ever, and come packed to who can unpack', async () => {
    const [path] = scripts()[0] ?? ['']
    const packed = await ask(path, { 'accept-encoding': 'br, gzip' })
    expect(packed.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(packed.headers.get('content-encoding')).toBe('gzip')
    expect((await ask(path)).headers.get('content-encoding')).toBeNull()
    const again = await ask(path, { 'if-none-match': packed.headers.get('etag') ?? '' })
    expect(again.status).toBe(304)
  })

  test('nothing outside the built files is served', async () => {
    for (const path of [
      '/assets/none.js',
      '/assets/../../package.json',
      '/assets/%2e%2e/%2e%2e/package.json',
      '/config.ts',
    ]) {
      expect((await ask(path)).status).toBe(404)
    }
  })

  test('an address that leads nowhere is a page for a person, with 404, and a problem for a program', async () => {
    for (const path of ['/ingest/grafana', '/incident', '/incidents/a/b']) {
      const page = await ask(path, { accept: 'text/html,application/xhtml+xml' })
      expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
      expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
      const problem = await ask(path)
      expect([problem.status, problem.headers.get('content-type')]).toEqual([404, 'application/problem+json'])
    }
    const problem = await ask('/api/v1/nothing', { accept: 'text/html', authorization: 'Bearer x' })
    expect(problem.headers.get('content-type')).toBe('application/problem+json')
  })

  test('the documents of the API stay where they were', async () => {
    expect((await ask('/docs')).status).toBe(200)
    expect((await ask('/openapi.json')).status).toBe(200)
  })

  test('the JavaScript of the page stays below 150 kB', () => {
    const bytes = scripts().reduce((sum, [, { bytes }]) => sum + gzipSync(bytes).length, 0)
    expect(bytes).toBeLessThan(150_000)
  })

  test('the page imports types of the nouns, and nothing else of ours', () => {
    const sources = readWeb(dist)?.files ?? new Map()
    // A schema in the bundle would bring zod with it.
    for (const [, { bytes }] of sources) expect(bytes.toString('latin1')).not.toContain('ZodError')
  })
})
