import { beforeAll, describe, expect, test } from '@jest/globals'
import { asked } from '../support/announced.ts'
import { axeOf, hears, screenshot, signedIn, useBrowser } from '../support/browser.ts'
import { claimedIncident, openedIncident } from '../support/database.ts'

const on = useBrowser()
/** By what they are about: one that waits for an approval, a group of five, and others alone. */
const ids: Record<string, string> = {}

const named = (alertname: string, title: string) => ({ name: alertname, labels: { alertname }, title })

/** An incident that waits for an approval, newer than all others. */
async function waiting(title: string): Promise<string> {
  const id = await claimedIncident(on.spine.db, named('host_down', title))
  await asked(on.spine.db, id)
  return id
}

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
  ids.waits = await waiting('Host host-osl-1 is down')
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
  test('grouped by cause, related incidents are below the one that is investigated first, with the worst severity', async () => {
    const page = await list()
    await page.locator('summary', { hasText: 'Group' }).click()
    await page.getByRole('button', { name: 'cause', exact: true }).click()
    await page.waitForURL(/by=cause/)
    const group = page.getByRole('row', { name: /Slow requests of tenant-2 × 5/ })
    await group.getByText('5 open').waitFor()
    await group.getByRole('img', { name: 'critical' }).waitFor()
    expect(await page.locator('tr.member').count()).toBe(5)
    await screenshot(page, 'incidents-grouped')
    expect(await page.evaluate(heights)).toEqual([36])
    await group.getByRole('button').click()
    expect(await page.locator('tr.member').count()).toBe(0)
    await page.goto(`${on.spine.url}/incidents?by=resource`)
    await page.getByRole('row', { name: /on no known resource/ }).waitFor()
    await page.goto(`${on.spine.url}/incidents?by=alert`)
    await page.getByRole('row', { name: /slow_requests × 5/ }).waitFor()
    expect(page.complaints).toEqual([])
  })

  test('Enter opens a preview beside the row, j and k move it, and Escape closes it and returns the focus to the row', async () => {
    const page = await list()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL(new RegExp(`peek=${ids.waits}`))
    const peek = page.getByRole('dialog', { name: 'Host host-osl-1 is down' })
    await peek.getByRole('heading', { name: /Start 2 VMs/ }).waitFor()
    await peek.getByText('If you approve').waitFor()
    await screenshot(page, 'incidents-peek')
    const box = await peek.boundingBox()
    expect(Math.round(box?.width ?? 0)).toBe(440)
    const row = await page.locator('[data-current=true] .since').boundingBox()
    expect((row?.x ?? 0) + (row?.width ?? 0)).toBeLessThanOrEqual(box?.x ?? 0)
    await page.keyboard.press('j')
    await page.getByRole('dialog', { name: 'Slow requests of tenant-4' }).waitFor()
    await page.waitForURL(new RegExp(`peek=${ids.slow4}`))
    expect(await page.evaluate(current)).toContain('tenant-4')
    // What happens to it meanwhile is said at once.
    await hears(page)
    await on.spine.post(`/incidents/${ids.slow4}/escalate`, { reason: 'The pool of tenant-4 is full.' })
    await page.getByRole('dialog').getByText('The pool of tenant-4 is full').waitFor()
    // On a narrow screen the row still says what it is about.
    await page.setViewportSize({ width: 900, height: 800 })
    const name = await page.locator('[data-current=true] a.name').boundingBox()
    expect(name?.width).toBeGreaterThan(100)
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Slow requests of tenant-4')
    expect(page.url()).not.toContain('peek')
    expect(page.complaints).toEqual([])
  })

  test('a link to a preview opens it, a second Enter leads to the page itself, and a phone opens the page at once', async () => {
    const page = await list(`?peek=${ids.slow3}`)
    await page.getByRole('dialog', { name: 'Slow requests of tenant-3' }).waitFor()
    expect(await page.evaluate(current)).toContain('tenant-3')
    await page.getByRole('button', { name: 'One down' }).click()
    await page.getByRole('dialog', { name: 'Slow requests of tenant-2' }).waitFor()
    await page.getByRole('button', { name: 'Preview Backup 3 runs late' }).click()
    await page.getByRole('dialog', { name: 'Backup 3 runs late' }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/incidents/${ids.other3}`)
    await page.goBack()
    await page.getByRole('dialog', { name: 'Backup 3 runs late' }).getByText('Not known').first().waitFor()
    expect(page.complaints).toEqual([])
    await page.context().close()
    const phone = await list('', { viewport: { width: 390, height: 844 } })
    const first = await phone.locator('main tbody tr').first().boundingBox()
    expect(first?.y).toBeLessThanOrEqual(120)
    await phone.getByRole('link', { name: 'Slow requests of tenant-3' }).click()
    await phone.waitForURL(`**/incidents/${ids.slow3}`)
    await phone.goto(`${on.spine.url}/incidents?peek=${ids.slow3}`)
    await phone.waitForURL(`**/incidents/${ids.slow3}`)
  })

  test('x selects rows, Take is done for each, and a refused row shows why and stays selected', async () => {
    await on.spine.post(`/incidents/${ids.other2}/resolve`, { resolution: 'It ran again.', outcome: 'self_resolved' })
    const page = await list('?q=Backup')
    for (let at = 17; at < 20; at++) await page.keyboard.press('j').then(() => page.keyboard.press('x'))
    await page.getByRole('checkbox', { name: 'Choose Backup 2 runs late' }).check()
    const bar = page.getByRole('region', { name: 'Chosen incidents' })
    await bar.getByText('4 chosen').waitFor()
    await bar.getByRole('button', { name: 'Take the chosen incidents' }).click()
    await page.getByRole('dialog', { name: 'Take 4 incidents' }).getByRole('button', { name: 'Take' }).click()
    await bar.getByText('3 taken, 1 refused and still chosen').waitFor()
    await bar.getByText(/Backup 2 runs late: .*is resolved: take needs/).waitFor()
    await bar.getByText('1 chosen').waitFor()
    await screenshot(page, 'incidents-several')
    expect(await page.getByRole('checkbox', { checked: true }).count()).toBe(1)
    await page.locator('tr', { hasText: 'Backup 18' }).getByText('approver', { exact: true }).waitFor()
    // Chromium reports what is refused.
    expect(page.complaints).toEqual([expect.stringContaining('status of 409')])
  })

  test('several incidents are marked as expected with one reason, and a person without the right is told why', async () => {
    const page = await list('?q=Backup')
    for (const at of [10, 11]) await page.getByRole('checkbox', { name: `Choose Backup ${at} runs late` }).check()
    const bar = page.getByRole('region', { name: 'Chosen incidents' })
    await bar.getByRole('button', { name: 'Mark as expected the chosen incidents' }).click()
    const dialog = page.getByRole('dialog', { name: 'Mark 2 incidents as expected' })
    await dialog.getByRole('button', { name: 'a week' }).click()
    await dialog.getByLabel('Why is it expected?').fill('the tape robot is away')
    await dialog.getByRole('button', { name: 'Mark as expected' }).click()
    await bar.getByText('2 marked as expected.').waitFor()
    await page
      .locator('tr', { hasText: 'Backup 11' })
      .getByText(/^resolved, expected/)
      .waitFor()
    await bar.getByRole('button', { name: 'Choose none' }).click()
    expect(await bar.getByText('chosen').count()).toBe(0)
    await page.route('**/auth/session', async (route) => {
      const answer = (await (await route.fetch()).json()) as { permissions: string[] }
      await route.fulfill({
        json: { ...answer, permissions: answer.permissions.filter((each) => each !== 'manage_incident') },
      })
    })
    await page.reload()
    await page.getByRole('checkbox', { name: 'Choose Backup 12 runs late' }).check()
    await page
      .getByRole('button', { name: /^Take the chosen incidents\. Your role .* may not do this: it needs/ })
      .waitFor()
    expect(page.complaints).toEqual([])
  })

  test.each([
    [1440, 'light'],
    [1440, 'dark'],
    [390, 'light'],
    [390, 'dark'],
  ] as const)(
    'at %i in %s groups, selection and preview are accessible, and twenty rows fit on a screen',
    async (width, colorScheme) => {
      // A question that no run waits for is withdrawn after a while: this one is new.
      await waiting(`Host host-${colorScheme}-${width} is down`)
      const page = await list('?by=cause', { colorScheme, viewport: { width, height: 900 } })
      await page.locator('tr.member').first().waitFor()
      if (width > 820) {
        const twentieth = await page.locator('main tbody tr').nth(19).boundingBox()
        expect((twentieth?.y ?? 0) + 36).toBeLessThan(900)
        await page.getByRole('checkbox', { name: 'Choose Backup 12 runs late' }).check()
        // Those that wait are a group of one type: its first incident is below it.
        for (const key of ['j', 'j', 'Enter']) await page.keyboard.press(key)
        await page
          .getByRole('dialog', { name: `Host host-${colorScheme}-${width} is down` })
          .getByText('If you approve')
          .waitFor()
      }
      await screenshot(page, `incidents-all-${width}-${colorScheme}`)
      const { violations } = await axeOf(page).analyze()
      expect(violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`))).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    },
  )
})
