import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import type { Browser } from 'playwright-core'
import { axeOf, openPage, screenshot, type Watched } from '../support/browser.ts'
import { launch } from '../support/chromium.ts'
import { openGallery } from '../support/gallery.ts'

/**
 * The parts of the pages with the worst that they may be given, built as the pages are and opened
 * without a server of Nightshift.
 */

let gallery: Awaited<ReturnType<typeof openGallery>>
let browser: Browser
let page: Watched
let url = ''

beforeAll(async () => {
  gallery = await openGallery()
  url = gallery.url
  browser = await launch()
})
afterEach(async () => {
  await page?.context().close()
})
afterAll(async () => {
  await browser?.close()
  gallery?.close()
})

/** Every size of type that some text of the page has, in CSS pixels. */
const sizes = `[...new Set([...document.querySelectorAll('body *')]
  .filter((each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== ''))
  .map((each) => getComputedStyle(each).fontSize))].sort()`

test.each([
  [1440, 900, 'light'],
  [1440, 900, 'dark'],
  [390, 844, 'light'],
  [390, 844, 'dark'],
  [720, 450, 'light'],
] as const)(
  'at %i by %i in %s every component with its worst content has no accessibility fault, fits the page, and uses four sizes of type',
  async (width, height, colorScheme) => {
    page = await openPage(browser, url, { viewport: { width, height }, colorScheme })
    await page.goto(url)
    await page.getByRole('heading', { name: 'Gallery' }).waitFor()
    await page.evaluate('document.fonts.ready')
    await screenshot(page, `gallery-${width}-${colorScheme}`)
    // Two states of the same page are drawn here, one below the other.
    const axe = axeOf(page).disableRules(['landmark-unique'])
    const { violations } = await axe.analyze()
    expect(violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`))).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    expect(await page.evaluate(sizes)).toEqual(['12px', '14px', '16px', '22px'])
    expect(await page.locator('.decision').count()).toBe(1)
  },
)

test.each([
  [1440, 900, 'light'],
  [390, 844, 'dark'],
] as const)(
  'at %i by %i a drawer takes the focus beside the page, which stays usable, and Escape closes it and returns the focus',
  async (width, height, colorScheme) => {
    page = await openPage(browser, url, { viewport: { width, height }, colorScheme, reducedMotion: 'reduce' })
    await page.goto(url)
    const opener = page.getByRole('button', { name: 'Look closer', exact: true })
    await opener.press('Enter')
    const drawer = page.getByRole('dialog', { name: /^The replica of the orders database/ })
    await drawer.waitFor()
    await screenshot(page, `drawer-${width}`)
    expect(await page.evaluate('document.activeElement.closest("dialog") !== null')).toBe(true)
    expect(Math.round((await drawer.boundingBox())?.width ?? 0)).toBe(Math.min(440, width))
    const axe = axeOf(page).include('.drawer')
    expect((await axe.analyze()).violations.map(({ id }) => id)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    await page.keyboard.press('Escape')
    await drawer.waitFor({ state: 'detached' })
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Look closer')
    // A person who went on in the page keeps their place there.
    await opener.press('Enter')
    await drawer.waitFor()
    await page.getByLabel('Why?').focus()
    await page.evaluate('document.querySelector(".drawer button").click()')
    await drawer.waitFor({ state: 'detached' })
    expect(await page.evaluate('document.activeElement.id')).toBe('reason')
  },
)

test.each([
  [1440, 900],
  [390, 844],
] as const)('at %i by %i a row with the longest words is whole in the drawer', async (width, height) => {
  page = await openPage(browser, url, { viewport: { width, height }, reducedMotion: 'reduce' })
  await page.goto(url)
  await page.getByRole('link', { name: 'row 10000', exact: true }).press('Enter')
  const drawer = page.getByRole('dialog', { name: /^Row 10000 of 10000/ })
  await drawer.getByText('behind its primary').first().waitFor()
  await screenshot(page, `row-gallery-${width}`)
  const isWhole = '((drawer) => drawer.scrollWidth <= drawer.clientWidth)(document.querySelector(".drawer"))'
  expect(await page.evaluate(isWhole)).toBe(true)
  const axe = axeOf(page).include('.drawer')
  expect((await axe.analyze()).violations.map(({ id }) => id)).toEqual([])
  expect(await page.evaluate(sizes)).toEqual(['12px', '14px', '16px', '22px'])
})

test('twenty incidents fit on a screen of 900 px', async () => {
  page = await openPage(browser, url)
  await page.goto(`${url}/?rows=50`)
  await page.locator('tbody tr').nth(19).waitFor()
  // The top bar, the filters and the head of the list take 108 px of the page itself.
  const box = await page.locator('tbody tr').nth(19).boundingBox()
  expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThan(900 - 108)
})

test('of ten thousand rows two hundred are drawn at once, and scrolling or keys draw the others', async () => {
  page = await openPage(browser, url)
  await page.goto(`${url}/?rows=10000`)
  await page.getByText('9,800 more, drawn as you scroll').waitFor()
  expect(await page.locator('tbody tr[id]').count()).toBe(200)
  for (let row = 0; row < 205; row += 1) await page.keyboard.press('j')
  await page.locator('tr[data-current="true"]#row-inc_many_204').waitFor()
  expect(await page.locator('tbody tr[id]').count()).toBeGreaterThan(204)
})
