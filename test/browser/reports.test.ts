import { readFileSync } from 'node:fs'
import { beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { connect } from '../../db/connect.ts'
import { type Closing, closeIncident } from '../../db/incidents/close-incident.ts'
import { append } from '../../db/log/append.ts'
import { agentActor } from '../../domain/event.ts'
import { axeOf, screenshot, signedIn, useBrowser, type Watched } from '../support/browser.ts'
import { anAlert, claimedIncident } from '../support/database.ts'
import { looked, verified, wrote } from '../support/events.ts'

const on = useBrowser()
const hostile = '<img src=x onerror=alert(1)>\u202Eevil'

const looks = [
  [1440, 'light'],
  [390, 'dark'],
] as const

async function signIn(width: number, colorScheme: 'light' | 'dark'): Promise<Watched> {
  on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 900 }, colorScheme })
  return on.page
}

/** What the page breaks of the rules for everybody, of its width, and of ours. */
async function faults(page: Watched, width: number): Promise<string[]> {
  const { violations } = await axeOf(page).analyze()
  const wide = (await page.evaluate('document.documentElement.scrollWidth')) as number
  const found = violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 120)}`))
  return [...found, ...(wide > width ? [`${wide} pixels wide`] : []), ...page.complaints]
}

/**
 * An incident with a first attempt that failed and a second that repaired it, with a stranger's
 * words in it.
 */
async function repaired(): Promise<string> {
  const { db } = on.spine
  const id = await claimedIncident(db, { title: `Replica ${hostile}`, labels: { incident_type: 'replication_lag' } })
  const shard = { kind: 'shard' as const, id: 'db-osl-1' }
  const rows = [
    looked('c1', [{ ...shard, health: 'degraded' } as typeof shard]),
    wrote('c2', [shard]),
    verified('c2', 'held'),
  ]
  await db.transaction().execute(async (trx) => {
    for (const { kind, actor, metadata } of rows)
      await append(trx, id, 1, { kind, actor, detail: `Row of ${kind}`, metadata } as Parameters<typeof append>[3])
    await closeIncident(trx, id, 1, { ...done, resolution: `The replica was stopped by ${hostile}` }, by)
  })
  return id
}
const by = { actor: agentActor, stepKey: null }
const done: Extract<Closing, { status: 'resolved' }> = {
  status: 'resolved',
  resolution: 'Done',
  outcome: 'repaired',
  claims: [],
  confidence: null,
}

beforeAll(async () => {
  await repaired()
  const owner = connect(on.spine.databaseUrl, { owner: true, max: 1 })
  const days = [3, 4, 9, 10, 11, 17, 18, 25, 26, 27, 28, 40, 41, 50, 61, 62, 63, 70]
  for (const [at, ago] of days.entries()) {
    const id = await claimedIncident(
      on.spine.db,
      anAlert({ labels: { incident_type: at % 3 ? 'disk_pressure' : 'host_down' } }),
    )
    await on.spine.db
      .transaction()
      .execute((trx) =>
        at % 4 === 3
          ? closeIncident(
              trx,
              id,
              1,
              { status: 'escalated', reason: 'No tool', code: 'AGENT', category: 'no_tool' },
              by,
            )
          : closeIncident(trx, id, 1, done, by),
      )
    const ended = sql`make_interval(days => ${ago}, secs => ${at % 3 === 0 ? -60 * at : -20 * at})`
    await sql`update incident set created_at = created_at - make_interval(days => ${ago}),
      closed_at = closed_at - ${ended} where id = ${id}`.execute(owner)
  }
  await owner.destroy()
})

test.each(looks)(
  'at %i pixels in %s a report is a chart, the same figures as tables, and a file',
  async (width, colorScheme) => {
    const page = await signIn(width, colorScheme)
    await page.goto(`${on.spine.url}/reports`)
    await page.getByRole('table', { name: 'By week, the newest first' }).waitFor()
    expect(await page.locator('.weeks svg.picture rect').count()).toBeGreaterThan(12)
    await screenshot(page, `reports-${colorScheme}-${width}`)
    expect(await faults(page, width)).toEqual([])
    const weeks = page.getByRole('table', { name: 'By week, the newest first' })
    const heads = ['Incidents', 'Acknowledged', 'Waited', 'Did not last', 'Not shown', 'Cost']
    for (const head of heads) await weeks.getByRole('columnheader', { name: head }).waitFor()
    const sheet = page.getByRole('region', { name: 'By week, every column' })
    await sheet.press('End')
    await weeks.getByRole('columnheader', { name: 'Cost' }).scrollIntoViewIfNeeded()
    expect(await page.getByText('Swipe the table sideways').first().isVisible()).toBe(width === 390)
    await screenshot(page, `reports-sideways-${colorScheme}-${width}`)
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download CSV' }).click(),
    ])
    expect(readFileSync(await file.path(), 'utf8')).toMatch(/^line,name,incidents,/)
    await page.getByRole('link', { name: 'disk_pressure' }).press('Enter')
    await page.waitForURL(/type=disk_pressure/)
    await page.getByRole('cell', { name: 'host_down' }).waitFor({ state: 'detached' })
    await page.getByLabel('Severity').selectOption('warning')
    await page.waitForURL(/severity=warning/)
    await page.getByText('not kept by severity').waitFor()
    await page.getByLabel('From', { exact: true }).fill('2020-01-01')
    await page.getByLabel('To', { exact: true }).fill('2020-02-01')
    await page.getByText('No incident began in these days.').waitFor()
    expect(await faults(page, width)).toEqual([])
  },
)

test.each(looks)(
  'at %i pixels in %s a postmortem is read with its rows, edited by keyboard under a name, and restored',
  async (width, colorScheme) => {
    const id = await repaired()
    const page = await signIn(width, colorScheme)
    await page.goto(`${on.spine.url}/incidents/${id}`)
    await page.getByRole('link', { name: 'Postmortem' }).press('Enter')
    await page.getByText('shard db-osl-1 was degraded.').waitFor()
    await screenshot(page, `postmortem-${colorScheme}-${width}`)
    await page.getByRole('button', { name: 'Edit Cause' }).press('Enter')
    const field = page.getByLabel('Cause, in Markdown')
    await expect(field.inputValue()).resolves.toContain('The replica was stopped')
    await field.fill(`It was **stopped by hand**.\n\n- ${hostile}`)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByText('Edited by approver at').waitFor()
    await screenshot(page, `postmortem-edited-${colorScheme}-${width}`)
    expect(await faults(page, width)).toEqual([])
    await page.getByText('Text generated from the rows').press('Enter')
    await page
      .getByRole('listitem')
      .getByText(/^The replica was stopped by/)
      .waitFor()
    await page.getByText(/^Appendix: the log/).press('Enter')
    await page.getByRole('table', { name: 'The log, oldest first' }).waitFor()
    await page.getByRole('button', { name: 'Edit Cause' }).click()
    await page.getByRole('button', { name: 'Restore the generated text' }).click()
    await page.getByText('Edited by approver at').waitFor({ state: 'detached' })
    await page.getByRole('region', { name: 'What was done' }).getByRole('link', { name: '#' }).first().click()
    await page.waitForURL(new RegExp(`/incidents/${id}#e-`))
    expect(page.complaints).toEqual([])
  },
)

test('an editor who was overtaken keeps their words, sees the newer ones, and overwrites them knowingly', async () => {
  const id = await repaired()
  const page = await signIn(1440, 'light')
  await page.goto(`${on.spine.url}/incidents/${id}/postmortem`)
  await page.getByRole('button', { name: 'Edit Impact' }).click()
  await page.getByLabel('Impact, in Markdown').fill('Mine')
  await on.spine.post(`/incidents/${id}/postmortem`, { version: 0, sections: { impact: 'Theirs' } })
  await page.getByRole('button', { name: 'Save under your name' }).click()
  await page
    .getByRole('alert')
    .getByText(/is at version 1, by admin, and you saw version 0/)
    .waitFor()
  await page.getByText('Theirs', { exact: true }).waitFor()
  await expect(page.getByLabel('Impact, in Markdown').inputValue()).resolves.toBe('Mine')
  await page.getByRole('button', { name: 'Save under your name' }).click()
  await page.getByText('Edited by approver at').waitFor()
  await page.getByText('Mine', { exact: true }).waitFor()
})
