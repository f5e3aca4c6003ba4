import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { putSource, storeReading } from '../../db/inventory/sources.ts'
import { append } from '../../db/log/append.ts'
import { agentActor } from '../../domain/event.ts'
import { announced } from '../support/announced.ts'
import { axeOf, screenshot, signedIn, useBrowser } from '../support/browser.ts'
import { claimedIncident } from '../support/database.ts'
import { type LocalServer, startLocalServer } from '../support/local-server.ts'

/** What a source answered, as a person sees it: a claim with its picture. */

const on = useBrowser()
let server: LocalServer
beforeAll(async () => {
  server = await startLocalServer()
})
afterAll(() => server.close())

const hour = 3_600
const labels = { alertname: 'DiskFull', incident_type: 'disk_pressure' }

type Answer = { tool: string; callId: string; whole: string; summary: object; said: string }

/** A read that a source answered, as the worker stores it. */
async function answered(incidentId: string, { whole, summary, ...rest }: Answer): Promise<void> {
  const { db } = on.spine
  const digest = await storeReading(db, { incidentId, source: 'main', tool: rest.tool, whole })
  const data = { source: 'main', isEmpty: false, summary, digest, about: [] }
  const call = { arguments: {}, effect: 'read', targets: [], outcome: 'done', body: null, discovered: [] }
  const metadata = { ...rest, ...call, durationMs: 40, result: { ok: true, data, meta: {} } }
  const detail = `${rest.tool} done`
  await db
    .transaction()
    .execute((trx) =>
      append(trx, incidentId, 1, { kind: 'tool_finished', actor: agentActor, turn: 1, detail, metadata } as never),
    )
}

/**
 * Two reads of a source (rows 2 and 3): a disk that filled up, without samples for ten minutes, and
 * its load. The cause quotes both.
 */
async function measured(): Promise<string> {
  const { db, owner } = on.spine
  // Rows written below fall into the window.
  const until = Math.floor(Date.now() / 1_000) + 60
  const iso = (seconds: number) => new Date(seconds * 1_000).toISOString()
  const startsAt = iso(until - 1_800)
  const id = await claimedIncident(db, { labels, name: 'DiskFull', title: 'The disk of web-1 is full', startsAt })
  await owner.updateTable('incident').set({ resourceKind: 'node', resourceId: 'web-1' }).where('id', '=', id).execute()
  const change = { source: 'generic', author: null, url: null, revision: null, environment: null, labels: '{}' }
  const about = { resourceKind: 'node', resourceId: 'web-1', part: 0, why: 'its key' }
  await owner
    .insertInto('change')
    .values({
      ...change,
      ...about,
      id: `chg_${id}`,
      delivery: id,
      at: iso(until - 2_700),
      title: 'release 5.8.2',
    } as never)
    .execute()
  for (const [at, promql] of ['disk_used_percent', 'node_load1'].entries()) {
    const points = Array.from({ length: 121 }, (_, n): [number, number] => [until - hour + n * 30, 40 + n / 2]).filter(
      ([time]) => at > 0 || time < until - 1_500 || time > until - 900,
    )
    const whole = JSON.stringify({ labels: { __name__: promql, instance: 'web-1' }, points })
    const series = [{ labels: { instance: 'web-1' }, last: 100 }]
    const summary = { promql, window: '1h', until: iso(until), stepSeconds: 30, seriesFound: 1, series }
    const said = `main: ${promql}: web-1 is 100, was 40 to 100`
    await answered(id, { tool: 'query_metrics', callId: `c1_${at}`, whole, summary, said })
  }
  await announced(db, id, 'disk_clean', { id: 'web-1' })
  const quotes = [2, 3].map((seq) => ({ seq, text: 'is 100' }))
  const text = 'The disk filled up'
  const hypothesis = { id: 'h1', text, state: 'supported' as const, quotes }
  await db.transaction().execute((trx) =>
    append(trx, id, 1, {
      kind: 'commented',
      actor: agentActor,
      detail: text,
      metadata: { text, confidence: null, action: 'investigated', hypothesis },
    }),
  )
  return id
}

/** A Prometheus that knows the rule of the alert and nothing else. */
async function ruled(): Promise<void> {
  const alerts = [{ labels, value: '97' }]
  const rule = { type: 'alerting', name: 'DiskFull', query: 'disk_used_percent > 90', duration: 0, labels: {}, alerts }
  server.play((response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ status: 'success', data: { groups: [{ rules: [rule] }] } }))
  })
  const rest = {
    credential: null,
    writeCredential: null,
    caFile: null,
    scheme: null,
    headers: {},
    certFile: null,
    keyFile: null,
    options: {},
    timeoutSeconds: 10,
  }
  await putSource(on.spine.db, 'main', { kind: 'prometheus', url: server.url, ...rest }, 'anna')
}

const opened = async (id: string, width: number, colorScheme: 'light' | 'dark' = 'light') => {
  on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 900 }, colorScheme })
  await on.page.goto(`${on.spine.url}/incidents/${id}`)
  const charts = on.page.locator('.answer figure')
  await charts.nth(1).waitFor()
  return charts
}

test.each([
  [1440, 'light'],
  [1440, 'dark'],
  [390, 'light'],
  [390, 'dark'],
] as const)(
  'at %i pixels in %s the charts that a cause rests on are open below it, with limit, alert, change, write and the time without samples',
  async (width, colorScheme) => {
    await ruled()
    const charts = await opened(await measured(), width, colorScheme)
    const disk = charts.first()
    await disk.getByText('main: disk_used_percent: web-1 is 100, was 40 to 100').waitFor()
    for (const words of ['alert > 90', 'no samples', 'change', 'write'])
      await disk.getByText(words, { exact: true }).first().waitFor()
    await disk.locator('.event.alert').waitFor()
    // Its load is held against nothing, and has all its samples.
    await charts.nth(1).locator('.event.alert').waitFor()
    expect(
      await charts
        .nth(1)
        .getByText(/^alert > 90$|^no samples$/)
        .count(),
    ).toBe(0)
    expect(await disk.locator('.plot path.series').getAttribute('d')).toMatch(/^M[^M]+M[^M]+$/)
    expect(await on.page.locator('.plot svg text').count()).toBe(0)
    await disk.getByText('As a table').click()
    expect(await disk.getByRole('row').last().innerText()).toMatch(
      /disk_used_percent.*100 at.*\d\d:\d\d:\d\d to \d\d:\d\d:\d\d/s,
    )
    await disk
      .getByText(/^\d\d:\d\d:\d\d change: release 5\.8\.2$/)
      .first()
      .waitFor()
    await disk.scrollIntoViewIfNeeded()
    await screenshot(on.page, `chart-${width}-${colorScheme}`)
    expect(await on.page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    await on.page.evaluate('scrollTo(0, 0)')
    const axe = axeOf(on.page)
    const { violations } = await axe
      .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'])
      .analyze()
    expect(violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))).toEqual([])
    expect(on.page.complaints).toEqual([])
  },
)

test.each([1440, 390])('at %i pixels lines that a log source counted are a chart with their labels', async (width) => {
  const id = await measured()
  const until = Math.floor(Date.now() / 60_000) * 60
  const counted = ['error', 'warn'].map((level, which) => ({
    labels: { level },
    points: Array.from({ length: 60 }, (_, n): [number, number] => [
      until - hour + n * 60,
      n > 40 ? n * (which + 1) : 0,
    ]),
  }))
  const series = counted.map(({ labels }) => ({ labels, total: 950, max: 59 }))
  const window = {
    window: '1h',
    from: new Date((until - hour) * 1_000),
    until: new Date(until * 1_000),
    stepSeconds: 60,
  }
  const summary = { asked: { labels: { app: 'shop' } }, ...window, lines: 2_850, seriesFound: 2, series }
  const said = 'main: shop: 2,850 lines in 1h; most level warn: 1,900'
  const whole = counted.map((each) => JSON.stringify(each)).join('\n')
  await answered(id, { tool: 'search_logs', callId: 'c1_2', whole, summary, said })
  await opened(id, width)
  await on.page.goto(`${on.spine.url}/incidents/${id}?row=6`)
  const figure = on.page.getByRole('dialog').locator('figure')
  await figure.getByText('level=error').first().waitFor()
  await figure.getByText('level=warn').first().waitFor()
  expect(await figure.locator('.plot path.series').count()).toBe(2)
  expect(await figure.getByText('no samples', { exact: true }).count()).toBe(0)
  await screenshot(on.page, `chart-count-${width}-light`)
  expect(on.page.complaints).toEqual([])
})

test('arrow keys and the pointer select a time, which every chart of the incident shows, and a screen reader reads the values', async () => {
  const charts = await opened(await measured(), 1440)
  const [disk, load] = [charts.first(), charts.nth(1)]
  const slider = disk.getByRole('slider', { name: /^Moment of: main: disk_used_percent/ })
  expect(await on.page.locator('.cursor').count()).toBe(0)
  await slider.focus()
  await on.page.keyboard.press('ArrowLeft')
  await load.locator('.cursor').waitFor()
  const times = await on.page.locator('.legend li:first-child').allInnerTexts()
  expect(times).toEqual([expect.stringMatching(/^\d\d:\d\d:\d\d$/), times[0]])
  expect(await slider.getAttribute('aria-valuetext')).toBe(`${times[0]}: disk_used_percent instance=web-1 99.5`)
  // In the middle of the time without samples nothing is read out of the line.
  const box = await slider.boundingBox()
  await slider.hover({ position: { x: (box?.width ?? 0) * (2 / 3), y: 20 } })
  await disk.locator('.legend').getByText('no sample').waitFor()
  expect(await load.locator('.legend').innerText()).toMatch(/node_load1.*\d/)
  expect(await slider.getAttribute('aria-valuetext')).toMatch(/no sample$/)
  await on.page.mouse.move(5, 5)
  await slider.blur()
  await on.page.locator('.cursor').first().waitFor({ state: 'detached' })
})

test('a chart opens with its row, and stays folded among the turns', async () => {
  await opened(await measured(), 1440)
  await on.page.locator('.turns summary').getByText('Turn 1').click()
  await on.page.locator('.turns').getByText('Chart of 1 series, 1h').first().waitFor()
  expect(await on.page.locator('.turns figure').count()).toBe(0)
  await on.page.locator('.answer').getByRole('link', { name: 'row 2' }).first().click()
  const row = on.page.getByRole('dialog', { name: /^Row 2 / })
  await row.locator('figure').getByText('no samples').first().waitFor()
  await screenshot(on.page, 'chart-row-1440-light')
  // A slider takes no letter and no Escape: the row closes as from anywhere else in it.
  await row.getByRole('slider').first().focus()
  await on.page.keyboard.press('Escape')
  await row.waitFor({ state: 'detached' })
})
