import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Browser, Page } from 'playwright-core'
import { append } from '../../db/log/append.ts'
import { putConfig } from '../../db/settings.ts'
import { enrolLab } from '../../start/lab-devices.ts'
import { ensureMeshKeys } from '../../start/mesh-keys.ts'
import { wroteRows } from '../support/announced.ts'
import {
  atIncidents,
  axeOf,
  openPage,
  planAsked,
  pressButton,
  screenshot,
  signedIn,
  type Watched,
} from '../support/browser.ts'
import { launch } from '../support/chromium.ts'
import { eventually, temporaryDirectory } from '../support/directory.ts'
import { type Spine, startSpine } from '../support/spine.ts'

const keys = temporaryDirectory()
let spine: Spine
let browser: Browser
let paths: string[]
/** An approval of a plan with migrations that leaves a VM down. */
let planned: string
/** Elements that are there only after a press. */
let opened: [path: string, button: string][]
const hostile = '<img src=https://evil.example/x onerror=alert(1)>\u202Eevil'

const jobsFile = join(keys.path, 'jobs.yaml')
const jobs = `
jobs:
  - name: converge-web
    about: "Re-applies the web role ${hostile.replace('\u202E', '\\u202E')}"
    resources: { kind: node, pattern: "node-web-[a-z0-9-]+" }
    run: { command: [ansible-playbook, -i, hosts.ini, web.yml, --limit, "{id}"] }
    check:
      command: [ansible-playbook, -i, hosts.ini, web.yml, --limit, "{id}", --check, --diff]
      noChanges: { pattern: "ok=[1-9].* changed=0 ", unless: "(changed|unreachable|failed)=[1-9]" }
`

beforeAll(async () => {
  writeFileSync(jobsFile, jobs)
  spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'worker'],
    environment: { ...ensureMeshKeys(keys.path), JOBS_FILE: jobsFile },
  })
  browser = await launch()
  await spine.lab.break('host_down', 'host-osl-1')
  const approval = await spine.pendingApproval()
  const alert = { name: 'disk_pressure', title: `Disk full on ${hostile}`, labels: { team: hostile } }
  await spine.post('/ingest/generic', alert, { token: spine.tokens.ingest })
  const gap = { incident_id: approval.incidentId, category: 'remediation', description: `No tool for ${hostile}` }
  await spine.post('/capability-gaps', gap)
  planned = await planAsked(spine)
  const ran = await planAsked(spine)
  await spine.db.updateTable('approval').set({ status: 'consumed' }).where('id', '=', ran).execute()
  const began = { kind: 'step_started', step: 2, action: 'start', vm: 'db-1', to: 'host-3' } as const
  const printed = { kind: 'tool_output', lines: ['started db-1'], left: 0 } as const
  await wroteRows(spine.db, ran, [{ kind: 'tool_started' }, began, printed])
  await enrolLab(spine.url, spine.tokens.admin, {
    ...spine.lab,
    devices: async () => (await spine.lab.devices()).slice(0, 2),
  })
  paths = [
    '/home',
    '/docs',
    '/incidents',
    '/approvals',
    '/alerts',
    '/resources',
    '/resources/host%3Ahost-osl-2',
    '/jobs',
    '/jobs/converge-web',
    '/knowledge',
    '/knowledge/host-down',
    '/gaps',
    '/devices',
    '/shift',
    '/trust',
    '/trust/replication_lag~converge_shard',
    '/reports',
    '/usage',
    '/health',
    '/config#agent.max_turns',
    '/config#webhook.critical.url',
    '/audit',
    '/people',
    '/tokens',
    ...['', '?tab=log', '?view=json', '?tab=alerts', '?tab=similar', '?tab=attempts', '?tab=details', '#e-3'].map(
      (view) => `/incidents/${approval.incidentId}${view}`,
    ),
    `/incidents/${approval.incidentId}/postmortem`,
    `/approvals/${approval.id}`,
    `/approvals/${approval.id}/plain`,
    `/approvals/${planned}`,
    `/approvals/${planned}/plain`,
    `/approvals/${ran}`,
  ]
  opened = [
    ...['Edit the arguments…', 'Deny…', 'Approve…'].map((button): [string, string] => [
      `/approvals/${approval.id}`,
      button,
    ]),
    ...['Resolve', 'Escalate', 'Mark as expected'].map((button): [string, string] => [
      `/incidents/${approval.incidentId}`,
      button,
    ]),
    [`/incidents/${approval.incidentId}/postmortem`, 'Edit Cause'],
    ['/people', 'Change'],
    ['/tokens', 'Create a token'],
  ]
})
afterAll(async () => {
  await browser?.close()
  await spine?.stop()
  keys.remove()
})

/** What hangs on colours and widths; everything else is the same in all four. */
const looks = ['color-contrast', 'target-size', 'link-in-text-block', 'scrollable-region-focusable']

async function findings(page: Page, rules?: string[]): Promise<string[]> {
  const axe = axeOf(page)
  const asked = rules
    ? axe.withRules(rules)
    : axe.withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'])
  // Where a page stands scrolled, its top bar covers a part of whatever lies there; a row of the
  // log that is not in sight is not laid out yet.
  await page.evaluate(`scrollTo(0, 0)
    for (const row of document.querySelectorAll('.entry')) row.style.contentVisibility = 'visible'`)
  const { violations } = await asked.analyze()
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`))
}

async function settled(page: Watched, path: string): Promise<void> {
  await page.goto(`${spine.url}${path}`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  // Several parts of a page may be loading at once.
  await eventually('all to be there', async () => (await page.getByText(/^Loading/).count()) === 0)
}

describe.each([
  [1440, ['light', 'dark']],
  [390, ['dark', 'light']],
] as const)('at %i pixels', (width, [first, second]) => {
  // A page is opened once and looked at in both colours: all rules in the first, those of colours
  // and widths in the second.
  test('every page is accessible in light and dark, fits its width, and sends no request elsewhere', async () => {
    const page = await signedIn(browser, spine, 'admin', { viewport: { width, height: 900 } })
    const wrong: string[] = []
    const look = async (what: string) => {
      const name = what.replaceAll(/[^a-z0-9]+/gi, '-').replaceAll(/^-|-$/g, '')
      for (const colorScheme of [first, second]) {
        await page.emulateMedia({ colorScheme })
        await screenshot(page, `${name}-${colorScheme}-${width}`)
        const found = await findings(page, colorScheme === first ? undefined : looks)
        wrong.push(...found.map((finding) => `${what}, ${colorScheme}: ${finding}`))
      }
      const wide = (await page.evaluate('document.documentElement.scrollWidth')) as number
      if (wide > width) wrong.push(`${what} is ${wide} pixels wide`)
    }
    for (const path of paths) {
      await settled(page, path)
      await look(path)
    }
    for (const [path, button] of opened) {
      await settled(page, path)
      await pressButton(page, button)
      await look(`${path}, ${button}`)
    }
    expect(wrong).toEqual([])
    expect(page.complaints).toEqual([])
    await page.context().close()
  })
})

/**
 * What a page of this width cuts: text that ends behind an edge where nobody can scroll to it. What
 * is there for speech alone is one pixel wide, and what is folded has no size.
 */
const cutText = `(() => {
  const scrolls = (style) => style.overflowX === 'auto' || style.overflowX === 'scroll'
  const cut = []
  const walk = (element, isScrolled, isCutOnPurpose) => {
    const style = getComputedStyle(element)
    const box = element.getBoundingClientRect()
    if (style.visibility === 'hidden' || box.width <= 1 || box.height <= 1) return
    const hides = style.overflowX === 'hidden' || style.overflowX === 'clip'
    const speaks = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '')
    const onPurpose = isCutOnPurpose || style.textOverflow === 'ellipsis'
    const name = element.tagName.toLowerCase() + '.' + element.className + ' ' + (element.textContent || '').trim().slice(0, 40)
    if (hides && !onPurpose && !isScrolled && element.scrollWidth > element.clientWidth + 1) cut.push('hides: ' + name)
    if (speaks && !isScrolled && !onPurpose && box.right > innerWidth + 1) cut.push('beyond: ' + name)
    for (const child of element.children) if (child.tagName !== 'svg') walk(child, isScrolled || scrolls(style), onPurpose)
  }
  walk(document.body, false, false)
  return cut
})()`

/**
 * How much of the screen is under what stays while one scrolls, in pixels. A dialog is what is
 * read, and scrolls by itself.
 */
const coveredHeight = `[...document.body.querySelectorAll('*:not(dialog)')]
  .filter((element) => ['fixed', 'sticky'].includes(getComputedStyle(element).position))
  .map((element) => element.getBoundingClientRect())
  .filter(({ top, bottom, width }) => bottom > 0 && top < innerHeight && width > innerWidth / 2)
  .reduce((sum, { height }) => sum + height, 0)`

test.each([
  ['at 200 % zoom', { viewport: { width: 720, height: 450 }, deviceScaleFactor: 2 }],
  ['at 400 % zoom, which leaves 320 pixels', { viewport: { width: 320, height: 256 }, deviceScaleFactor: 4 }],
])('%s every page needs no sideways scrolling, cuts no text, and no bar covers half of it', async (name, options) => {
  const page = await signedIn(browser, spine, 'admin', options)
  const wrong: string[] = []
  const look = async (what: string) => {
    await screenshot(page, `${what}-${name.slice(3, 6)}`.replaceAll(/[^a-z0-9]+/gi, '-').replace(/^-/, ''))
    const wide = (await page.evaluate('document.documentElement.scrollWidth')) as number
    if (wide > options.viewport.width) wrong.push(`${what} is ${wide} pixels wide`)
    const covered = (await page.evaluate(coveredHeight)) as number
    if (covered > options.viewport.height / 2) wrong.push(`${what} has ${covered} pixels under bars that stay`)
    wrong.push(...((await page.evaluate(cutText)) as string[]).map((cut) => `${what} ${cut}`))
  }
  for (const path of paths) {
    await settled(page, path)
    await look(path)
  }
  for (const [path, button] of opened) {
    await settled(page, path)
    await pressButton(page, button)
    await look(`${path}, ${button}`)
  }
  expect(wrong).toEqual([])
  expect(page.complaints).toEqual([])
  await page.context().close()
})

test('foreign text is shown literally', async () => {
  const page = await signedIn(browser, spine)
  for (const path of ['/alerts', '/incidents', '/gaps']) {
    await settled(page, path)
    await page.getByText('<img src=https://evil.example/x').first().waitFor()
    expect(await page.locator('img').count()).toBe(0)
    expect(await page.locator('main').innerText()).not.toContain('\u202E')
  }
  expect(page.complaints).toEqual([])
  await page.context().close()
})

test('a plan is stepped through by button, key and slider, and shows which VMs stay down and what is proved', async () => {
  const page = await signedIn(browser, spine)
  // A question that no run waits for is withdrawn after a while: this one is new.
  await settled(page, `/approvals/${await planAsked(spine)}`)
  const card = page.getByRole('article')
  await card.getByText('1 VM stays down', { exact: true }).waitFor()
  await card.getByText(/^db-2: no room for 32768 MiB/).waitFor()
  await card
    .getByText(
      /^If one more rack fails: there is no room for all VMs of rack-c \(short by [^)]+\) or rack-d \(short by/,
    )
    .waitFor()
  const said = card.getByRole('status').filter({ hasText: /plan|Step/ })
  // It begins with what is, and says that it is a preview.
  await said.getByText('Preview: nothing has run. Before the plan').waitFor()
  // Now is one picture, without a line to anywhere; each host says which VM that stays down it does
  // not take.
  expect(await card.locator('svg.beside .move').count()).toBe(0)
  for (const rule of ['not db-2: apart from db-1', 'not db-2: 28 GiB short'])
    await card.locator('svg.beside .rule').getByText(rule).waitFor()
  await card.getByText('Why the other hosts cannot take db-2').click()
  await card
    .getByRole('listitem')
    .getByText(/^db-2 cannot go to host-4: .*RAM short by \d+ MiB/)
    .waitFor()
  expect(await card.getByRole('button', { name: 'Previous' }).getAttribute('aria-disabled')).toBe('true')

  await card.getByRole('button', { name: 'Last' }).click()
  await said.getByText('Preview: nothing has run. After the plan: all 4 steps would be done').waitFor()
  expect(await card.getByRole('button', { name: 'Next' }).getAttribute('aria-disabled')).toBe('true')
  // A line leaves the box of its VM and ends in the box that it becomes; the VMs are named.
  const lines = await card.locator('svg.beside .move').count()
  expect(lines).toBe(4)
  for (const end of ['from', 'to']) expect(await card.locator(`svg.beside .end-of-move.${end}`).count()).toBe(lines)
  await card.locator('svg.beside').getByText('2 db-1').first().waitFor()
  expect(await card.locator('svg.beside').getByText('host-5').count()).toBe(0)
  await card.getByText('1 host is not touched.').waitFor()
  await card.getByRole('button', { name: 'show the untouched hosts' }).click()
  await card.locator('svg.beside').getByText('host-5').first().waitFor()
  await card.getByRole('button', { name: 'First' }).click()
  await said.getByText('Before the plan').waitFor()
  await page.keyboard.press('ArrowRight')
  await said.getByText('Step 1 of 4, wave 1: migrate batch-1 from host-3 to host-4').waitFor()
  // While it runs it takes room on both hosts, and the step is marked in the list.
  const drawn = card.locator('svg.beside')
  expect(await drawn.locator('.vm.leaves').count()).toBe(1)
  expect(await drawn.locator('.vm.comes').count()).toBe(1)
  await drawn.getByText('24 → 12 GiB, 12 → 8 CPU free').waitFor()
  expect(await card.locator('[aria-current=step]').textContent()).toContain('migrate batch-1')
  await page.keyboard.press('ArrowRight')
  await said.getByText(/Step 2 of 4/).waitFor()
  expect(await drawn.locator('.vm.leaves.off').count()).toBe(1)
  await card.getByRole('button', { name: 'Previous' }).click()
  await said.getByText(/Step 1 of 4/).waitFor()
  await card.getByRole('slider', { name: 'How far the plan is' }).press('End')
  await said.getByText('After the plan').waitFor()

  await card.getByRole('button', { name: 'Play' }).click()
  await said.getByText('Before the plan').waitFor()
  await said.getByText(/Step 1 of 4/).waitFor()
  await card.getByRole('button', { name: 'Pause' }).click()
  await card.getByRole('button', { name: 'Play' }).waitFor()
  expect(page.complaints).toEqual([])
  await page.context().close()
})

test('nothing moves by itself for a person whose system asks for less motion', async () => {
  const page = await signedIn(browser, spine, 'approver', { reducedMotion: 'reduce' })
  await settled(page, `/approvals/${planned}`)
  const play = page.getByRole('button', { name: 'Play' })
  await play.waitFor()
  expect(await play.getAttribute('aria-disabled')).toBe('true')
  await page.getByText('your system is set to reduced motion').waitFor()
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByText(/Step 1 of 4/).waitFor()
  await page.context().close()
})

test('a stranger gets a sign-in page, the code of the start leads to Home, and a used code is refused', async () => {
  const stranger = await openPage(browser, spine.url)
  await stranger.goto(`${spine.url}/incidents`)
  await stranger.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(await findings(stranger)).toEqual([])
  const minted = await fetch(`${spine.url}/auth/codes`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.tokens.approver}` },
  })
  const { code } = (await minted.json()) as { code: string }
  await stranger.goto(`${spine.url}/sign-in#code=${code}`)
  await stranger.getByRole('heading', { name: 'Home' }).waitFor()
  expect(stranger.complaints).toEqual([])
  await stranger.context().close()
  const page = await openPage(browser, spine.url)
  await page.goto(`${spine.url}/sign-in#code=${code}`)
  await page.getByRole('alert').getByText('already used').waitFor()
  expect(page.url()).toBe(`${spine.url}/sign-in`)
  await page.getByLabel('API token').fill(spine.tokens.agent)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').getByText('is not a person').waitFor()
  await page.context().close()
})

test('keys can be switched off, and filters are part of the address', async () => {
  const page = await atIncidents(browser, spine)
  await page.keyboard.press('/')
  await page.keyboard.type('host-osl')
  await page.waitForURL(/q=host-osl/)
  await page.locator('summary', { hasText: 'Severity' }).click()
  await page.getByRole('button', { name: 'critical', exact: true }).click()
  await page.waitForURL(/severity=critical/)
  await page.reload()
  await page.getByRole('link', { name: 'Host host-osl-1 is down' }).waitFor()
  await page.keyboard.press('?')
  await page.getByRole('checkbox', { name: 'Single keys are shortcuts' }).uncheck()
  await page.keyboard.press('Escape')
  await page.keyboard.press('p')
  expect(page.url()).toContain('/incidents')
  await page.context().close()
})

test('an admin adds a person, makes a token that is shown once, revokes it, disables the person, and each step is in the audit log', async () => {
  const page = await signedIn(browser, spine, 'admin')
  const dialog = page.getByRole('dialog')
  const works = async (token: string) =>
    (await fetch(`${spine.url}/api/v1/incidents`, { headers: { authorization: `Bearer ${token}` } })).status

  await settled(page, '/people')
  await page.getByRole('button', { name: 'Add a user' }).click()
  await dialog.getByLabel('Name: one word').fill('dora')
  await dialog.getByRole('checkbox', { name: 'In incidents of all types' }).uncheck()
  await dialog.getByLabel('Reason (recorded in the audit log)').fill('new in the storage team')
  await dialog.getByRole('button', { name: 'Add a user' }).click()
  const dora = page.getByRole('row', { name: /^dora/ })
  await dora.getByRole('cell', { name: 'never' }).waitFor()
  // No type is not all types, however often it is saved.
  await page.getByRole('button', { name: 'Change dora' }).click()
  await dialog.getByLabel('Decides about risks').selectOption('low')
  await dialog.getByLabel('Reason (recorded in the audit log)').fill('learns first')
  await dialog.getByRole('button', { name: 'Change' }).click()
  await dora.getByRole('cell', { name: 'low', exact: true }).waitFor()
  expect(await spine.get('/operators/dora')).toMatchObject({ incidentTypes: [], maxRisk: 'low' })

  await settled(page, '/tokens')
  await page.getByRole('button', { name: 'Create a token' }).click()
  await dialog.getByLabel('Name: say where you will use it').fill('dora, phone')
  await dialog.getByLabel('Owner').fill('dora')
  await dialog.getByRole('button', { name: 'Create a token' }).click()
  const minted = page.getByRole('region', { name: 'The new token' })
  const token = (await minted.getByText(/^nst_/).textContent()) ?? ''
  expect(await works(token)).toBe(200)
  await minted.getByRole('button', { name: 'I have saved it' }).click()
  expect(await page.content()).not.toContain(token)
  await page.getByRole('button', { name: 'Revoke dora, phone' }).click()
  await dialog.getByRole('button', { name: 'Revoke' }).click()
  await page
    .getByRole('row', { name: /dora, phone/ })
    .getByText('revoked')
    .waitFor()
  expect(await works(token)).toBe(401)

  await settled(page, '/people')
  await dora.getByRole('cell', { name: /ago$/ }).waitFor()
  await page.getByRole('button', { name: 'Change dora' }).click()
  await dialog.getByRole('checkbox', { name: /^Disabled/ }).check()
  await dialog.getByLabel('Reason (recorded in the audit log)').fill('left the company')
  await dialog.getByRole('button', { name: 'Change' }).click()
  await dora.getByRole('cell', { name: /^approver\s*disabled$/ }).waitFor()

  await settled(page, '/audit')
  await page.getByLabel('What').selectOption({ label: 'operator: all' })
  await page.waitForURL(/what=operator/)
  await page.getByRole('row', { name: /admin operator\.changed dora .* disabled, .*: left the company/ }).waitFor()
  await page.getByRole('row', { name: /operator\.added dora .*: new in the storage team/ }).waitFor()
  await page.getByLabel('Who').selectOption('admin')
  await page.waitForURL(/who=admin/)
  await page.goto(`${spine.url}/audit?who=nobody`)
  await page.getByText('Nothing fits these filters.').waitFor()
  expect(await page.getByLabel('Who').inputValue()).toBe('nobody')
  expect(page.complaints).toEqual([])
  await page.context().close()
})

test('a person takes an incident, gives it back, marks it as expected, withdraws the mark, and closes it with an outcome', async () => {
  const key = 'agent.investigate.by_hand'
  await putConfig(spine.db, { key, value: 'none', actor: 'user:admin', reason: null, ifVersion: null })
  const alert = { name: 'by_hand', title: 'A thing for people', labels: { incident_type: 'by_hand' } }
  const { body } = await spine.post('/ingest/generic', alert, { token: spine.tokens.ingest })
  const [{ incidentId }] = body.alerts as [{ incidentId: string }]
  const page = await signedIn(browser, spine)
  const [answer, glance] = [page.locator('.answer'), page.locator('.glance')]
  const dialog = page.getByRole('dialog')
  const press = async (name: string) => {
    await pressButton(page, `${name} this incident`)
    return dialog.getByRole('button', { name, exact: true })
  }

  await settled(page, `/incidents/${incidentId}`)
  await answer.getByText('agent.investigate is none for incidents of this type').waitFor()
  await (await press('Take')).click()
  await glance.getByText('its alert still fires, approver has it').waitFor()
  await answer.getByText('approver took this incident').waitFor()
  await (await press('Give back')).click()
  await page.getByRole('button', { name: 'Take this incident' }).waitFor()

  // Nothing is chosen for the person: without a choice the dialog stays.
  const resolve = await press('Resolve')
  await dialog.getByLabel('What was wrong, and what was done?').fill('Restarted by hand')
  await resolve.click()
  expect(await dialog.isVisible()).toBe(true)
  await dialog.getByRole('button', { name: 'Back' }).click()

  const mark = await press('Mark as expected')
  await dialog.getByRole('button', { name: 'a week' }).click()
  await dialog.getByLabel('Why is it expected?').fill('it does this on Sundays')
  await mark.click()
  await glance.getByText('expected, its alert still fires').waitFor()
  await settled(page, '/alerts')
  await page.getByText('it does this on Sundays').waitFor()
  await page.getByRole('button', { name: /^Take back the mark on/ }).click()
  await dialog.getByRole('button', { name: 'Take back' }).click()
  await page.getByText('it does this on Sundays').waitFor({ state: 'detached' })

  await spine.until('the incident to open again', async () => {
    const { status } = await spine.get<{ status: string }>(`/incidents/${incidentId}`)
    return status === 'open'
  })
  await settled(page, `/incidents/${incidentId}`)
  const close = await press('Resolve')
  await dialog.getByRole('radio', { name: 'ended by itself' }).check()
  await dialog.getByLabel('What was wrong, and what was done?').fill('Sunday is over')
  await close.click()
  await answer.getByText('Sunday is over').waitFor()
  await page.getByRole('link', { name: 'Details' }).click()
  await page.locator('dl.facts').getByText('ended by itself, by a person').waitFor()
  expect(page.complaints).toEqual([])
  await page.context().close()
})

test('a person without a right is told which permission is missing', async () => {
  const page = await signedIn(browser, spine)
  for (const [path, permission] of [
    ['/people', 'manage_operators'],
    ['/tokens', 'manage_tokens'],
    ['/config', 'write_config'],
  ] as const) {
    await settled(page, path)
    await page.getByText(`Your role (approver) may not do this: it needs the permission ${permission}.`).waitFor()
  }
  expect(page.complaints).toEqual([])
  await page.context().close()
})

test('a setting is rolled back to a version of its history', async () => {
  const key = 'agent.max_turns'
  const set = (value: string) => putConfig(spine.db, { key, value, actor: 'user:admin', reason: null, ifVersion: null })
  await set('13')
  await set('14')
  const page = await signedIn(browser, spine, 'admin')
  await settled(page, '/config#agent.max_turns')
  const row = page.locator('[id="agent.max_turns"]')
  await row.getByRole('button', { name: 'Roll back agent.max_turns to version 1' }).click()
  await page.getByRole('dialog').getByLabel('Reason').fill('14 were too many')
  await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click()
  await row.getByText('version 3').waitFor()
  await row.getByText('14 were too many').waitFor()
  expect(await spine.get('/config/agent.max_turns')).toMatchObject({
    value: '13',
    version: 3,
    reason: '14 were too many',
  })
  expect(page.complaints).toEqual([])
  await page.context().close()
})

test('a link finds its own row among a thousand, and the page search finds rows that are not visible', async () => {
  const alert = { name: 'long_story', title: 'A long story' }
  const { body } = await spine.post('/ingest/generic', alert, { token: spine.tokens.ingest })
  const [{ incidentId }] = body.alerts as [{ incidentId: string }]
  await spine.db.transaction().execute(async (trx) => {
    for (let row = 0; row < 1_000; row++) {
      const text = `Looked for the ${row}th time`
      const metadata = { text, confidence: null, action: null }
      await append(trx, incidentId, null, { kind: 'commented', actor: 'user:anna', detail: text, metadata })
    }
  })
  const page = await signedIn(browser, spine)
  await settled(page, `/incidents/${incidentId}#e-900`)
  const row = page.locator('#e-900')
  await row.and(page.locator('[aria-current=true]')).waitFor()
  const isInSight = `(() => {
    const { top, bottom } = document.getElementById('e-900').getBoundingClientRect()
    return top > 0 && bottom < innerHeight
  })()`
  await eventually('the row in sight', () => page.evaluate<boolean>(isInSight))
  expect(await page.evaluate(`find('Looked for the 33th time')`)).toBe(true)
  expect(page.complaints).toEqual([])
  await page.context().close()
})

test('a setting is found by its words or its section, and a search without a result says so', async () => {
  const page = await signedIn(browser, spine, 'admin')
  await settled(page, '/config')
  const settings = page.locator('.things > li[id]')
  const all = await settings.count()
  await page.getByRole('searchbox', { name: 'Search settings' }).fill('turns investigation')
  await page.waitForURL(/q=turns/)
  expect(await settings.count()).toBeLessThan(all / 4)
  await page.locator('[id="agent.max_turns"]').waitFor()
  await page.getByRole('searchbox', { name: 'Search settings' }).fill('nothing like it')
  await page.getByText('No setting fits.').waitFor()
  await settled(page, '/config?section=Model')
  expect(await page.locator('.sections h2').allTextContents()).toEqual(['Model'])
  expect(page.complaints).toEqual([])
  await page.context().close()
})

test.each([
  ['light', 1440],
  ['dark', 390],
] as const)('the settings of the worker are shown if they differ (%s, %i px)', async (scheme, width) => {
  const page = await signedIn(browser, spine, 'admin', { colorScheme: scheme, viewport: { width, height: 844 } })
  await settled(page, '/config')
  await page
    .getByText(/^The variables that the API process and the worker started with.*The worker started 20/)
    .waitFor()
  const group = page.locator('details', { hasText: 'Agent and model' })
  await group.locator('summary').click()
  // The model is the worker's alone here; of its key it is shown only that it is set.
  const row = (name: string) => group.getByRole('row').filter({ has: page.getByText(name, { exact: true }) })
  await row('LLM_MODEL').getByText('worker runbook-rules').waitFor()
  expect(await row('AGENT_API_KEY').innerText()).toMatch(/not set\s+worker set/)
  expect(await row('LLM_MAX_TURNS').innerText()).not.toContain('worker')
  await row('LLM_MODEL').scrollIntoViewIfNeeded()
  await screenshot(page, `config-environment-${width}-${scheme}`)
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  expect(page.complaints).toEqual([])
  await page.context().close()
})
