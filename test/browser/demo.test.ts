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

test('a denial says why, and who comes later is told who was first', async () => {
  await deadHost('host-ams-1')
  const { id } = await spine.pendingApproval()
  page = await signedIn(browser, spine)
  await page.goto(`${spine.url}/approvals/${id}`)
  await page.keyboard.press('d')
  await page.getByRole('radio', { name: 'wrong time' }).check()
  await page.getByRole('textbox', { name: /In your words/ }).fill('backups run until four')

  const other = await signedIn(browser, spine, 'admin')
  await other.goto(`${spine.url}/approvals/${id}`)
  // A page that missed the news: its stream is cut, its decision comes late.
  await other.route('**/api/v1/stream*', (route) => route.abort())
  await other.getByRole('button', { name: 'Approve…' }).click()
  await other.route(`**/api/v1/approvals/${id}`, (route) => route.abort())
  await page.getByRole('button', { name: 'Deny' }).click()
  await page.getByText('Denied by approver').waitFor()
  await page.getByText('backups run until four').waitFor()
  await other.unroute(`**/api/v1/approvals/${id}`)
  const late = other.getByRole('button', { name: 'Yes, approve' })
  if (await late.isVisible()) await late.click()
  await other
    .getByText(/approver/)
    .first()
    .waitFor()
  await other.context().close()
  expect((await spine.get<{ status: string }>(`/approvals/${id}`)).status).toBe('denied')
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
