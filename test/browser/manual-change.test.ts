import { expect, test } from '@jest/globals'
import { principalOf } from '../../db/access/principals.ts'
import { createToken, ensureOperator } from '../../db/access/tokens.ts'
import { type Closing, closeIncident } from '../../db/incidents/close-incident.ts'
import { openManualChange } from '../../db/incidents/manual-change.ts'
import { screenshot, signedIn, useBrowser } from '../support/browser.ts'

const on = useBrowser()

const looks = [
  [1440, 'light'],
  [1440, 'dark'],
  [390, 'light'],
  [390, 'dark'],
] as const

/** What an admin did alone, as the run that carried it out leaves it. */
async function doneAlone(): Promise<string> {
  const { db } = on.spine
  const operatorId = await ensureOperator(db, 'ada', 'admin')
  const ada = (await principalOf(db, await createToken(db, { name: 'ada', role: 'admin', operatorId })))!
  const person = { operatorId, actor: 'user:ada', name: ada.name }
  return await db.transaction().execute(async (trx) => {
    const incident = await openManualChange(trx, person, {
      tool: 'vm_stop',
      arguments: { id: 'vm-118', reason: 'it fills the pool, nobody answers' },
      targets: [{ kind: 'vm', id: 'vm-118' }],
      stateFingerprint: 'state',
      risk: 'critical',
      reason: 'it fills the pool, nobody answers',
      alone: true,
      mayVote: true,
      summary: 'Stop vm-118 on host-osl-3',
    })
    const said = 'vm_stop by ada: held: vm-118 is stopped on host-osl-3'
    const closing: Closing = { status: 'resolved', outcome: 'changed', resolution: said, claims: [], confidence: null }
    await closeIncident(trx, incident.id, null, closing, { actor: 'user:ada', turn: 2, stepKey: null })
    return incident.id
  })
}

test('an action that an admin took alone is on Home until another person has reviewed it', async () => {
  const id = await doneAlone()
  for (const [width, scheme] of looks) {
    const viewport = { width, height: width === 390 ? 844 : 900 }
    const page = await signedIn(on.browser, on.spine, 'admin', { colorScheme: scheme, viewport })
    on.page = page
    for (const [name, path, words] of [
      ['home', '/home', 'Done without a second person: somebody else must review it'],
      ['incident', `/incidents/${id}`, 'ada asked for this, alone'],
    ] as const) {
      await page.goto(`${on.spine.url}${path}`)
      await page.getByText(words).first().waitFor()
      await screenshot(page, `alone-${name}-${width}-${scheme}`)
      const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
      expect([name, width, wide]).toEqual([name, width, 0])
    }
    expect(page.complaints).toEqual([])
    await page.context().close()
  }
  const page = await signedIn(on.browser, on.spine, 'admin')
  on.page = page
  await page.goto(`${on.spine.url}/incidents/${id}`)
  await page.locator('.turns').getByText('changed by a person').waitFor()
  for (const words of ['Turn 2', 'No answer', 'changed by a person, by a person'])
    expect([words, await page.getByText(words).count()]).toEqual([words, 0])
  for (const name of ['Mark as expected', 'Re-run investigation'])
    expect([name, await page.getByRole('button', { name }).count()]).toEqual([name, 0])
  await page.goto(`${on.spine.url}/incidents/${id}?tab=details`)
  await page.getByText('changed by a person', { exact: true }).waitFor()
  await page.goto(`${on.spine.url}/incidents/${id}`)
  await page.getByRole('button', { name: 'Review' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('right').check()
  await dialog.getByLabel('Your comment').fill('The pool would have been lost.')
  await dialog.getByRole('button', { name: 'Review' }).click()
  await page.getByText('admin reviewed it: right').first().waitFor()
  await page.goto(`${on.spine.url}/home`)
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  await page.getByText('Done without a second person').waitFor({ state: 'detached' })
})
