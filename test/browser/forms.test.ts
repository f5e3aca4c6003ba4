import { expect, test } from '@jest/globals'
import { axeOf, signedIn, useBrowser } from '../support/browser.ts'

const set = useBrowser()

test.each([
  ['light', 1440],
  ['dark', 390],
] as const)(
  'a form in %s at %i pixels says beside each field what is wrong with it, and takes it back once it is changed',
  async (colorScheme, width) => {
    const page = await signedIn(set.browser, set.spine, 'admin', { colorScheme, viewport: { width, height: 900 } })
    set.page = page
    await page.goto(`${set.spine.url}/config`)
    await page.getByRole('button', { name: 'Add a destination' }).click()
    await page.getByRole('button', { name: 'Save' }).click()
    const name = page.getByLabel('Name', { exact: true })
    const fault = page.locator('.field-fault')
    await fault.first().waitFor()
    expect(await fault.allInnerTexts()).toEqual(['It is needed.'])
    expect(await page.locator(':focus').getAttribute('id')).toBe(await name.getAttribute('id'))
    expect(await name.getAttribute('aria-invalid')).toBe('true')
    expect(await page.locator(`#${await name.getAttribute('aria-describedby')}`).innerText()).toBe('It is needed.')
    expect((await axeOf(page).analyze()).violations).toEqual([])
    await name.fill('on-call')
    expect(await fault.count()).toBe(0)
    expect(await name.getAttribute('aria-invalid')).toBeNull()
    const from = page.getByRole('group', { name: 'What goes there' }).getByLabel('From')
    await from.fill('25:00')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('It does not have the form that is needed, as in 22:00.').waitFor()
    await from.fill('')
    await page.getByLabel('Kind').selectOption('pagerduty')
    await page.getByRole('button', { name: 'Save' }).click()
    const key = page.getByLabel('Integration key of a service (Events API V2)')
    await page.locator('[id$="-integrationKey-fault"]').waitFor()
    expect(await key.getAttribute('aria-invalid')).toBe('true')
    await page.getByRole('alert').getByText('“Integration key of a service (Events API V2)”').waitFor()
    expect(await page.locator(':focus').getAttribute('id')).toBe(await key.getAttribute('id'))
    expect((await axeOf(page).analyze()).violations).toEqual([])
    await key.fill('R0UT1NGKEY')
    expect(await key.getAttribute('aria-invalid')).toBeNull()
    expect(page.complaints.filter((each) => !each.includes('422'))).toEqual([])
  },
)
