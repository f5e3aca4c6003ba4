import { afterAll, expect, test } from '@jest/globals'
import { hears, screenshot, signedIn, useBrowser } from '../support/browser.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { siteDatabase } from '../support/site-database.ts'

const files = temporaryDirectory()
const on = useBrowser({ SOURCES_DIR: files.path })
const shop = siteDatabase(files.path)
afterAll(async () => {
  await (await shop).drop()
  files.remove()
})

test.each([
  [1440, 'light'],
  [390, 'dark'],
] as const)(
  'a person sees which session blocks which on a server, and the effect of terminating it (%i px, %s)',
  async (width, colorScheme) => {
    const { url, credential, writeCredential, open, run } = await shop
    const { spine } = on
    const headers = { authorization: `Bearer ${spine.tokens.admin}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ kind: 'postgresql', url, credential, writeCredential })
    await fetch(`${spine.url}/api/v1/sources/shop-db`, { method: 'PUT', headers, body })
    await spine.post('/sources/shop-db/test', {}, { token: spine.tokens.admin })
    const billing = await open('billing')
    await billing.query("begin; update orders set note = 'planted' where id = 1")
    const waiting = await Promise.all(['web-1', 'web-2', 'web-3'].map((name) => open(name)))
    const updates = waiting.map((client) => client.query("update orders set note = 'planted' where id = 1"))
    await spine.until('three to wait', async () => {
      const [row] = await run(
        "select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
      )
      return row?.n === 3
    })
    on.page = await signedIn(on.browser, spine, 'approver', { viewport: { width, height: 900 }, colorScheme })
    await on.page.goto(`${spine.url}/resources/database%3Ashop-db`)
    await on.page.getByRole('heading', { name: 'Who blocks whom' }).waitFor()
    await on.page.getByText('blocks 3 sessions').waitFor()
    expect(await on.page.getByRole('list').filter({ hasText: '(web-3)' }).count()).toBeGreaterThan(0)
    expect(await on.page.content()).not.toContain('planted')
    await hears(on.page)
    await screenshot(on.page, `database-${width}-${colorScheme}`)
    expect(on.page.complaints).toEqual([])
    await billing.query('rollback')
    await Promise.all(updates)
    await Promise.all([billing, ...waiting].map((client) => client.end()))
  },
)
