import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import pino from 'pino'
import { startDeliveries } from '../../worker/deliver.ts'
import { asked } from '../support/announced.ts'
import { atIncidents, screenshot, signedIn, useBrowser, type Watched } from '../support/browser.ts'
import { allAtOnce, claimedIncident, openedIncident } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { type PushService, startPushService } from '../support/push-service.ts'

const environment: Record<string, string> = {}
let service: PushService
beforeAll(async () => {
  service = await startPushService()
  environment.PUSH_SERVICES = service.origin
})
afterAll(() => service?.close())
const on = useBrowser(environment)
const named = (alertname: string) => ({ name: alertname, labels: { alertname } })

async function home(width = 1440, colorScheme: 'light' | 'dark' = 'light') {
  on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 900 }, colorScheme })
  await on.page.goto(`${on.spine.url}/home`)
  await on.page.getByText('System:').waitFor()
  return on.page
}

describe('home', () => {
  test.each([
    [1440, 'light'],
    [390, 'dark'],
  ] as const)('at %i pixels in %s a new site shows the remaining steps of its setup', async (width, scheme) => {
    const page = await home(width, scheme)
    const steps = page.getByRole('region', { name: 'No incident yet' }).getByRole('listitem')
    expect(await steps.getByRole('heading').allTextContents()).toEqual([
      ...[expect.stringMatching(/Nightshift runs/), expect.stringMatching(/A model answers/)],
      ...[expect.stringMatching(/Nightshift sees your site/), expect.stringMatching(/An alert arrives/)],
    ])
    // Only the API runs here: what is lacking is named, with what helps.
    await steps.first().getByText('nightshift doctor').waitFor()
    await screenshot(page, `home-fresh-${width}-${scheme}`)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
  })

  test('a new site gets its first question, which appears live above everything else', async () => {
    const page = await home()
    await page.getByText('No incident yet').waitFor()
    const incident = await claimedIncident(on.spine.db, { ...named('host_down'), title: 'Host host-osl-1 is down' })
    const approval = await asked(on.spine.db, incident)
    const line = page.getByRole('region', { name: /^Needs you 1/ }).getByRole('row')
    await line.getByText('Start 2 VMs').waitFor()
    await line.getByRole('link', { name: /^Review/ }).click()
    await page.waitForURL(`**/approvals/${approval}`)
    expect(page.complaints).toEqual([])
  })

  test.each([
    [1440, 'light'],
    [1440, 'dark'],
    [390, 'light'],
    [390, 'dark'],
  ] as const)(
    'at %i pixels in %s waiting questions stay above a storm of three hundred incidents, which is one line',
    async (width, scheme) => {
      const { count } = await on.spine.db
        .selectFrom('incident')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .executeTakeFirstOrThrow()
      if (count < 300) {
        await allAtOnce(Array.from({ length: 300 }), () =>
          openedIncident(on.spine.db, { ...named('KubePodCrashLooping'), title: 'Pod checkout is crash looping' }),
        )
        const handed = await openedIncident(on.spine.db, {
          ...named('disk_full'),
          title: 'db07 /var/lib/mysql 3 % free',
          severity: 'critical',
        })
        await on.spine.post(`/incidents/${handed}/escalate`, { reason: 'No tool frees space there.' })
        const gone = await openedIncident(on.spine.db, {
          ...named('replication_lag'),
          title: 'Replication lag on db-osl-1',
        })
        await on.spine.post(`/incidents/${gone}/resolve`, {
          resolution: 'The replica was continued.',
          outcome: 'repaired',
        })
      }
      const page = await home(width, scheme)
      await screenshot(page, `home-storm-${width}-${scheme}`)
      const needs = await page.getByRole('heading', { name: /^Needs you/ }).boundingBox()
      expect(needs?.y).toBeLessThan(450)
      const storm = page.getByRole('region', { name: /^In progress/ }).locator('tbody tr')
      expect(await storm.count()).toBe(1)
      await storm.getByText('× 300').waitFor()
      await storm.getByText('300 queued').waitFor()
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    },
  )

  test('by keyboard alone: j and Enter open a waiting question, and one press takes an escalated incident', async () => {
    const page = await home()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/approvals/apr_*')
    await page.keyboard.press('h')
    const needs = page.getByRole('region', { name: /^Needs you/ })
    await needs.getByRole('button', { name: /^Take db07/ }).focus()
    await page.keyboard.press('Enter')
    await needs.getByText('You own it').waitFor()
  })

  test('by keyboard alone: Ctrl+K finds an incident, a row of the log, a setting, a page and a pasted id', async () => {
    const page = await home()
    const look = async (text: string, name: RegExp) => {
      await page.keyboard.press('Control+k')
      await page.keyboard.type(text)
      const found = page.getByRole('option', { name })
      await found.first().waitFor()
      if (text === 'continued') await screenshot(page, 'palette-1440-light')
      // Presses towards the option: further results may move the option above the chosen one.
      while ((await found.first().getAttribute('aria-selected')) !== 'true') {
        const isBelow = `document.querySelector('[role=option][aria-selected=true]').compareDocumentPosition(own) & 4`
        const is = await found.first().evaluate(`(own) => ${isBelow}`)
        await page.keyboard.press(is ? 'ArrowDown' : 'ArrowUp')
      }
      await page.keyboard.press('Enter')
    }
    await look('checkout', /^incident.*crash looping/)
    await page.waitForURL('**/incidents/inc_*')
    await look('continued', /^log.*The replica was continued/)
    await page.waitForURL(/incidents\/inc_\w+#e-\d+$/)
    await look('max_turns', /^setting.*agent\.max_turns/)
    await page.waitForURL('**/config#agent.max_turns')
    await look('audi', /^page.*Audit/)
    await page.waitForURL('**/audit')
    const id = await openedIncident(on.spine.db, named('pasted'))
    await look(id, /^id/)
    await page.waitForURL(`**/incidents/${id}`)
    await page.keyboard.press('Control+k')
    await page.keyboard.type('zzzz nothing like it')
    await page.getByText('Nothing found for').waitFor()
    await page.keyboard.press('Escape')
    expect(page.complaints).toEqual([])
  })
})

/** Where no notification may lead. */
const elsewhere = [
  ...['https://evil.example/approvals/apr_1', '//evil.example', 'javascript:alert(1)', '/approvals/apr_1/../../tokens'],
  ...['/approvals/apr_1?next=//evil.example', '\\\\evil.example', '/config', 7, null],
]

/** Shows a notification with these data, in place of what is shown. */
const show = (page: Watched, data: object) =>
  page.evaluate(
    `navigator.serviceWorker.ready.then(async (one) => {
      for (const each of await one.getNotifications()) each.close()
      await one.showNotification('Again', { data: ${JSON.stringify(data)} })
    })`,
  )

/** Hands a message to the service worker, as a push service would that sends what it likes. */
const push = (page: Watched, message: object) =>
  page
    .context()
    .serviceWorkers()[0]
    ?.evaluate(`(async () => {
    const event = new PushEvent('push', { data: ${JSON.stringify(JSON.stringify(message))} })
    let work
    event.waitUntil = (promise) => { work = promise }
    dispatchEvent(event)
    await work
  })()`)

/**
 * A press on the one notification that is shown, in the service worker. Chromium lets a worker open
 * and focus windows for a real press alone, and a headless one shows nothing to press: what the
 * worker asks for is answered instead, after all windows were really looked for.
 */
async function press(page: Watched): Promise<{ opened?: string; focused?: string }> {
  const [worker] = page.context().serviceWorkers()
  const asked = await worker?.evaluate(`(async () => {
    const asked = {}
    clients.openWindow = async (path) => void (asked.opened = path)
    WindowClient.prototype.focus = async function () { asked.focused = this.url }
    const [notification] = await registration.getNotifications()
    const event = new NotificationEvent('notificationclick', { notification })
    let work
    event.waitUntil = (promise) => { work = promise }
    dispatchEvent(event)
    await work
    return { ...asked, left: (await registration.getNotifications()).length }
  })()`)
  const { left, ...did } = asked as { left: number; opened?: string; focused?: string }
  expect(left).toBe(0)
  return did
}

describe('notifications', () => {
  test('a person turns them on while an approval waits, gets the next one in Chromium, and removes the device', async () => {
    const deliveries = startDeliveries(on.spine.db, pino({ level: 'silent' }), {
      publicUrl: on.spine.url,
      pushServices: [service.origin],
    })
    try {
      await asked(on.spine.db, await claimedIncident(on.spine.db, { ...named('vm_down'), title: 'VM 7 is down' }))
      on.page = await signedIn(on.browser, on.spine, 'approver')
      const { page } = on
      await page.context().grantPermissions(['notifications'], { origin: on.spine.url })
      // Chromium would ask Google for an address, which a test cannot reach: the subscription is
      // the stand-in's, all else is real.
      const subscription = service.subscribe()
      await page.addInitScript(
        `PushManager.prototype.subscribe = async () => ({ toJSON: () => (${JSON.stringify(subscription)}) })`,
      )
      await page.goto(`${on.spine.url}/home`)
      await page.getByText('Get a notification on this device').waitFor()
      await page.getByRole('button', { name: 'Turn on' }).click()
      await eventually('the subscription', async () => {
        const { devices } = await on.spine.get<{ devices: unknown[] }>('/push', on.spine.tokens.approver)
        return devices.length === 1
      })
      const incident = await claimedIncident(on.spine.db, { ...named('vm_down'), title: 'VM 9 is down' })
      const approval = await asked(on.spine.db, incident)
      await eventually('the push', () => service.pushed.some(({ message }) => message.tag === approval))
      const pushed = service.pushed.find(({ message }) => message.tag === approval)

      const devtools = await page.context().newCDPSession(page)
      const workers: { registrationId: string }[] = []
      devtools.on('ServiceWorker.workerVersionUpdated', ({ versions }) =>
        workers.push(...versions.filter(({ status }) => status === 'activated')),
      )
      await devtools.send('ServiceWorker.enable')
      // One that is not activated yet loses the message, and `ready` is said while it still
      // activates.
      await eventually('the activated worker', () => workers.length > 0)
      await devtools.send('ServiceWorker.deliverPushMessage', {
        origin: on.spine.url,
        registrationId: workers[0]?.registrationId ?? '',
        data: JSON.stringify(pushed?.message),
      })
      const shown = () =>
        page.evaluate(
          `navigator.serviceWorker.ready.then((one) => one.getNotifications())
            .then((all) => all.map(({ title, body, data }) => ({ title, body, path: data.path })))`,
        ) as Promise<object[]>
      await eventually('the notification', async () => (await shown()).length === 1)
      expect(await shown()).toEqual([
        { title: 'Approval needed: VM 9 is down', body: 'Start 2 VMs (high risk)', path: `/approvals/${approval}` },
      ])
      // Another page is open: the press brings the card forward where it is open, and opens it
      // where it is not.
      expect(await press(page)).toEqual({ opened: `/approvals/${approval}` })
      await page.goto(`${on.spine.url}/approvals/${approval}`)
      await show(page, { path: `/approvals/${approval}` })
      expect(await press(page)).toEqual({ focused: `${on.spine.url}/approvals/${approval}` })
      await page.locator('article.card').waitFor()
      await page.goto(`${on.spine.url}/approvals`)
      for (const path of elsewhere) {
        await push(page, { title: 'Strange', path, tag: 'strange' })
        expect(await shown()).toMatchObject([{ path: '/approvals' }])
        expect(await press(page)).toEqual({ focused: `${on.spine.url}/approvals` })
        // A notification whose data say it, however they came there.
        await show(page, { path })
        expect(await press(page)).toEqual({ focused: `${on.spine.url}/approvals` })
      }
      await page.getByRole('region', { name: 'Notifications' }).getByText('Chrome on Linux').first().waitFor()
      await screenshot(page, 'notifications-1440-light')
      await page.getByRole('button', { name: /^Remove/ }).click()
      await page.getByText('no message yet').waitFor({ state: 'detached' })
      expect(page.complaints).toEqual([])
    } finally {
      await deliveries.stop()
    }
  })

  test('on a phone the pages of the night are in the bottom bar, and the others are behind More', async () => {
    on.page = await atIncidents(on.browser, on.spine, 'approver', { viewport: { width: 390, height: 844 } })
    const { page } = on
    const bar = page.getByRole('navigation', { name: 'Pages', exact: true })
    const box = await bar.boundingBox()
    expect((box?.y ?? 0) + (box?.height ?? 0)).toBe(844)
    await bar.getByRole('button', { name: 'More' }).click()
    const more = page.getByRole('dialog', { name: 'More pages and settings' })
    await screenshot(page, 'more-390-light')
    await more.getByRole('link', { name: 'Health' }).click()
    await page.getByRole('heading', { name: 'Health' }).waitFor()
    expect(await more.isVisible()).toBe(false)
    await bar.getByRole('link', { name: 'Home' }).click()
    await page.getByRole('heading', { name: 'Home' }).waitFor()
  })
})
