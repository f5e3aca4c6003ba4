import { beforeAll, expect, test } from '@jest/globals'
import { closeIncident } from '../../db/incidents/close-incident.ts'
import { changeFollowUp } from '../../db/incidents/follow-ups.ts'
import { listFollowUps } from '../../db/incidents/shift.ts'
import { systemScope } from '../../db/scope.ts'
import { agentActor } from '../../domain/event.ts'
import { asked } from '../support/announced.ts'
import { axeOf, pressButton, screenshot, signedIn, useBrowser, type Watched } from '../support/browser.ts'
import { claimedIncident, storeSetting } from '../support/database.ts'
import { eventually } from '../support/directory.ts'

const on = useBrowser()

const looks = [
  [1440, 'light'],
  [390, 'light'],
  [1440, 'dark'],
  [390, 'dark'],
] as const

const now = Date.now()
const time = (hours: number) => new Date(now + hours * 3_600_000).toISOString().slice(11, 16)

/**
 * A night that goes on: two questions, of which one wakes nobody, an escalation, a repair, and what
 * is left of an earlier night.
 */
beforeAll(async () => {
  const { db } = on.spine
  await storeSetting(on.spine.owner, 'page.night', `${time(-3)}-${time(3)} UTC`)
  await storeSetting(on.spine.owner, 'page.wake_budget', '1')
  await storeSetting(on.spine.owner, 'webhook.news.url', 'http://127.0.0.1:9/news')
  const opened = async (title: string, severity: 'critical' | 'warning' = 'warning') =>
    await claimedIncident(db, { title, severity, name: title, labels: { alertname: title } })
  for (const title of ['Replication of db-osl-2 lags', 'Disk of node-web-ams-1a is full'])
    await asked(db, await opened(title), { targets: [{ kind: 'shard', id: 'web-ams-1' }] })
  const closed = async (id: string, closing: Parameters<typeof closeIncident>[3]) =>
    await db.transaction().execute((trx) => closeIncident(trx, id, null, closing, { actor: agentActor, stepKey: null }))
  await closed(await opened('Host host-osl-1 is down', 'critical'), {
    status: 'escalated',
    category: 'no_tool',
    reason: 'It does not answer',
    code: 'AGENT',
  })
  await closed(await opened('Web service of web-osl-2 is down'), {
    status: 'resolved',
    outcome: 'repaired',
    resolution: 'Converged',
    claims: [],
    confidence: null,
  })
  const half = { status: 'escalated', category: 'mitigated', reason: 'It reads again', code: 'AGENT' } as const
  const overdue = await opened('Disk of node-db-osl-1b fails')
  await closed(overdue, half)
  const { id: operatorId, name } = await db
    .selectFrom('operator')
    .select(['id', 'name'])
    .where('name', '=', 'approver')
    .executeTakeFirstOrThrow()
  const by = { operatorId, name, actor: `user:${name}` }
  await changeFollowUp(db, overdue, { owner: 'approver', dueOn: '2026-11-20' }, by)
  await closed(await opened('Certificate of lb-1 ends soon'), half)
})

async function visit(path: string, width: number, colorScheme: 'light' | 'dark'): Promise<Watched> {
  on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 900 }, colorScheme })
  await on.page.goto(`${on.spine.url}${path}`)
  return on.page
}

/** What the page breaks of the rules for everybody, of its width, and of ours. */
async function faults(page: Watched, width: number): Promise<string[]> {
  const { violations } = await axeOf(page).analyze()
  const wide = (await page.evaluate('document.documentElement.scrollWidth')) as number
  const found = violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 120)}`))
  return [...found, ...(wide > width ? [`${wide} pixels wide`] : []), ...page.complaints]
}

test.each(looks)(
  'at %i pixels in %s the morning, the hand-over and the follow-ups are a page',
  async (width, scheme) => {
    const page = await visit('/shift', width, scheme)
    const card = page.getByRole('region', { name: /^Morning of / })
    await card
      .getByRole('link', { name: /^Waits for you until/ })
      .first()
      .waitFor()
    await screenshot(page, `shift-${scheme}-${width}`)
    // All of the card is on one screen of a phone.
    const { y = 0, height = 0 } = (await card.boundingBox()) ?? {}
    expect(y + height).toBeLessThan(900)
    await page.getByText('Nightshift: failed parts: ').waitFor()
    expect(
      await page
        .getByRole('region', { name: /^Hand-over of / })
        .getByRole('listitem')
        .count(),
    ).toBe(5)
    expect(await faults(page, width)).toEqual([])
  },
)

test.each(looks)('at %i pixels in %s Home shows the night in one line, and the open work', async (width, scheme) => {
  const page = await visit('/home', width, scheme)
  await page.getByRole('link', { name: /^Morning of / }).waitFor()
  await page.getByText('overdue since 2026-11-20').waitFor()
  await screenshot(page, `home-night-${scheme}-${width}`)
  expect(await faults(page, width)).toEqual([])
})

test.each(looks)(
  'at %i pixels in %s the incident shows its follow-up, and a person changes it there',
  async (width, scheme) => {
    const { first } = await listFollowUps(systemScope(on.spine.db), { isOverdue: true })
    const page = await visit(`/incidents/${first[0]?.incidentId}`, width, scheme)
    const beside = page.getByRole('complementary', { name: 'Around this incident' })
    await beside.getByText('overdue since 2026-11-20').waitFor()
    await pressButton(page, /^Change the follow-up of Disk of node-db-osl-1b fails/)
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Or a group, as free text').fill(`storage ${scheme} ${width}`)
    await dialog.getByRole('button', { name: 'Change', exact: true }).click()
    await beside.getByText(`storage ${scheme} ${width}`).waitFor()
    await screenshot(page, `follow-up-${scheme}-${width}`)
    expect(await faults(page, width)).toEqual([])
  },
)

test('a person closes a follow-up with a note, and it leaves the list', async () => {
  const page = await visit('/shift', 1440, 'light')
  await pressButton(page, /^Close the follow-up of Disk of node-db-osl-1b fails/)
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Your answer is recorded in the log.').fill('the disk was replaced')
  await dialog.getByRole('button', { name: 'Close', exact: true }).click()
  await eventually('it is closed', async () => (await listFollowUps(systemScope(on.spine.db))).count === 1)
  await page.getByText('overdue since').waitFor({ state: 'detached' })
  expect(page.complaints).toEqual([])
})
