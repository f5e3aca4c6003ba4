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
    expect(await fault.allInnerTexts()).toEqual(['Fill in this field.'])
    expect(await page.locator(':focus').getAttribute('id')).toBe(await name.getAttribute('id'))
    expect(await name.getAttribute('aria-invalid')).toBe('true')
    expect(await page.locator(`#${await name.getAttribute('aria-describedby')}`).innerText()).toBe(
      'Fill in this field.',
    )
    expect((await axeOf(page).analyze()).violations).toEqual([])
    await name.fill('on-call')
    expect(await fault.count()).toBe(0)
    expect(await name.getAttribute('aria-invalid')).toBeNull()
    const from = page.getByRole('group', { name: 'What goes there' }).getByLabel('From')
    await from.fill('25:00')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Its form does not fit, as in 22:00.').waitFor()
    expect(page.complaints).toEqual([])
  },
)
