import { expect, test } from '@jest/globals'
import { axeOf, signedIn, useBrowser } from '../support/browser.ts'

const set = useBrowser()

test.each([
  ['light', 1440],
  ['dark', 390],
] as const)(
  'a form in %s at %i pixels shows beside each field its error, and removes it after a change',
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
    const from = page.getByRole('group', { name: 'Which messages this destination gets' }).getByLabel('From')
    await from.fill('25:00')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The format is wrong: write it like 22:00.').waitFor()
    await from.fill('')
    await page.getByLabel(/^Kind/).selectOption('pagerduty')
    await page.getByRole('button', { name: 'Save' }).click()
    const key = page.getByLabel('Integration key of a service (Events API V2)')
    await fault.waitFor()
    expect(await page.locator(`#${await key.getAttribute('aria-describedby')}`).innerText()).toBe(
      await fault.innerText(),
    )
    expect(await key.getAttribute('aria-invalid')).toBe('true')
    await page.getByRole('alert').getByText('“Integration key of a service (Events API V2)”').waitFor()
    expect(await page.locator(':focus').getAttribute('id')).toBe(await key.getAttribute('id'))
    expect((await axeOf(page).analyze()).violations).toEqual([])
    await key.fill('R0UT1NGKEY')
    expect(await key.getAttribute('aria-invalid')).toBeNull()
    expect(page.complaints.filter((each) => !each.includes('422'))).toEqual([])
  },
)

test('the error of a field disappears when a button fills the field, and two similar fields have separate errors', async () => {
  const page = await signedIn(set.browser, set.spine, 'admin')
  set.page = page
  await page.goto(`${set.spine.url}/config`)
  // Forms of this kind stand on cards and in lists: here without their page.
  await page.evaluate(`
    document.body.insertAdjacentHTML('beforeend', '<form id="plain">' +
      '<label>Hours <input type="number" required min="0.25" step="0.25" value="0.3"></label>' +
      '<label>Times <input type="number" required></label>' +
      '<input id="until" required><button type="button" id="fill">4 hours</button><button>Go</button></form>')
    document.querySelector('#fill').addEventListener('click', () => { document.querySelector('#until').value = 'x' })
  `)
  const form = page.locator('#plain')
  const faults = form.locator('.field-fault')
  await form.getByRole('button', { name: 'Go' }).click()
  expect(await faults.allInnerTexts()).toEqual([
    'Give a multiple of 0.25.',
    'Fill in this field.',
    'Fill in this field.',
  ])
  await form.getByRole('button', { name: '4 hours' }).click()
  await faults.nth(2).waitFor({ state: 'detached' })
  await form.getByLabel('Hours').fill('0.5')
  expect(await faults.allInnerTexts()).toEqual(['Fill in this field.'])
  const times = form.getByLabel('Times')
  expect(await times.getAttribute('aria-invalid')).toBe('true')
  await times.evaluate((field) => field.removeAttribute('required'))
  await form.getByLabel('Hours').fill('0.75')
  await faults.first().waitFor({ state: 'detached' })
  expect(page.complaints).toEqual([])
})
