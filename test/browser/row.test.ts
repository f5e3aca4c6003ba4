import { expect, test } from '@jest/globals'
import { append } from '../../db/log/append.ts'
import { agentActor } from '../../domain/event.ts'
import { asked } from '../support/announced.ts'
import { axeOf, screenshot, signedIn, useBrowser } from '../support/browser.ts'
import { claimedIncident } from '../support/database.ts'

/**
 * A row of the log beside the page that rests on it: opened by its number, stepped through, and
 * left again.
 */

const on = useBrowser()

/**
 * An incident that waits, after a look (row 2) that a cause (row 3) quotes; the question is row 4.
 */
async function waiting(): Promise<{ id: string; approvalId: string }> {
  const { db } = on.spine
  const host = { kind: 'host' as const, id: 'host-osl-2' }
  const id = await claimedIncident(db, { title: 'host-osl-2 is off' })
  const about = { resourceKind: host.kind, resourceId: host.id }
  await on.spine.owner.updateTable('incident').set(about).where('id', '=', id).execute()
  const data = { host: host.id, power: 'off', events: ['PS1 Input Lost', 'PS2 Input Lost'], note: 'x'.repeat(4_000) }
  await db.transaction().execute(async (trx) => {
    await append(trx, id, 1, {
      kind: 'tool_finished',
      actor: agentActor,
      detail: 'Called tool: get_host',
      turn: 1,
      metadata: {
        callId: 'c1_0',
        tool: 'get_host',
        arguments: { id: host.id },
        effect: 'read',
        targets: [host],
        outcome: 'done',
        result: { ok: true, data, meta: {} },
        body: null,
        durationMs: 4,
        discovered: [{ ...host, name: host.id, aliases: [], seen: true, health: 'critical' }],
        said: 'host-osl-2 is dead (critical): 0 of 3 VMs run',
      },
    })
    // The row is drawn on other lines than the words that were quoted.
    const quotes = [
      { seq: 2, text: '"power":"OFF"' },
      { seq: 2, text: 'dead (critical)' },
    ]
    const text = 'Both power inputs were lost'
    const hypothesis = { id: 'h1', text, state: 'supported' as const, quotes }
    const metadata = { text, confidence: null, action: 'investigated' as const, hypothesis }
    await append(trx, id, 1, { kind: 'commented', actor: agentActor, detail: text, metadata })
  })
  return { id, approvalId: await asked(db, id, { targets: [host] }) }
}

const opened = async (path: string, width = 1440, colorScheme: 'light' | 'dark' = 'light') => {
  on.page = await signedIn(on.browser, on.spine, 'approver', {
    viewport: { width, height: 900 },
    colorScheme,
    reducedMotion: 'reduce',
  })
  await on.page.goto(`${on.spine.url}${path}`)
  return on.page.getByRole('dialog', { name: /^Row / })
}
const chip = (seq: number) =>
  on.page
    .locator('.answer')
    .getByRole('link', { name: `row ${seq}` })
    .first()
const hasFocus = (selector: string) => on.page.locator(`${selector}:focus`).first().waitFor()

/** Sentences and buttons of the main column that something lies over. */
const covered = `[...document.querySelectorAll('.column :is(p, h2, dt, dd, a, button)')].filter((each) => {
  const { left, right, top, bottom, width } = each.getBoundingClientRect()
  if (width === 0 || top < 60 || bottom > innerHeight - 60) return false
  return [left + 1, right - 1].some((x) => document.elementFromPoint(x, (top + bottom) / 2)?.closest('.drawer'))
}).map((each) => each.textContent)`

test('a number opens its row beside the page, Escape closes it, and the keyboard focus returns', async () => {
  const { id } = await waiting()
  const drawer = await opened(`/incidents/${id}`)
  await chip(2).press('Enter')
  await drawer.getByText('0 of 3 VMs run').first().waitFor()
  await hasFocus('.drawer h2')
  expect(new URL(on.page.url()).search).toBe('?row=2')
  expect(await drawer.getByRole('heading').innerText()).toBe('Row 2 of 4 · result')
  expect(await drawer.locator('mark').allInnerTexts()).toEqual(
    expect.arrayContaining(['dead (critical)', 'power": "off']),
  )
  await drawer.getByRole('button', { name: 'Next row' }).click()
  await drawer.getByRole('heading', { name: /^Row 3 of 4/ }).waitFor()
  await on.page.keyboard.press('k')
  await drawer.getByRole('heading', { name: /^Row 2 of 4/ }).waitFor()
  await on.page.keyboard.press('Escape')
  await drawer.waitFor({ state: 'detached' })
  await hasFocus('.answer a')
  expect(new URL(on.page.url()).search).toBe('')
  expect(await on.page.getByRole('log').count()).toBe(0)
  expect(on.page.complaints).toEqual([])
})

test('a row that is closed before its answer arrives returns the focus to its link or to the title', async () => {
  const { id } = await waiting()
  const drawer = await opened('/incidents')
  await on.page.route('**/brief', () => {})
  await on.page.goto(`${on.spine.url}/incidents/${id}?row=2`)
  await drawer.getByText('0 of 3 VMs run').first().waitFor()
  await hasFocus('.drawer h2')
  await on.page.keyboard.press('Escape')
  await drawer.waitFor({ state: 'detached' })
  await on.page.locator('main a:focus, h1:focus').first().waitFor()
  await on.page.unrouteAll({ behavior: 'ignoreErrors' })
})

test('a link to a row, sent to another person, opens the same row over the same page', async () => {
  const { id } = await waiting()
  const drawer = await opened(`/incidents/${id}?row=2`)
  await drawer.getByText('0 of 3 VMs run').first().waitFor()
  await hasFocus('.drawer h2')
  await on.page.locator('.answer a[aria-expanded="true"]').first().waitFor()
  await on.page.keyboard.press('Escape')
  await hasFocus('.answer a')
  await on.page.goto(`${on.spine.url}/incidents/${id}?row=99`)
  await drawer.getByText('The log has no row 99.').waitFor()
  await drawer.getByRole('button', { name: 'Previous row' }).click()
  await drawer.getByRole('heading', { name: /^Row 4 of 4/ }).waitFor()
})

test('the row links to its place in the log, and the log stays while other rows are opened', async () => {
  const { id } = await waiting()
  const drawer = await opened(`/incidents/${id}`)
  await chip(2).click()
  await drawer.getByRole('link', { name: 'Show in the log' }).click()
  await on.page.locator('#e-2').and(on.page.locator('[aria-current=true]')).waitFor()
  await drawer.waitFor({ state: 'detached' })
  await chip(2).click()
  await drawer.getByText('0 of 3 VMs run').first().waitFor()
  expect(await on.page.getByRole('log').count()).toBe(1)
})

test('the card opens its evidence beside itself, and both decisions stay visible', async () => {
  const { approvalId } = await waiting()
  const drawer = await opened(`/approvals/${approvalId}`)
  await on.page.locator('.evidence').getByRole('link', { name: 'row 2' }).click()
  await drawer.locator('mark', { hasText: 'dead (critical)' }).first().waitFor()
  await screenshot(on.page, 'row-of-card-1440-light')
  for (const name of ['Deny…', 'Approve…']) {
    const box = await on.page.getByRole('button', { name }).boundingBox()
    expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(1440 - 440)
  }
  await on.page.keyboard.press('Escape')
  await hasFocus('.evidence a')
  expect(new URL(on.page.url()).pathname).toBe(`/approvals/${approvalId}`)
})

test.each([
  [1440, 'light'],
  [1440, 'dark'],
  [1280, 'light'],
  [390, 'light'],
  [390, 'dark'],
] as const)(
  'at %i pixels in %s an open row covers no sentence on a desktop, is a sheet on a phone, and has no accessibility fault',
  async (width, colorScheme) => {
    const { id } = await waiting()
    const drawer = await opened(`/incidents/${id}`, width, colorScheme)
    const before = await on.page.locator('.decision').boundingBox()
    await chip(2).click()
    await drawer.getByText('0 of 3 VMs run').first().waitFor()
    await screenshot(on.page, `row-${width}-${colorScheme}`)
    const box = await drawer.boundingBox()
    if (width > 820) {
      expect([box?.width, (box?.x ?? 0) + (box?.width ?? 0)]).toEqual([440, width])
      expect(await on.page.evaluate(covered)).toEqual([])
      if (width === 1440) expect(await on.page.locator('.decision').boundingBox()).toEqual(before)
    } else {
      expect([box?.x, box?.width, (box?.y ?? 0) + (box?.height ?? 0)]).toEqual([0, width, 900])
      expect(box?.height).toBeLessThanOrEqual(0.85 * 900)
    }
    expect(await on.page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    // Where a page stands scrolled, what lies over it covers a part of something.
    await on.page.evaluate('scrollTo(0, 0)')
    const axe = axeOf(on.page)
    const { violations } = await axe
      .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'])
      .analyze()
    expect(violations.flatMap(({ id: rule, nodes }) => nodes.map(({ html }) => `${rule}: ${html}`))).toEqual([])
    expect(on.page.complaints).toEqual([])
  },
)
