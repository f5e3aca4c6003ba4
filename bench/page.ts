import type { BrowserContext, Page } from 'playwright-core'
import { launch } from '../test/support/chromium.ts'
import { openGallery } from '../test/support/gallery.ts'
import { halfYear } from './load.ts'
import { median, report } from './stage.ts'

const rounds = Number(process.env.ROUNDS ?? 5)

/**
 * Measures, in the browser, when the first row appears, and how long each press of a key or button
 * takes until the page has changed.
 */
const watch = `
  window.presses = []
  new PerformanceObserver((list) => {
    for (const { interactionId, duration } of list.getEntries()) if (interactionId > 0) presses.push(duration)
  }).observe({ type: 'event', durationThreshold: 16, buffered: true })
  const look = () => requestAnimationFrame(() => {
    if (document.querySelector('tbody tr[id]')) setTimeout(() => { window.firstRow = performance.now() })
    else look()
  })
  look()`

const addresses = [
  '',
  '?status=open',
  '?severity=critical',
  '?role=follower',
  '?owner=none',
  '?q=shard-1234',
  '?q=replication',
  '?by=cause',
]

/**
 * Measures how long a person waits at the list of 100,000 incidents, and at ten thousand rows of
 * the gallery. The bench `load` measures the API's part of this wait.
 */
export async function page(): Promise<void> {
  const { api, token, stop } = await halfYear()
  const gallery = await openGallery()
  const browser = await launch()
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
  // Other work on the machine makes the numbers worse, but must not end the measurement.
  context.setDefaultTimeout(180_000)
  await context.addInitScript(watch)
  await signIn(await context.newPage(), api.url, token)
  const url = `${api.url}/incidents`
  const first: Record<string, number> = {}
  for (const address of addresses) {
    const times: number[] = []
    for (let round = 0; round < rounds; round += 1)
      times.push(await timeToFirstRow(await opened(context, url + address)))
    first[`first row, /incidents${address} (ms, under 1000)`] = Math.round(median(times))
  }
  const list = await pressList(await opened(context, url))
  report('page', { ...first, ...list })
  report('page of 10,000', await pressMany(await opened(context, `${gallery.url}/?rows=10000`)))
  await browser.close()
  gallery.close()
  await stop()
}

async function signIn(at: Page, url: string, token: string): Promise<void> {
  await at.goto(`${url}/sign-in`)
  await at.getByLabel('API token').fill(token)
  await at.getByRole('button', { name: 'Sign in' }).click()
  await at.getByRole('heading', { name: 'Home' }).waitFor()
}

async function opened(context: BrowserContext, address: string): Promise<Page> {
  const at = await context.newPage()
  await at.goto(address)
  await at.locator('tbody tr[id]').first().waitFor()
  return at
}

async function timeToFirstRow(at: Page): Promise<number> {
  await at.waitForTimeout(50)
  const ms = (await at.evaluate('window.firstRow')) as number
  await at.close()
  return ms
}

/**
 * Returns the duration of the slowest press of a key or button, in ms. At least 16, because the
 * browser does not report faster presses.
 */
async function slowest(at: Page, act: () => Promise<unknown>): Promise<number> {
  await at.evaluate('void (presses.length = 0)')
  await act()
  await at.waitForTimeout(400)
  return (await at.evaluate('Math.max(16, ...presses)')) as number
}

async function press(at: Page, keys: readonly string[]): Promise<void> {
  for (const key of keys) await at.keyboard.press(key, { delay: 20 })
}

async function pressList(at: Page): Promise<Record<string, number>> {
  const chip = at.locator('summary', { hasText: 'Severity' })
  const turns = [...Array(20).fill('j'), ...Array(10).fill('k')]
  const acts: [string, () => Promise<unknown>][] = [
    ['j and k', () => press(at, turns)],
    ['Enter: a closer look', () => press(at, ['Enter']).then(() => at.getByRole('dialog').waitFor())],
    ['j and k with it', () => press(at, turns)],
    ['x', () => press(at, ['x'])],
    ['Escape', () => press(at, ['Escape'])],
    ['a chip', () => chip.click().then(() => at.getByRole('button', { name: 'critical', exact: true }).click())],
    ['grouping', () => at.goto(`${at.url()}&by=alert`).then(() => at.locator('.fold').first().click())],
    ['typing', () => at.getByRole('searchbox').pressSequentially('replication lag', { delay: 60 })],
  ]
  const found: Record<string, number> = {}
  for (const [name, act] of acts) found[`slowest press, ${name} (ms, under 200)`] = await slowest(at, act)
  await at.close()
  return found
}

async function pressMany(at: Page): Promise<Record<string, number>> {
  const keys = [...Array(20).fill('j'), ...Array(10).fill('k')]
  return { 'slowest press, j and k over 10,000 rows (ms, under 200)': await slowest(at, () => press(at, keys)) }
}
