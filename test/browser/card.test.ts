import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import type { Browser } from 'playwright-core'
import { asked } from '../api/announced.ts'
import { claimedIncident } from '../support/database.ts'
import { type Spine, startSpine } from '../support/spine.ts'
import { launch, signedIn, type Watched } from './browser.ts'
import { planAsked } from './plan-asked.ts'
import { screenshot } from './screenshot.ts'

let spine: Spine
let browser: Browser
let page: Watched

beforeAll(async () => {
  spine = await startSpine({ parts: ['api'] })
  browser = await launch()
})
afterEach(async () => {
  await page?.context().close()
})
afterAll(async () => {
  await browser?.close()
  await spine?.stop()
})

const opened = async (id: string, width = 1440, colorScheme: 'light' | 'dark' = 'light') => {
  page = await signedIn(browser, spine, 'approver', { viewport: { width, height: 844 }, colorScheme })
  await page.goto(`${spine.url}/approvals/${id}`)
  await page.getByRole('img', { name: /^Plan to recover/ }).waitFor()
  return page.getByRole('article')
}

const inSight = (name: string) =>
  page
    .getByRole('button', { name, exact: true })
    .boundingBox()
    .then((box) => box !== null && box.y >= 0 && box.y + box.height <= (page.viewportSize()?.height ?? 0))

test.each([
  [1440, 'light'],
  [1440, 'dark'],
  [390, 'light'],
  [390, 'dark'],
] as const)('at %i pixels in %s both decisions and what they lead to are in sight at once', async (width, scheme) => {
  const card = await opened(await planAsked(spine), width, scheme)
  await page.evaluate('scrollTo(0, 0)')
  await screenshot(page, `card-${width}-${scheme}`)
  expect([await inSight('Deny…'), await inSight('Approve…'), await inSight('+15 minutes')]).toEqual([true, true, true])
  const lines = card.locator('.consequences')
  for (const words of ['The targets are read again', 'The agent reads your reason', 'the incident is escalated'])
    await lines.getByText(words).waitFor()
  await page.evaluate('scrollTo(0, document.body.scrollHeight / 2)')
  expect([await inSight('Deny…'), await inSight('Approve…')]).toEqual([true, true])
  await page.getByRole('button', { name: 'Approve…' }).click()
  await card.getByText(/^Really: /).waitFor()
  expect(await inSight('Yes, approve')).toBe(true)
  await screenshot(page, `card-armed-${width}-${scheme}`)
})

test('a person gives a question 15 more minutes, and the countdown follows', async () => {
  const id = await planAsked(spine)
  const card = await opened(id)
  const left = card.locator('.decision-bar .countdown')
  expect(await left.innerText()).toMatch(/^(9|10):/)
  await page.getByRole('button', { name: '+15 minutes' }).click()
  await left.getByText(/^2[45]:/).waitFor()
  expect(page.complaints).toEqual([])
})

test('a viewer reads the card and why they may not decide', async () => {
  const id = await planAsked(spine)
  await opened(id)
  await page.route('**/auth/session', async (route) => {
    const answer = await route.fetch()
    await route.fulfill({ json: { ...(await answer.json()), role: 'viewer', permissions: ['read'] } })
  })
  await page.reload()
  await page.getByText('it needs the permission decide').waitFor()
  for (const name of ['Deny…', 'Approve…', '+15 minutes'])
    expect(await page.getByRole('button', { name, exact: true }).isDisabled()).toBe(true)
  // A question on its way would fail with the page that asked it.
  await page.unrouteAll({ behavior: 'ignoreErrors' })
})

test('an expired card says that nothing was changed, keeps its preview apart from history, and asks again', async () => {
  const id = await planAsked(spine)
  const { incidentId } = await spine.get<{ incidentId: string }>(`/approvals/${id}`)
  await spine.db
    .updateTable('approval')
    .set({ status: 'expired', expiresAt: '2026-11-21T02:46:00Z' })
    .where('id', '=', id)
    .execute()
  await spine.db
    .updateTable('incident')
    .set({ status: 'escalated', assignedTo: null })
    .where('id', '=', incidentId)
    .execute()
  for (const [width, scheme] of [
    [390, 'dark'],
    [1440, 'light'],
  ] as const) {
    await page?.context().close()
    const card = await opened(id, width, scheme)
    await card.getByText('Expired: nobody decided in time, and nothing was changed.').waitFor()
    await card.getByText('None of it was done.').waitFor()
    expect(await card.innerText()).not.toMatch(/steps are done/)
    expect(await card.getByRole('button', { name: 'Approve…' }).count()).toBe(0)
    await screenshot(page, `card-expired-${width}-${scheme}`)
  }
  await page.getByRole('button', { name: 'Request again this action' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Request again' }).click()
  await page.getByRole('log').getByText('Asked for an investigation').waitFor()
  expect((await spine.get<{ status: string }>(`/incidents/${incidentId}`)).status).toBe('open')
})

test('a half-written denial survives a reload, and is gone once it is sent', async () => {
  const id = await planAsked(spine)
  await opened(id)
  const words = page.getByRole('textbox', { name: /In your words/ })
  await words.fill('backups run until four')
  await page.reload()
  await page.getByText('Exact arguments').waitFor()
  expect(await words.inputValue()).toBe('backups run until four')
  await page.getByRole('radio', { name: 'wrong time' }).check()
  await page.getByRole('button', { name: 'Deny', exact: true }).click()
  await page.getByText('Denied: nothing was changed.').waitFor()
  expect(await page.evaluate('Object.keys(sessionStorage).filter((key) => key.startsWith("draft"))')).toEqual([])
})

test('the card of a command on a device shows what its rehearsal found, apart from what was not tried', async () => {
  const id = await asked(spine.db, await claimedIncident(spine.db), {
    ...{
      tool: 'shell_eval',
      targets: [{ kind: 'node', id: 'web-7' }],
      identity: { command: 'systemctl restart nginx' },
    },
  })
  const rehearsal = {
    told: ['runs as user root'],
    diff: '-worker_processes 1;\n+worker_processes 4;\n',
    checks: [{ argv: ['nginx', '-t'], exit_code: 0, output: 'syntax is ok\n' }],
    untried: ['systemctl was not tried: no way is known.'],
  }
  const dryRun = { possible: true, summary: 'run a text on web-7', details: { rehearsal } }
  await spine.db
    .updateTable('approval')
    .set({ dryRun: JSON.stringify(dryRun), reversible: false })
    .where('id', '=', id)
    .execute()
  for (const [width, scheme] of [
    [390, 'dark'],
    [1440, 'light'],
  ] as const) {
    await page?.context().close()
    page = await signedIn(browser, spine, 'approver', { viewport: { width, height: 844 }, colorScheme: scheme })
    await page.goto(`${spine.url}/approvals/${id}`)
    const found = page.getByRole('region', { name: 'What was found out beforehand' })
    await found.waitFor()
    const text = await found.innerText()
    for (const line of ['runs as user root', '+worker_processes 4;', 'check nginx -t ended with 0', '  syntax is ok'])
      expect(text).toContain(line)
    expect(text).not.toContain('systemctl was not tried')
    await page.locator('.said.wrong').getByText('systemctl was not tried: no way is known.').waitFor()
    await page.locator('.decision-bar').getByText('cannot be undone').waitFor()
    await page.locator('.consequences').getByText('It cannot be undone.').waitFor()
    await found.scrollIntoViewIfNeeded()
    await screenshot(page, `card-device-${width}-${scheme}`)
  }
})
