import type { Server } from 'node:http'
import { join } from 'node:path'
import { serve } from '@hono/node-server'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Browser, Page } from 'playwright-core'
import { createApi } from '../../api/app.ts'
import { ensureFirstRunTokens, type FirstRunTokens } from '../../db/access/tokens.ts'
import { append } from '../../db/log/append.ts'
import { agentActor } from '../../domain/event.ts'
import { ensureWeb, rootDir } from '../../start/web.ts'
import { asked } from '../support/announced.ts'
import { signedIn, type Watched } from '../support/browser.ts'
import { launch } from '../support/chromium.ts'
import { claimedIncident, openedIncident, useDatabase } from '../support/database.ts'
import { eventually, freePort } from '../support/directory.ts'
import type { Spine } from '../support/spine.ts'

// Stored text is cleansed before it is shown. Here it is not: every free text of every answer is a
// stranger's.
const database = useDatabase()
let browser: Browser
let server: Server
let spine: Spine
let incident: string
let approval: string
let paths: string[]

const texts = [
  '<img src=https://evil.example/i onerror=alert(1)><script src=https://evil.example/s></script>',
  '<svg onload=alert(2)><style>*{display:none!important}</style><iframe src=https://evil.example></iframe>',
  `"'><base href=https://evil.example/><form action=https://evil.example><button>Approve</button>`,
  '[Approve](javascript:alert(3)) ![x](https://evil.example/m) data:text/html,<script>alert(4)</script>',
  '"; position:fixed; inset:0; z-index:99999; background:url(https://evil.example/c)',
  '\u202eevorppA\u202c \u2066x\u2069 rm\u200b-rf\u00ad /\u3164 \u{e0041}\u034f\u2800\ufff9',
  `z${'\u0301\u0323'.repeat(80)} ${'W'.repeat(3_000)}`,
  '\u062a\u0645\u062a '.repeat(40),
]
const evil = texts.join(' ')
/**
 * Ids, dates, digests and closed words keep their meaning, so that every page comes as far as it
 * can.
 */
const isFree = (text: string) =>
  !/^([a-zA-Z_.]+|\d{4}-\d\d-\d\dT.*|[a-z]{3}_\w+|[0-9a-f]{64}|https?:.*|\d+|)$/.test(text)
const hostileKeys = `"__proto__":{"polluted":true},"constructor":{"x":1},${JSON.stringify(evil)}:${JSON.stringify(evil)}`

function spoiled(value: unknown, name = ''): string {
  if (typeof value === 'string') return JSON.stringify(isFree(value) ? `${value}${evil}` : value)
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map((entry) => spoiled(entry)).join(',')}]`
  const entries = Object.entries(value).map(([key, entry]) => `${JSON.stringify(key)}:${spoiled(entry, key)}`)
  if (['arguments', 'labels', 'raw', 'details', 'data'].includes(name)) entries.push(hostileKeys)
  if (name === 'links')
    return JSON.stringify({
      runbook: 'javascript:alert(5)',
      generator: 'data:text/html,<script>alert(6)</script>',
      external: 'https:evil.example',
    })
  return `{${entries.join(',')}}`
}

beforeAll(async () => {
  await ensureWeb()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const { db } = database
  const tokens: FirstRunTokens = await ensureFirstRunTokens(db)
  const { app } = createApi({ db, publicUrl: url, webDir: join(rootDir, 'web', 'dist') })
  server = serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }) as Server
  spine = { url, tokens } as Spine
  incident = await claimedIncident(db, { title: 'A disk is full', labels: { alertname: 'disk', team: 'the storage' } })
  await openedIncident(db, { title: 'Another disk' })
  await db.transaction().execute(async (trx) => {
    await append(trx, incident, 1, {
      kind: 'tool_finished',
      actor: agentActor,
      detail: 'Called a tool',
      metadata: {
        callId: 'c1_0',
        tool: 'get_host',
        arguments: { host_id: 'h 1' },
        outcome: 'done',
        durationMs: 1,
        effect: 'read',
        result: { ok: true, data: { items: [{ id: 'a b', status: 'critical', reason: 'full disk' }] }, meta: {} },
      } as never,
    })
    const metadata = { text: 'Looked at it', confidence: null, action: null }
    await append(trx, incident, 1, { kind: 'commented', actor: 'user:anna', detail: 'Looked at it', metadata })
  })
  approval = await asked(db, incident, { identity: { host: 'h 1' }, targets: [{ kind: 'host', id: 'h 1' }] })
  await database.owner
    .updateTable('approval')
    .set({
      args: spoiled({ command: 'df -h /' }, 'arguments'),
      reason: evil,
      tool: `shell ${evil}`,
      dryRun: spoiled({ possible: true, summary: 'Start 2 VMs', details: { a: 'b c' } }),
    })
    .where('id', '=', approval)
    .execute()
  paths = [
    '/home',
    '/incidents',
    '/approvals',
    '/alerts',
    '/jobs',
    '/knowledge',
    '/gaps',
    '/devices',
    '/usage',
    '/health',
    '/config',
    '/audit',
    '/people',
    '/tokens',
    ...['', '?tab=log', '?view=json', '?tab=alerts', '?tab=similar', '?tab=attempts', '?tab=details'].map(
      (view) => `/incidents/${incident}${view}`,
    ),
    `/approvals/${approval}`,
    `/approvals/${approval}/plain`,
  ]
  browser = await launch()
})
afterAll(async () => {
  await browser?.close()
  server?.closeAllConnections()
  server?.close()
})

/** A page on which the API is the stranger. */
async function strangersPage(width: number): Promise<Watched> {
  const page = await signedIn(browser, spine, 'admin', { viewport: { width, height: 900 } })
  await page.route('**/api/v1/**', async (route) => {
    if (route.request().url().includes('/stream')) return await route.continue()
    const response = await route.fetch()
    if (!/json/.test(response.headers()['content-type'] ?? '')) return await route.fulfill({ response })
    return await route.fulfill({ response, body: spoiled(await response.json()) })
  })
  return page
}

async function settled(page: Page, path: string): Promise<void> {
  await page.goto(`${spine.url}${path}`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  // Several parts of a page may be loading at once.
  await eventually('all to be there', async () => (await page.getByText(/^Loading/).count()) === 0)
}

/** What a stranger's text became on a page, and should not have. */
const look = `(() => {
  const hiddenIn = (character) => [...document.querySelectorAll('body *')]
    .filter((each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.includes(character)))
    .map((each) => (each.parentElement?.outerHTML ?? '').replace(/>[^<]{80,}</g, '>…<').slice(0, 300)).slice(0, 6).join(' AND ')
  const wrong = []
  const own = location.origin
  for (const element of document.querySelectorAll('img, iframe, object, embed, base, [onerror], [onload], main script, main style')) {
    wrong.push(element.outerHTML.slice(0, 80))
  }
  for (const link of document.querySelectorAll('a[href], form[action]')) {
    const to = new URL(link.href ?? link.action)
    if (to.origin !== own) wrong.push(link.outerHTML.slice(0, 160))
  }
  const hidden = /[\\p{Cf}\\p{Default_Ignorable_Code_Point}\\u2800]|\\p{M}{9}/u.exec(document.body.innerText)
  if (hidden) wrong.push('hidden ' + hidden[0].codePointAt(0).toString(16) + ' in ' + hiddenIn(hidden[0]))
  if (Object.prototype.polluted) wrong.push('polluted')
  return wrong
})()`

/** The innermost elements that are wider than the screen. */
const widest = `[...document.querySelectorAll('main *')]
  .filter((each) => each.getBoundingClientRect().right > innerWidth + 1 && !each.closest('pre, .exact, .scrolls'))
  .filter((each, _, all) => !all.some((other) => other !== each && each.contains(other)))
  .map((each) => (each.parentElement?.outerHTML ?? '').replace(/>[^<]{80,}</g, '>…<').slice(0, 300)).slice(0, 6).join(' AND ')`

/** Every button and field: in the width of the screen, and itself where somebody would press it. */
const covered = (within: string) => `(() => {
  const wrong = []
  for (const element of document.querySelectorAll('${within} button, ${within} input, ${within} textarea')) {
    element.scrollIntoView({ block: 'center' })
    const { left, right, top, bottom, width, height } = element.getBoundingClientRect()
    const name = element.outerHTML.slice(0, 90)
    if (width < 12 || height < 12 || left < 0 || right > innerWidth) wrong.push(name + ' is cut')
    for (const x of [left + 3, (left + right) / 2, right - 3]) {
      const at = document.elementFromPoint(x, (top + bottom) / 2)
      if (!at || !(element.contains(at) || at.contains(element) && at.matches('label, button'))) wrong.push(name + ' is under ' + at?.outerHTML.slice(0, 90))
    }
  }
  return [...new Set(wrong)]
})()`

describe.each([1440, 390])('at %i pixels', (width) => {
  test('no foreign text runs, loads, links elsewhere, hides or widens anything on any page', async () => {
    const page = await strangersPage(width)
    const wrong: unknown[] = []
    let shown = 0
    await settled(page, '/health')
    // A word of thousands of letters takes seconds to break where they are kerned, and the page
    // stands still meanwhile.
    expect(await page.evaluate('getComputedStyle(document.body).fontKerning')).toBe('none')
    for (const path of paths) {
      await settled(page, path)
      const found = (await page.evaluate(look)) as string[]
      const wide = (await page.evaluate('document.documentElement.scrollWidth')) as number
      if (wide > width) found.push(`${wide} pixels wide: ${await page.evaluate(widest)}`)
      if ((await page.content()).includes('&lt;img src=https://evil.example')) shown += 1
      wrong.push(...found.map((each) => [path, each]))
    }
    expect(wrong).toEqual([])
    // The texts were there to be shown, on nearly all of them.
    expect(shown).toBeGreaterThan(9)
    expect(page.complaints).toEqual([])
    await page.context().close()
  })

  test('the buttons for decisions stay reachable, and the card writes out hidden characters', async () => {
    const page = await strangersPage(width)
    for (const [path, within] of [
      [`/approvals/${approval}`, ':is(.what, .decide)'],
      [`/approvals/${approval}/plain`, 'form'],
    ] as const) {
      await settled(page, path)
      const names = await page.locator(`${within} button`).allInnerTexts()
      expect(names.filter((name) => /^(Approve|Deny)/.test(name)).length).toBeGreaterThanOrEqual(2)
      expect([path, await page.evaluate(covered(within))]).toEqual([path, []])
      const text = await page.locator('main').innerText()
      for (const name of ['\\u202e', '\\u200b', '\\u00ad', '\\u3164', '\\ue0041', '\\u2800', '\\u0301'])
        expect(text).toContain(name)
    }
    expect(page.complaints).toEqual([])
    await page.context().close()
  })
})
