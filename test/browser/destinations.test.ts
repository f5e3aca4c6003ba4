import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { axeOf, screenshot, signedIn, useBrowser } from '../support/browser.ts'
import { type LocalServer, startLocalServer } from '../support/local-server.ts'

const set = useBrowser()
let receiver: LocalServer
beforeAll(async () => {
  receiver = await startLocalServer()
})
afterAll(async () => await receiver.close())

test('a destination is added by its form, tested, changed without its secret, and removed', async () => {
  const page = await signedIn(set.browser, set.spine, 'admin')
  set.page = page
  await page.goto(`${set.spine.url}/config`)
  await page.getByRole('button', { name: 'Add a destination' }).click()
  await page.getByLabel('Name', { exact: true }).fill('on-call')
  await page.getByLabel(/^Kind/).selectOption('PagerDuty')
  await page.getByLabel('Region: us, eu, or an address').fill(`${receiver.url}/v2/enqueue`)
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('“Integration key of a service (Events API V2)” is missing').waitFor()
  await page.getByLabel('Integration key of a service').fill('R0123456789ABCDEF0123456789ABCDE')
  await page.getByRole('button', { name: 'critical', exact: true }).click()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('button', { name: 'Change on-call' }).click()
  await page.getByRole('button', { name: 'Send a test message to on-call' }).click()
  await page.getByText('the receiver answered 200').waitFor()
  expect(receiver.seen.map(({ body }) => JSON.parse(body).event_action)).toEqual(['trigger', 'resolve'])
  expect(await page.content()).not.toContain('R0123456789ABCDEF')
  await page.getByLabel('Types of incidents').fill('disk_*')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('critical; disk_*').waitFor()
  await page.getByRole('button', { name: 'Change on-call' }).click()
  await page.getByRole('button', { name: 'Remove on-call' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await page.getByText('No destination yet.').waitFor()
  expect(page.complaints.filter((each) => !/status of 422/.test(each))).toEqual([])
})

test.each([
  ['light', 1440],
  ['dark', 1440],
  ['light', 390],
  ['dark', 390],
] as const)('the form in %s at %i pixels fits its screen and is accessible', async (colorScheme, width) => {
  const { url, tokens } = set.spine
  const place = 'ops-mail'
  const body = {
    kind: 'email',
    options: {
      ...{ host: 'smtp.example.com', user: 'nightshift', from: 'nightshift@example.com' },
      to: ['operations-on-call@example.com', 'anna@example.com'],
    },
    secrets: { password: 'correct horse battery' },
    route: { severities: ['critical'], hours: { from: '22:00', to: '06:00', zone: 'Europe/Oslo' } },
  }
  await fetch(`${url}/api/v1/destinations/${place}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${tokens.admin}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const { body: opened } = await set.spine.post(
    '/ingest/generic',
    { name: 'disk_pressure', title: `Disk full on <b>${colorScheme}</b> ${width}`, severity: 'critical' },
    { token: tokens.ingest },
  )
  const [{ incidentId = '' } = {}] = opened.alerts as { incidentId?: string }[]
  await set.spine.db
    .insertInto('delivery')
    .values({
      messageId: `msg_${colorScheme}_${width}`,
      destination: `to.${place}`,
      incidentId,
      notification: JSON.stringify({ trigger: 'critical', incident: { title: 'Disk full on <b>everything</b>' } }),
      attempt: 1,
      status: 'dropped',
      responseStatus: 554,
      response: 'the mail server answered 554: no such mailbox as <script>alert(1)</script>',
    })
    .execute()
  const page = await signedIn(set.browser, set.spine, 'admin', { colorScheme, viewport: { width, height: 900 } })
  set.page = page
  await page.goto(`${url}/config#destination-${place}`)
  await page.getByLabel('Mail server').waitFor()
  await page.getByText('the mail server answered 554').first().waitFor()
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
  const { violations } = await axeOf(page).include(`#destination-${place}`).analyze()
  expect(violations.map(({ id, nodes }) => [id, nodes[0]?.html])).toEqual([])
  await screenshot(page, `destination-${colorScheme}-${width}`)
  expect(page.complaints).toEqual([])
})
