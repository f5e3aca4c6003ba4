import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { Browser } from 'playwright-core'
import { faultRows } from '../../cli/lab/endings.ts'
import { putSource } from '../../db/inventory/sources.ts'
import type { Incident } from '../../domain/incident.ts'
import { missingServers } from '../../lab/monitoring.ts'
import type { FaultName } from '../../lab/state.ts'
import { enrolLab } from '../../start/lab-devices.ts'
import { ensureMeshKeys } from '../../start/mesh-keys.ts'
import { atIncidents, screenshot, type Watched } from '../support/browser.ts'
import { launch } from '../support/chromium.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type Spine, startSpine } from '../support/spine.ts'

const keys = temporaryDirectory()
let spine: Spine
let browser: Browser

beforeAll(async () => {
  spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'worker'],
    environment: { ...ensureMeshKeys(keys.path), LAB_WEB_SHARDS: '3' },
  })
  browser = await launch()
  await enrolLab(spine.url, spine.tokens.admin, spine.lab)
})
afterAll(async () => {
  await browser?.close()
  await spine?.stop()
  keys.remove()
  await console.log(JSON.stringify(seen, null, 1))
})

/**
 * `why` is what the lab did, in words that the cause on the page has to hold; `asks` where a person
 * approves the repair.
 */
type Case = { fault: FaultName; target: string; why: RegExp; asks: boolean; ends: 'resolved' | 'escalated' }

// No two at one place: what a person has is not investigated when its alert comes back.
const cases: Case[] = [
  { fault: 'host_down', target: 'host-ams-1', why: /is down/, asks: true, ends: 'escalated' },
  { fault: 'replication_lag', target: 'db-osl-1', why: /behind; process is stopped/, asks: false, ends: 'resolved' },
  { fault: 'full_log', target: 'web-osl-1', why: /is full.* rotated logs hold/, asks: true, ends: 'resolved' },
  { fault: 'disk_pressure_tenant', target: 'web-ams-1', why: /tenants \d+/, asks: false, ends: 'escalated' },
  { fault: 'config_drift', target: 'web-osl-2', why: /config|drift|differs/i, asks: false, ends: 'resolved' },
  { fault: 'clock_skew', target: 'node-web-osl-2b', why: /clock|skew/i, asks: false, ends: 'resolved' },
]

const seen: Record<string, string>[] = []

/** What holds the focus, as a person hears it. */
const focused = (page: Watched) =>
  page.evaluate('(document.activeElement?.textContent ?? "").trim().slice(0, 200)') as Promise<string>

/** Goes on by the Tab key until something with this text has the focus, and presses Enter on it. */
async function tabTo(page: Watched, text: string | RegExp): Promise<void> {
  const heard: string[] = []
  for (let press = 0; press < 120; press++) {
    await page.keyboard.press('Tab')
    const at = await focused(page)
    if (typeof text === 'string' ? at === text : text.test(at)) return await page.keyboard.press('Enter')
    heard.push(at.slice(0, 30))
  }
  throw new Error(`no Tab led to ${text}: ${heard.join(' | ')}`)
}

/** From any page to Home, down to the line of the incident, and in. */
async function openFromHome(page: Watched, { id }: Incident): Promise<void> {
  await page.keyboard.press('h')
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  await page.locator(`tr[id$="${id}"]`).first().waitFor()
  for (let press = 0; press < 60; press++) {
    await page.keyboard.press('j')
    const row = (await page.evaluate('document.querySelector("[data-current=true]")?.id ?? ""')) as string
    if (row.endsWith(id)) return await page.keyboard.press('Enter')
  }
  throw new Error(`no press of j led to the line of ${id}`)
}

/**
 * The five answers as the first screen of an incident gives them; what is below it is no answer.
 */
async function fiveAnswers(page: Watched): Promise<Record<string, string>> {
  await page.locator('main .answer').waitFor()
  const read = async (selector: string) => {
    const place = page.locator(`main ${selector}`).first()
    const box = (await place.count()) > 0 ? await place.boundingBox() : null
    const isSeen = box !== null && box.y + Math.min(box.height, 24) <= (page.viewportSize()?.height ?? 0)
    return isSeen ? (await place.innerText()).replace(/\s+/g, ' ').trim() : ''
  }
  const fact = (name: string) => read(`.answer > div:has(> dt:text-is("${name}")) > dd`)
  return {
    what: await read('h1'),
    since: await read('.glance > :has(> .soft)'),
    why: await read('.answer > div:first-child dd'),
    done: await fact('Done so far'),
    next: (await read('.costs > div:has(> dt:text-is("If you approve")) > dd')) || (await fact('Next')),
  }
}

async function walk(page: Watched, { fault, asks }: Case, incident: Incident): Promise<Record<string, string>> {
  await openFromHome(page, incident)
  // What waits opens its card; the incident is a link on it.
  if (asks) await page.getByRole('region', { name: 'Decide' }).waitFor()
  if (asks) await tabTo(page, 'The whole incident')
  const answers = await fiveAnswers(page)
  await screenshot(page, `keyboard-${fault}`)
  if (!asks) return answers
  await tabTo(page, 'Approve…')
  await page.getByRole('region', { name: 'Decide' }).waitFor()
  await tabTo(page, 'Approve…')
  await page.getByRole('button', { name: 'Yes, approve' }).and(page.locator(':enabled')).waitFor()
  await tabTo(page, 'Yes, approve')
  await tabTo(page, 'Follow the incident')
  return answers
}

/** The incident of the fault, as soon as it waits for this person or has ended. */
const begun = async ({ fault, asks, ends }: Case, began: number): Promise<Incident> =>
  await spine.until(`the incident of ${fault}`, async () =>
    (await spine.incidents(`?type=${faultRows[fault].alert}`)).find(
      ({ status, createdAt }) => Date.parse(createdAt) >= began && status === (asks ? 'awaiting_approval' : ends),
    ),
  )

async function monitor(): Promise<void> {
  expect(missingServers()).toEqual([])
  const { prometheusUrl: url } = await spine.lab.monitor()
  const rest = {
    credential: null,
    writeCredential: null,
    caFile: null,
    scheme: null,
    headers: {},
    certFile: null,
    keyFile: null,
    options: {},
    timeoutSeconds: 10,
  }
  await putSource(spine.db, 'lab', { kind: 'prometheus', url, ...rest }, 'anna')
}

test.each(cases)(
  'by keys alone from Home: $fault at $target is understood, decided and seen to its end',
  async (each) => {
    const { fault, target, why, asks, ends } = each
    if (fault === 'clock_skew') await monitor()
    const began = Date.now() - 1_000
    const { on } = await spine.lab.break(fault, target)
    const incident = await begun(each, began)
    // What a person is asked about is not repaired yet, whatever the page says; what ended alone
    // is.
    const { healthy: isHealthyBefore } = await spine.lab.oracle(fault, target)
    const page = await atIncidents(browser, spine, 'approver')
    const answers = await walk(page, each, incident)
    await page.locator('.glance').getByText(ends).waitFor()
    const { healthy, checks } = await spine.lab.oracle(fault, target)
    const oracle = checks.flatMap(({ name, ok }) => (/every other/.test(name) ? [] : [`${ok ? 'ok' : 'NOT'} ${name}`]))
    seen.push({ fault, target, ...answers, end: ends, oracle: oracle.slice(0, 4).join('; ') })
    expect({ isHealthyBefore, healthy }).toEqual({ isHealthyBefore: !asks, healthy: true })
    expect(`${answers.what} ${answers.why}`).toContain(on)
    const since = Date.parse(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/.exec(answers.since ?? '')?.[0] ?? '')
    expect(since).toBeGreaterThanOrEqual(began - 1_000)
    expect(since).toBeLessThanOrEqual(Date.now())
    expect(answers.why).toMatch(why)
    expect(answers.done).toMatch(ends === 'resolved' && !asks ? /^verified: / : /nothing was changed/)
    expect(answers.next).toMatch(asks ? /^The action runs at once, / : /\w/)
    expect(page.complaints).toEqual([])
    await page.context().close()
    await spine.turnThePage()
  },
)
