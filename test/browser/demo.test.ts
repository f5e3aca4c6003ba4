import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { Browser } from 'playwright-core'
import { atIncidents, hears, openPage, signedIn, type Watched } from '../support/browser.ts'
import { launch } from '../support/chromium.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine
let browser: Browser
let page: Watched

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'] })
  browser = await launch()
})
afterEach(async () => {
  await page?.context().close()
  // A repair that is still starting a node and a heal that starts it too get in each other's way.
  await spine.until('the lab to heal', () => spine.lab.heal().then(() => true))
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

test('by mouse: an incident appears live, its card is read and approved in two presses, and the repair is seen', async () => {
  page = await atIncidents(browser, spine)
  expect(page.url()).toBe(`${spine.url}/incidents`)
  await page.getByText('No incidents yet.').waitFor()
  await deadHost('host-osl-1')
  // Nothing jumps in by itself: a button counts what is new.
  await page.getByRole('button', { name: /^Show 1 new incident/ }).click()
  await page
    .getByRole('row', { name: /host-osl-1 is down/ })
    .getByText('approval needed')
    .first()
    .waitFor()
  expect(await page.title()).toBe('(1) Incidents · Nightshift')

  await page.getByRole('link', { name: 'Host host-osl-1 is down' }).click()
  await page.getByRole('link', { name: 'Plan and reasons' }).click()
  const card = page.getByRole('article')
  await card.getByRole('img', { name: /^Plan to recover: start/ }).waitFor()
  // The title says what changes, so its arguments fold below the reasons and the plan.
  const order = [
    ...['Highest cost', 'Targets', 'Sources that say the host is dead', 'Why', 'Verification', 'Undo'],
    ...['If you approve', 'If you deny', 'If you do nothing', 'Dry run', 'Exact arguments', 'Edit', 'Approve'],
  ]
  expect(await card.getByRole('heading', { level: 2 }).allTextContents()).toEqual(order)

  // What it rests on is a link to its row; what may not be granted says why.
  const looks = card.getByRole('listitem').filter({ hasText: 'plan to recover host-osl-1: start' })
  expect(await looks.getByRole('link').getAttribute('href')).toMatch(/\/approvals\/apr_\w+\?row=\d+$/)
  expect(await card.getByRole('checkbox', { name: 'Pre-approve identical actions' }).isDisabled()).toBe(true)
  await card.getByText('execute_migration cannot get a standing grant').waitFor()

  await card.getByRole('button', { name: 'Approve…' }).dblclick()
  const yes = card.getByRole('button', { name: 'Yes, approve' })
  expect(await yes.isDisabled()).toBe(true)
  expect(await focused()).toMatch(/^Start .* now\? Runs immediately and is recorded under your name/)
  await yes.click()
  await card.getByText('Approved by approver').waitFor()
  // Its steps are seen on the card, which nobody has to leave.
  await card.getByRole('heading', { name: /^What it (does|did)$/ }).waitFor()
  await card.getByText('The action ran, and code verified it.').waitFor()
  expect(await card.locator('.run .steps li').allInnerTexts()).toContainEqual(
    expect.stringMatching(/^\s*done\s+start vm-/),
  )
  await card.getByRole('link', { name: 'Follow the incident' }).click()
  await page.locator('.glance').getByText('escalated').waitFor()
  await page.getByRole('link', { name: /^Log/ }).click()
  await page.getByRole('log').getByText('Approved by approver').waitFor()
  expect(await page.title()).toBe('Host host-osl-1 is down · Nightshift')
  expect((await spine.lab.oracle('host_down', 'host-osl-1')).healthy).toBe(true)
  expect(page.complaints).toEqual([])
})

test('by keyboard alone: an incident is found with j and Enter, decided with a and Tab, and a held key approves nothing', async () => {
  await deadHost('host-osl-2')
  const { id } = await spine.pendingApproval()
  page = await atIncidents(browser, spine)
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
  await press('Tab', 'Tab', 'Tab', 'Enter', 'Enter', 'Enter', ' ')
  expect(await focused()).toMatch(/^Start .* now\? Runs immediately and is recorded under your name/)
  expect((await spine.get<{ status: string }>(`/approvals/${id}`)).status).toBe('pending')
  await page.getByRole('button', { name: 'Yes, approve', disabled: false }).waitFor()
  await press('Tab')
  expect(await focused()).toBe('Back')
  await press('Tab', 'Enter')
  await page.getByText('Approved by approver').waitFor()
  // A host that is healed while its plan begins is alive, and the plan is refused and asked again.
  await page.getByText('The action ran, and code verified it.').waitFor()
  expect(page.complaints).toEqual([])
})

test('a denial shows its reason, and a late person is told who decided first', async () => {
  await deadHost('host-ams-1')
  const { id } = await spine.pendingApproval()
  page = await signedIn(browser, spine)
  await page.goto(`${spine.url}/approvals/${id}`)
  await page.getByRole('button', { name: 'Deny…' }).waitFor()
  await page.keyboard.press('d')
  await page.getByRole('radio', { name: 'wrong time' }).check()
  await page.getByRole('textbox', { name: /In your words/ }).fill('backups run until four')

  // The page of the other one misses the news: it hears no stream.
  const other = await signedIn(browser, spine, 'admin')
  await other.route('**/api/v1/stream*', (route) => route.abort())
  await other.goto(`${spine.url}/approvals/${id}`)
  await other.getByText('Reconnecting…').waitFor()
  await other.getByRole('button', { name: 'Approve…' }).click()

  await page.getByRole('button', { name: 'Deny', exact: true }).click()
  await page.getByText('Denied by approver').waitFor()
  await page.getByText('backups run until four').waitFor()
  await other.getByRole('button', { name: 'Yes, approve' }).click()
  await other
    .getByRole('alert')
    .getByText('Your decision changed nothing: approver already denied the action.')
    .waitFor()
  await other.context().close()
  expect(await spine.get(`/approvals/${id}`)).toMatchObject({
    status: 'denied',
    decisions: [{ operator: 'approver', reason: 'backups run until four', category: 'wrong_time', via: 'page' }],
  })
})

test('a person who approves with other arguments sees the changes, the refusal, and the call asked again with their vote', async () => {
  await deadHost('host-ams-3')
  const asked = await spine.pendingApproval()
  page = await signedIn(browser, spine)
  await page.goto(`${spine.url}/approvals/${asked.id}`)
  await page.getByRole('button', { name: 'Edit the arguments…' }).click()
  await page.getByRole('button', { name: 'Edit as JSON' }).click()
  const field = page.getByLabel('Arguments, as JSON')
  const first = page.getByRole('button', { name: 'Approve with changes…' })
  const second = page.getByRole('button', { name: 'Yes, approve changes' })
  await page.getByText('Nothing is changed yet.').waitFor()
  await field.fill('{ "proposal_id":')
  await page.getByText('Not JSON yet').waitFor()
  expect(await first.isDisabled()).toBe(true)

  await field.fill(JSON.stringify({ ...asked.arguments, proposal_id: 'prp_x' }))
  await page.getByRole('textbox', { name: 'Reason (recorded in the log)' }).fill('storage agreed')
  await first.click()
  expect(await focused()).toMatch(/^Make this change to execute_migration\?/)
  await second.click()
  await page.getByRole('alert').getByText('The changed call would be refused').waitFor()
  expect((await spine.get<{ status: string }>(`/approvals/${asked.id}`)).status).toBe('pending')

  await page.getByRole('button', { name: 'Back' }).click()
  await field.fill(JSON.stringify({ ...asked.arguments, reason: 'dead, as storage says' }))
  await page.locator('ins', { hasText: 'dead, as storage says' }).waitFor()
  await first.click()
  await second.click()
  await page.getByText('Withdrawn: approver changed the arguments.').waitFor()
  await page.getByRole('link', { name: 'Go to the new approval' }).click()
  await page.getByText('Approved by approver').waitFor()
  await page.getByRole('link', { name: 'an earlier approval' }).waitFor()
  await page.getByRole('link', { name: 'Follow the incident' }).click()
  await page.getByRole('link', { name: /^Log/ }).click()
  await page.getByRole('log').getByText('approver changed the arguments: storage agreed').waitFor()
  await page.locator('.glance').getByText('escalated').waitFor()
  const { items } = await spine.get<{ items: { status: string }[] }>(`/approvals?incident=${asked.incidentId}`)
  expect(items.map(({ status }) => status)).toEqual(['consumed', 'withdrawn'])
  // The refusal of the edit is the one failed request.
  expect(page.complaints).toEqual([expect.stringContaining('422')])
})

test('by keyboard alone: a standing grant is given with an approval, and revoked', async () => {
  await sql`insert into platform_config (key, value) values ('approval.risk.converge_shard', 'medium')`.execute(
    spine.db,
  )
  await spine.lab.break('service_down', 'web-osl-1')
  const { id } = await spine.pendingApproval()
  page = await signedIn(browser, spine)
  const press = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key)
  }
  await page.goto(`${spine.url}/approvals/${id}`)
  await page.getByRole('heading', { name: 'Exact arguments' }).waitFor()
  await press('a', 'Tab', ' ')
  await page.getByRole('spinbutton', { name: 'Times' }).waitFor()
  await press('Tab', '2', 'Tab', 'Tab', 'Tab', 'Tab', 'Enter')
  await page.getByText('The same action may then run 2 more times within 4 h').waitFor()
  await page.getByRole('button', { name: 'Yes, approve', disabled: false }).waitFor()
  await press('Tab', 'Tab', 'Enter')
  await page.getByText('Approved by approver').waitFor()
  await press('p')
  const grant = page.getByRole('row', { name: /converge_shard on shard web-osl-1/ })
  await grant.getByText('2 of 2').waitFor()
  await grant.getByRole('button', { name: /^Revoke/ }).focus()
  await press('Enter')
  await page.getByRole('dialog').getByText('requires approval again from now on').waitFor()
  await press('Tab', 'Enter')
  await grant.getByText('revoked').waitFor()
  const { items } = await spine.get<{ items: { what: string; who: string }[] }>('/audit?what=grant')
  expect(items).toMatchObject([
    { what: 'grant.revoked', who: 'approver' },
    { what: 'grant.given', who: 'approver' },
  ])
  expect(page.complaints).toEqual([])
})

test('a page continues where it was after the server was away', async () => {
  page = await atIncidents(browser, spine)
  await hears(page)
  await spine.kill('api')
  await page.getByText('Reconnecting…').waitFor()
  await spine.start('api')
  // By hand: the lab's own sender takes its time after an outage.
  const sent = await spine.post(
    '/ingest/generic',
    { name: 'fan', title: 'A fan is broken' },
    { token: spine.tokens.ingest },
  )
  expect(sent.status).toBe(202)
  await hears(page)
  // Counted where the stream was resumed; there already where a new stream began and the list was
  // read again.
  const found = page.getByRole('link', { name: 'A fan is broken' })
  const counted = page.getByRole('button', { name: /^Show \d+ new incident/ })
  await found.or(counted).first().waitFor()
  if (await counted.isVisible()) await counted.click()
  await found.waitFor()
})

test('an open page stays open when the server stops answering during a request', async () => {
  page = await atIncidents(browser, spine)
  let letListen = () => {}
  const held = new Promise<void>((resolve) => {
    letListen = resolve
  })
  await page.route('**/api/v1/stream*', (route) => held.then(() => route.continue()))
  await page.reload()
  await page.getByRole('table').waitFor()
  // What the stream makes the page ask again fails, the session among it.
  await page.route(/\/auth\/session|\/api\/v1\/(?!stream)/, (route) => route.abort())
  const failed = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/auth/session'))
  letListen()
  await failed
  await page.getByRole('alert').first().waitFor()
  await page.getByRole('table').waitFor()
  // The stream says that it is open: what is asked goes unanswered, and so nothing is live.
  await page.getByText('Lost: reconnecting…').waitFor()
})

test('an incident that arrives before the page listens is on the page', async () => {
  page = await atIncidents(browser, spine)
  await page.route('**/api/v1/stream*', (route) => route.abort())
  await page.reload()
  await page.getByText('Reconnecting…').waitFor()
  await page.getByRole('table').waitFor()
  await spine.post(
    '/ingest/generic',
    { name: 'psu', title: 'A power supply is broken' },
    { token: spine.tokens.ingest },
  )
  await page.unroute('**/api/v1/stream*')
  await page.getByRole('link', { name: 'A power supply is broken' }).waitFor()
})

test('without JavaScript an approval can be read, signed in for, and denied', async () => {
  await deadHost('host-ams-2')
  const { id } = await spine.pendingApproval()
  page = await openPage(browser, spine.url, { javaScriptEnabled: false })
  await page.goto(`${spine.url}/approvals/${id}/plain`)
  await page.getByLabel('API token').fill(spine.tokens.approver)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Exact arguments' }).waitFor()
  await page.getByLabel('too risky').check()
  await page.getByRole('button', { name: 'Deny', exact: true }).click()
  await page.getByText('Your decision is recorded.').waitFor()
  expect((await spine.get<{ status: string }>(`/approvals/${id}`)).status).toBe('denied')
  expect(page.complaints).toEqual([])
})
