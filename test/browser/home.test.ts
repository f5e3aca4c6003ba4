import { describe, expect, test } from '@jest/globals'
import { asked } from '../api/announced.ts'
import { allAtOnce, claimedIncident, openedIncident } from '../support/database.ts'
import { screenshot, signedIn, useBrowser } from './browser.ts'

const on = useBrowser()
const named = (alertname: string) => ({ name: alertname, labels: { alertname } })

async function home(width = 1440, colorScheme: 'light' | 'dark' = 'light') {
  on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 900 }, colorScheme })
  await on.page.goto(`${on.spine.url}/home`)
  await on.page.getByText('System:').waitFor()
  return on.page
}

describe('home', () => {
  test('a quiet night says that nothing waits, and a question comes in live, above all else', async () => {
    const page = await home()
    await page.getByText('Nothing waits for you.').waitFor()
    const incident = await claimedIncident(on.spine.db, { ...named('host_down'), title: 'Host host-osl-1 is down' })
    const approval = await asked(on.spine.db, incident)
    const line = page.getByRole('region', { name: /^Needs you 1/ }).getByRole('listitem')
    await line.getByText('Start 2 VMs').waitFor()
    await line.getByRole('link', { name: /^Review/ }).click()
    await page.waitForURL(`**/approvals/${approval}`)
    expect(page.complaints).toEqual([])
  })

  test.each([
    [1440, 'light'],
    [1440, 'dark'],
    [390, 'light'],
    [390, 'dark'],
  ] as const)(
    'at %i pixels in %s what waits stays above a storm of three hundred, which is one line',
    async (width, scheme) => {
      const { count } = await on.spine.db
        .selectFrom('incident')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .executeTakeFirstOrThrow()
      if (count < 300) {
        await allAtOnce(Array.from({ length: 300 }), () =>
          openedIncident(on.spine.db, { ...named('KubePodCrashLooping'), title: 'Pod checkout is crash looping' }),
        )
        const handed = await openedIncident(on.spine.db, {
          ...named('disk_full'),
          title: 'db07 /var/lib/mysql 3 % free',
          severity: 'critical',
        })
        await on.spine.post(`/incidents/${handed}/escalate`, { reason: 'No tool frees space there.' })
        const gone = await openedIncident(on.spine.db, {
          ...named('replication_lag'),
          title: 'Replication lag on db-osl-1',
        })
        await on.spine.post(`/incidents/${gone}/resolve`, {
          resolution: 'The replica was continued.',
          outcome: 'repaired',
        })
      }
      const page = await home(width, scheme)
      await screenshot(page, `home-storm-${width}-${scheme}`)
      const needs = await page.getByRole('heading', { name: /^Needs you/ }).boundingBox()
      expect(needs?.y).toBeLessThan(450)
      const storm = page.getByRole('region', { name: /^In progress/ }).getByRole('listitem')
      expect(await storm.count()).toBe(1)
      await storm.getByText('× 300').waitFor()
      await storm.getByText('300 queued').waitFor()
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    },
  )

  test('by keyboard alone: j and Enter open what waits; one press takes what was handed over', async () => {
    const page = await home()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/approvals/apr_*')
    await page.keyboard.press('h')
    const needs = page.getByRole('region', { name: /^Needs you/ })
    await needs.getByRole('button', { name: /^Take db07/ }).focus()
    await page.keyboard.press('Enter')
    await needs.getByText('You have it').waitFor()
  })

  test('by keyboard alone: Ctrl+K finds an incident, a row of the log, a setting, a page and a pasted id', async () => {
    const page = await home()
    const look = async (text: string, name: RegExp) => {
      await page.keyboard.press('Control+k')
      await page.keyboard.type(text)
      const found = page.getByRole('option', { name })
      await found.first().waitFor()
      if (text === 'continued') await screenshot(page, 'palette-1440-light')
      while ((await found.first().getAttribute('aria-selected')) !== 'true') await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Enter')
    }
    await look('checkout', /^incident.*crash looping/)
    await page.waitForURL('**/incidents/inc_*')
    await look('continued', /^log.*The replica was continued/)
    await page.waitForURL(/incidents\/inc_\w+#e-\d+$/)
    await look('max_turns', /^setting.*agent\.max_turns/)
    await page.waitForURL('**/config#agent.max_turns')
    await look('audi', /^page.*Audit/)
    await page.waitForURL('**/audit')
    const id = await openedIncident(on.spine.db, named('pasted'))
    await look(id, /^id/)
    await page.waitForURL(`**/incidents/${id}`)
    await page.keyboard.press('Control+k')
    await page.keyboard.type('zzzz nothing like it')
    await page.getByText('Nothing found for').waitFor()
    await page.keyboard.press('Escape')
    expect(page.complaints).toEqual([])
  })
})
