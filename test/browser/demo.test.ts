import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import type { Browser } from 'playwright-core'
import { type Spine, startSpine } from '../support/spine.ts'
import { launch, openPage, signedIn, type Watched } from './browser.ts'

let spine: Spine
let browser: Browser
let page: Watched

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'] })
  browser = await launch()
})
afterEach(async () => {
  await page?.context().close()
  await spine.lab.heal()
})
afterAll(async () => {
  await browser?.close()
  await spine?.stop()
})

/** Whatever runs under the focus of the page. */
const focused = () => page.evaluate('document.activeElement.textContent.trim()') as Promise<string>

async function deadHost(host: string) {
  await spine.lab.break('host_down', host)
}

test('by mouse: an incident comes in live, its card is read, approved in two presses, and the repair is seen', async () => {
  page = await signedIn(browser, spine)
  expect(page.url()).toBe(`${spine.url}/incidents`)
  await page.getByText('No incidents yet.').waitFor()
  await deadHost('host-osl-1')
  // Nothing jumps in by itself: a button counts what is new.
  await page.getByRole('button', { name: /^Show 1 new incident/ }).click()
  await page
    .getByRole('row', { name: /host-osl-1 is down/ })
    .getByText('needs a person')
    .first()
    .waitFor()
  expect(await page.title()).toBe('(1) Incidents · Nightshift')

  await page.getByRole('link', { name: 'Host host-osl-1 is down' }).click()
  await page.getByRole('link', { name: 'Look and decide' }).click()
  const card = page.getByRole('article')
  await card.getByRole('img', { name: /^Plan to recover: start/ }).waitFor()
  const order = ['Exact arguments', 'Why', 'Dry run', 'Deny', 'Approve']
  expect(await card.getByRole('heading', { level: 2 }).allTextContents()).toEqual(order)

  await card.getByRole('button', { name: 'Approve…' }).dblclick()
  const yes = card.getByRole('button', { name: 'Yes, approve' })
  expect(await yes.isDisabled()).toBe(true)
  expect(await focused()).toMatch(/^Really: start/)
  await yes.click()
  await card.getByText('Approved by approver').waitFor()
  await card.getByRole('link', { name: 'Follow the incident' }).click()
  await page.locator('dl').getByText('resolved').waitFor()
  await page.getByRole('log').getByText('Approved by approver').waitFor()
  expect(await page.title()).toBe('Host host-osl-1 is down · Nightshift')
  expect((await spine.lab.oracle('host_down', 'host-osl-1')).healthy).toBe(true)
  expect(page.complaints).toEqual([])
})

test('by keyboard alone: found with j and Enter, decided with a and Tab, and a held key approves nothing', async () => {
  await deadHost('host-osl-2')
  const { id } = await spine.pendingApproval()
  page = await signedIn(browser, spine)
  const press = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key)
  }
  await press('p')
  await page.getByRole('heading', { name: 'Approvals' }).waitFor()
  await page.locator(`#row-${id}`).waitFor()
  await press('j', 'Enter')
  await page.getByRole('heading', { name: 'Exact arguments' }).waitFor()
  await press('a')
  expect(await focused()).toBe('Approve')
  await press('Enter', ' ')
  expect(await page.getByRole('button', { name: 'Yes, approve' }).count()).toBe(0)
  await press('Tab', 'Enter', 'Enter', 'Enter', ' ')
  expect(await focused()).toMatch(/^Really: start/)
  expect((await spine.get<{ status: string }>(`/approvals/${id}`)).status).toBe('pending')
  await page.getByRole('button', { name: 'Yes, approve', disabled: false }).waitFor()
  await press('Tab')
  expect(await focused()).toBe('Back')
  await press('Tab', 'Enter')
  await page.getByText('Approved by approver').waitFor()
  expect(page.complaints).toEqual([])
})

test('a denial says why, and who comes too late is told who was first', async () => {
  await deadHost('host-ams-1')
  const { id } = await spine.pendingApproval()
  page = await signedIn(browser, spine)
  await page.goto(`${spine.url}/approvals/${id}`)
  await page.keyboard.press('d')
  await page.getByRole('radio', { name: 'wrong time' }).check()
  await page.getByRole('textbox', { name: /In your words/ }).fill('backups run until four')

  // The page of the other one misses the news: it hears no stream.
  const other = await signedIn(browser, spine, 'admin')
  await other.route('**/api/v1/stream*', (route) => route.abort())
  await other.goto(`${spine.url}/approvals/${id}`)
  await other.getByText('Reconnecting…').waitFor()
  await other.getByRole('button', { name: 'Approve…' }).click()

  await page.getByRole('button', { name: 'Deny' }).click()
  await page.getByText('Denied by approver').waitFor()
  await page.getByText('backups run until four').waitFor()
  await other.getByRole('button', { name: 'Yes, approve' }).click()
  await other.getByRole('alert').getByText('Your decision changed nothing: approver denied it before.').waitFor()
  await other.context().close()
  expect(await spine.get(`/approvals/${id}`)).toMatchObject({
    status: 'denied',
    decisions: [{ operator: 'approver', reason: 'backups run until four', category: 'wrong_time', via: 'page' }],
  })
})

test('a page goes on by itself where it was when the server was away', async () => {
  page = await signedIn(browser, spine)
  await page.getByText('Live', { exact: true }).waitFor()
  await spine.kill('api')
  await page.getByText('Reconnecting…').waitFor()
  await spine.start('api')
  // By hand: the lab's own sender takes its time after an outage.
  await spine.post('/ingest/generic', { name: 'fan', title: 'A fan is broken' }, { token: spine.tokens.ingest })
  await page.getByText('Live', { exact: true }).waitFor()
  // Counted where the stream was resumed; there already where a new stream began and the list was read anew.
  const found = page.getByRole('link', { name: 'A fan is broken' })
  const counted = page.getByRole('button', { name: /^Show \d+ new incident/ })
  await found.or(counted).first().waitFor()
  if (await counted.isVisible()) await counted.click()
  await found.waitFor()
})

test('without JavaScript an approval is still read, signed in for, and denied', async () => {
  await deadHost('host-ams-2')
  const { id } = await spine.pendingApproval()
  page = await openPage(browser, spine.url, { javaScriptEnabled: false })
  await page.goto(`${spine.url}/approvals/${id}/plain`)
  await page.getByLabel('API token').fill(spine.tokens.approver)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Exact arguments' }).waitFor()
  await page.getByLabel('too risky').check()
  await page.getByRole('button', { name: 'Deny' }).click()
  await page.getByText('Your decision is recorded.').waitFor()
  expect((await spine.get<{ status: string }>(`/approvals/${id}`)).status).toBe('denied')
  expect(page.complaints).toEqual([])
})
