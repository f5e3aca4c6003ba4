import { expect, test } from '@jest/globals'
import { syncInventory } from '../../db/inventory/sync-inventory.ts'
import { eventsOf } from '../../db/log/events.ts'
import { axeOf, pressButton, screenshot, signedIn, useBrowser } from '../support/browser.ts'
import { eventually } from '../support/directory.ts'
import { doneWrite } from '../support/done-write.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'

// Nothing is asked but what is stored: the inventory of the test.
const on = useBrowser({ PLATFORM_URL: '' })

const stop = {
  tool: 'vm_stop',
  targets: [{ kind: 'vm' as const, id: 'vm-1' }],
  risk: 'high' as const,
  outcome: 'done' as const,
  said: 'vm-1: stop: vm-1 was stopped on host-osl-1',
}

/** Two writes: one that can be taken back, on a VM that runs again by now, and one that cannot. */
async function written(): Promise<string> {
  const { db } = on.spine
  await syncInventory(db, scriptedPlatform().inventoryState)
  const args = { id: 'vm-1', reason: 'it fills the pool' }
  const undo = {
    tool: 'vm_start',
    arguments: { id: 'vm-1' },
    left: { 'host of vm-1': 'host-osl-1', 'vm-1': 'stopped' },
  }
  const { incidentId } = await doneWrite(db, { ...stop, arguments: args, undo })
  await doneWrite(db, { ...stop, tool: 'vm_restart', arguments: args, said: 'vm-1: restart' }, incidentId)
  return incidentId
}

test('beside each write is its way back, and the dialog shows the effect or why the undo is not possible now', async () => {
  const id = await written()
  for (const width of [1440, 390]) {
    const page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 900 } })
    on.page = page
    await page.goto(`${on.spine.url}/incidents/${id}`)
    await page
      .getByText('This tool can undo the write: vm_start. The tool works only if nothing has changed since the write.')
      .waitFor()
    await page.getByText('vm_restart has no undo: reverse it by hand.').waitFor()
    expect(await page.getByRole('button', { name: /^Undo/ }).count()).toBe(1)
    await screenshot(page, `undo-${width}`)
    const { violations } = await axeOf(page).analyze()
    expect(violations.map(({ id: rule }) => rule)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0)
    expect(page.complaints).toEqual([])
    if (width === 1440) await page.context().close()
  }
  const page = on.page!
  await pressButton(page, /^Undo/)
  const dialog = page.getByRole('dialog')
  await dialog.getByText(/vm-1 is .*, and was stopped then\. Nothing was undone\./).waitFor()
  await screenshot(page, 'undo-dialog-390')
  await dialog.getByLabel('Why?').fill('the wrong VM')
  await dialog.getByRole('button', { name: 'Undo', exact: true }).click()
  await eventually('the row of the refusal', async () =>
    (await eventsOf(on.spine.db, id)).some((event) => event.kind === 'noted' && event.metadata.code === 'undo_refused'),
  )
  await page.context().close()
})
