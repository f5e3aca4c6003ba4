import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from '@jest/globals'
import { readWeb } from '../../../api/routes/pages.ts'
import { rootDir } from '../../../start/web.ts'
import { useApi } from '../../support/api.ts'

const dist = join(rootDir, 'web', 'dist')
const api = useApi(() => ({ webDir: dist }))
const ask = (path: string, headers: Record<string, string> = {}) => api.api.app.request(path, { headers })
const scripts = () => [...(readWeb(dist)?.files ?? [])].filter(([path]) => /^\/assets\/.*\.js$/.test(path))

test('every address of a page returns the page, under a policy that forbids foreign and inline content', async () => {
  const own = ['/', '/home', '/incidents', '/incidents/inc_1', '/approvals/apr_1', '/alerts', '/config', '/sign-in']
  for (const path of [...own, '/audit', '/people', '/tokens']) {
    const answer = await ask(path)
    expect([path, answer.status]).toEqual([path, 200])
    expect(answer.headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    )
    expect(answer.headers.get('cache-control')).toBe('no-cache')
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
  }
})

test('the page needs nothing that its policy forbids', () => {
  const page = readFileSync(join(dist, 'index.html'), 'utf8')
  expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|https?:\/\//)
})

test('files with a hash in their name are cached for ever, and are compressed for clients that accept it', async () => {
  const [path] = scripts()[0] ?? ['']
  expect((await ask('/push-worker.js')).headers.get('cache-control')).toBe('no-cache')
  const packed = await ask(path, { 'accept-encoding': 'br, gzip' })
  expect(packed.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  expect(packed.headers.get('content-encoding')).toBe('gzip')
  expect((await ask(path)).headers.get('content-encoding')).toBeNull()
  const again = await ask(path, { 'if-none-match': packed.headers.get('etag') ?? '' })
  expect(again.status).toBe(304)
})

test('no file outside the build is served', async () => {
  for (const path of [
    '/assets/none.js',
    '/assets/../../package.json',
    '/assets/%2e%2e/%2e%2e/package.json',
    '/config.ts',
  ]) {
    expect((await ask(path)).status).toBe(404)
  }
})

test('an unknown address is a 404 page for a person and a problem document for a program', async () => {
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

test('the API documents keep their addresses', async () => {
  expect((await ask('/docs')).status).toBe(200)
  expect((await ask('/openapi.json')).status).toBe(200)
})

test('the JavaScript of the page stays below 200 kB', () => {
  const bytes = scripts().reduce((sum, [, { bytes }]) => sum + gzipSync(bytes).length, 0)
  expect(bytes).toBeLessThan(200_000)
})

test('the page imports only types of the domain', () => {
  const sources = readWeb(dist)?.files ?? new Map()
  // A schema in the bundle would bring zod with it.
  for (const [, { bytes }] of sources) expect(bytes.toString('latin1')).not.toContain('ZodError')
})
