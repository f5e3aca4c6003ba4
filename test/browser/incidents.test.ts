import { beforeAll, describe, expect, test } from '@jest/globals'
import { asked } from '../support/announced.ts'
import { screenshot, signedIn, useBrowser } from '../support/browser.ts'
import { claimedIncident, openedIncident } from '../support/database.ts'

const on = useBrowser()
/** By what they are about: one that waits for an approval, a group of five, and others alone. */
const ids: Record<string, string> = {}

const named = (alertname: string, title: string) => ({ name: alertname, labels: { alertname }, title })

const levels = ['warning', 'critical', 'warning', 'warning', 'info'] as const

beforeAll(async () => {
  const { db } = on.spine
  for (let at = 0; at < 20; at++)
    ids[`other${at}`] = await openedIncident(db, named(`backup_${at}`, `Backup ${at} runs late`))
  for (let at = 0; at < 5; at++) {
    const alert = { ...named('slow_requests', `Slow requests of tenant-${at}`), severity: levels[at] ?? 'info' }
    const id = await openedIncident(db, alert)
    ids[`slow${at}`] = id
    const role = at === 2 ? 'leader' : null
    await db.updateTable('incident').set({ groupId: 'grp_slow', role }).where('id', '=', id).execute()
  }
  ids.waits = await claimedIncident(db, named('host_down', 'Host host-osl-1 is down'))
  await asked(db, ids.waits)
})

async function list(search = '', options: Parameters<typeof signedIn>[3] = {}, as: 'approver' | 'admin' = 'approver') {
  on.page = await signedIn(on.browser, on.spine, as, options)
  await on.page.goto(`${on.spine.url}/incidents${search}`)
  await on.page.getByRole('row', { name: /Backup 19/ }).waitFor()
  return on.page
}

const current = 'document.querySelector("[data-current=true] .what").textContent'

const heights = `[...new Set([...document.querySelectorAll('main tbody tr')].map((row) => row.offsetHeight))]`

describe('the list of incidents', () => {
  test('grouped by cause, what came together hangs under the one that is looked into first, with the worst of it', async () => {
    const page = await list()
    await page.locator('summary', { hasText: 'Group' }).click()
    await page.getByRole('button', { name: 'cause', exact: true }).click()
    await page.waitForURL(/by=cause/)
    const group = page.getByRole('row', { name: /Slow requests of tenant-2 × 5/ })
    await group.getByText('5 open').waitFor()
    await group.getByText('critical').first().waitFor()
    expect(await page.locator('tr.member').count()).toBe(5)
    await screenshot(page, 'incidents-grouped')
    expect(await page.evaluate(heights)).toEqual([36])
    await group.getByRole('button').click()
    expect(await page.locator('tr.member').count()).toBe(0)
    await page.goto(`${on.spine.url}/incidents?by=resource`)
    await page.getByRole('row', { name: /on no resource that is known/ }).waitFor()
    await page.goto(`${on.spine.url}/incidents?by=alert`)
    await page.getByRole('row', { name: /slow_requests × 5/ }).waitFor()
    expect(page.complaints).toEqual([])
  })

  test('Enter opens a closer look beside the row, j and k take it on, Escape closes it and the row has the focus', async () => {
    const page = await list()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL(new RegExp(`peek=${ids.waits}`))
    const peek = page.getByRole('dialog', { name: 'Host host-osl-1 is down' })
    await peek.getByRole('heading', { name: /Start 2 VMs/ }).waitFor()
    await peek.getByText('If you approve').waitFor()
    await screenshot(page, 'incidents-peek')
    const box = await peek.boundingBox()
    expect(box?.width).toBe(440)
    const row = await page.locator('[data-current=true] .since').boundingBox()
    expect((row?.x ?? 0) + (row?.width ?? 0)).toBeLessThanOrEqual(box?.x ?? 0)
    await page.keyboard.press('j')
    await page.getByRole('dialog', { name: 'Slow requests of tenant-4' }).waitFor()
    await page.waitForURL(new RegExp(`peek=${ids.slow4}`))
    expect(await page.evaluate(current)).toContain('tenant-4')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Slow requests of tenant-4')
    expect(page.url()).not.toContain('peek')
    expect(page.complaints).toEqual([])
  })
})
