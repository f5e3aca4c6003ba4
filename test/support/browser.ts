import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AxeBuilder } from '@axe-core/playwright'
import { afterAll, afterEach, beforeAll } from '@jest/globals'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { parse } from 'yaml'
import { toTriageTold } from '../../domain/format-plan.ts'
import type { Proposal } from '../../domain/placement.ts'
import { asked } from './announced.ts'
import { launch } from './chromium.ts'
import { claimedIncident } from './database.ts'
import { patienceMs } from './directory.ts'
import { type Spine, startSpine } from './spine.ts'

/** What a page did that no page of ours may: errors, blocked content, requests to anybody else. */
export type Watched = Page & { complaints: string[] }

export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options })
  context.setDefaultTimeout(patienceMs)
  const page = Object.assign(await context.newPage(), { complaints: [] as string[] })
  page.on('pageerror', (error) => page.complaints.push(`error: ${error.message}`))
  page.on('dialog', (dialog) => {
    page.complaints.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:')) {
      page.complaints.push(`request to ${request.url()}`)
    }
  })
  page.on('console', (message) => {
    // A visitor without a session is told so by a 401, which Chromium reports.
    if (message.type() === 'error' && !/status of 401/.test(message.text()))
      page.complaints.push(`${message.text()} ${message.location().url}`)
  })
  return page
}

/**
 * The core API with a browser in front of it, for the tests of one file. A test sets `page` to the
 * page it opened; it is closed after the test.
 */
export function useBrowser(environment: Record<string, string> = {}): {
  spine: Spine
  browser: Browser
  page: Watched
} {
  const set = {} as { spine: Spine; browser: Browser; page: Watched }
  beforeAll(async () => {
    set.spine = await startSpine({ parts: ['api'], environment })
    set.browser = await launch()
  })
  afterEach(async () => {
    await set.page?.context().close()
  })
  afterAll(async () => {
    await set.browser?.close()
    await set.spine?.stop()
  })
  return set
}

/**
 * A page of a person who has signed in. It shows nothing yet: a test goes to what it is about, and
 * loads the pages once.
 */
export async function signedIn(
  browser: Browser,
  spine: Spine,
  as: 'admin' | 'approver' = 'approver',
  options: BrowserContextOptions = {},
): Promise<Watched> {
  const answer = await fetch(`${spine.url}/auth/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: spine.tokens[as] }),
  })
  const [, name, value] = /^([^=]+)=([^;]+)/.exec(answer.headers.get('set-cookie') ?? '') ?? []
  if (!name || !value) throw new Error(`nobody was signed in: ${answer.status} ${await answer.text()}`)
  const page = await openPage(browser, spine.url, options)
  const { hostname: domain } = new URL(spine.url)
  const kept = { domain, path: '/', secure: true, httpOnly: true, sameSite: 'Strict' as const }
  await page.context().addCookies([{ name, value, ...kept }])
  return page
}

/** The same, on the list of incidents. */
export async function atIncidents(...[browser, spine, ...rest]: Parameters<typeof signedIn>): Promise<Watched> {
  const page = await signedIn(browser, spine, ...rest)
  await page.goto(`${spine.url}/incidents`)
  await page.getByRole('heading', { name: 'Incidents' }).waitFor()
  return page
}

/** The stream of the page runs: what is written from now on is heard. */
export async function hears(page: Page): Promise<void> {
  await page.getByRole('link', { name: /^Health:(?!\s*(?:Connecting|Lost))/ }).waitFor()
}

/** Presses a button of a page; one of the menu "Actions" after that is opened. */
export async function pressButton(page: Page, name: string | RegExp): Promise<void> {
  const button = page.getByRole('button', { name }).first()
  const closed = page.locator('details.actions:not([open]) > summary')
  await button.or(closed).first().waitFor()
  if (!(await button.isVisible())) await closed.click()
  await button.click()
}

/**
 * The rules of a page that everybody can use, of which only what breaks one is worked out: names
 * and places of all that keeps them take as long again. There are no frames: the legacy mode spares
 * a tab of its own for each look.
 */
export const axeOf = (page: Page): AxeBuilder =>
  new AxeBuilder({ page: page as never })
    .setLegacyMode(true)
    .options({ resultTypes: ['violations'], selectors: false } as never)

/** Keeps a picture of the page in the folder that SCREENSHOTS names, to look at what a test saw. */
export async function screenshot(page: Page, name: string): Promise<void> {
  const folder = process.env.SCREENSHOTS
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) })
}

/**
 * What a person who is woken reads first, by the question that it answers, and where on the page
 * that stands.
 */
const answersAt = {
  what: 'h1',
  since: '.glance > :has(> .soft)',
  asked: '.decision h2',
  ifApproved: '.costs > div:has(dt:text-is("If you approve")) dd',
  ifDenied: '.costs > div:has(dt:text-is("If you deny")) dd',
  cost: '.costs > div:has(dt:text-is("Highest cost")) dd',
  ifNobody: '.costs > div:has(dt:text-is("If you do nothing")) dd',
  deny: '.decision a[href$="#deny"]',
  approve: '.decision a[href$="#approve"]',
  why: '.answer > div:first-child .wraps',
}

/**
 * The answers of an incident's page, those that it lacks, and those that are not wholly on the
 * first screen.
 */
export async function firstScreen(page: Page) {
  await page.locator('.answer').waitFor()
  // On a phone a bar lies over the lower edge.
  const bar = await page.evaluate(`(() => {
    const bar = document.querySelector('nav.bottom')
    return getComputedStyle(bar).position === 'fixed' ? bar.offsetHeight : 0
  })()`)
  const height = (page.viewportSize()?.height ?? 0) - Number(bar)
  const found = await Promise.all(
    Object.entries(answersAt).map(async ([name, selector]) => {
      const place = page.locator(`main ${selector}`).first()
      const box = (await place.count()) > 0 ? await place.boundingBox() : null
      return { name, text: box ? (await place.innerText()).trim() : '', end: box ? box.y + box.height : 0 }
    }),
  )
  return {
    answers: Object.fromEntries(found.map(({ name, text }) => [name, text])),
    missing: found.filter(({ text }) => text === '').map(({ name }) => name),
    below: found.filter(({ end }) => end > height).map(({ name, end }) => `${name} ends at ${end} of ${height}`),
  }
}

/**
 * An approval of a plan with migrations that leaves a VM down: the example's cluster with two dead
 * hosts. Answers its id. With `hosts` the site has so many: those beyond the first five have long
 * names, are in another region, and take nothing.
 */
export async function planAsked(spine: Spine, hosts = 0): Promise<string> {
  const file = parse(readFileSync('examples/placement.yaml', 'utf8')) as { hosts: { name: string; state?: string }[] }
  const dead = ['host-1', 'host-2']
  const problem = {
    ...file,
    hosts: [
      ...file.hosts.map((host) => ({
        ...host,
        ...(hosts > 0 && { region: 'osl' }),
        ...(dead.includes(host.name) && { state: 'dead' }),
      })),
      { name: 'host-5', ram_mib: 32_768, cpu_mc: 16_000, rack: 'rack-e', state: 'dead' },
      ...Array.from({ length: Math.max(0, hosts - 5) }, (_, index) => far(index + 1)),
    ],
  }
  const question = { intent: 'recover', host_ids: dead, use_rack_constraints: true, problem }
  const summary = 'start 3 VMs and migrate 1 VM, to host-3, host-4; 1 VM stays down'
  return await askedPlan(spine, question, summary)
}

type Question = { intent: string; host_ids: string[]; use_rack_constraints: boolean; problem: object }

/** An approval of the plan that answers the question. */
async function askedPlan(spine: Spine, question: Question, summary: string): Promise<string> {
  const { status, body } = await spine.post('/placement/proposals', question)
  if (status !== 201) throw new Error(`no plan was made: ${JSON.stringify(body)}`)
  const plan = body as unknown as Proposal
  const { state, steps, migrations, lowerBound, unplaced, standing } = plan
  const dryRun = {
    possible: true,
    summary,
    details: {
      proposalId: plan.id,
      intent: plan.intent,
      hosts: question.host_ids,
      state,
      steps,
      migrations,
      lowerBound,
      unplaced,
      proof: plan.proof.kind,
      triage: toTriageTold(plan.triage),
      obstacle: plan.obstacle?.text ?? null,
      standing,
    },
  }
  const incidentId = await claimedIncident(spine.db, { title: 'Hosts host-1 and host-2 are down' })
  const vms = steps.map(({ vm }) => ({ kind: 'vm' as const, id: vm }))
  const id = await asked(spine.db, incidentId, { targets: vms })
  await spine.owner
    .updateTable('approval')
    .set({
      args: JSON.stringify({ proposal_id: plan.id, reason: 'the hosts are dead' }),
      dryRun: JSON.stringify(dryRun),
    })
    .where('id', '=', id)
    .execute()
  return id
}

/**
 * The same of two racks, of which one is dead: thirty VMs start on the three hosts of the other.
 */
export async function thirtyAsked(spine: Spine): Promise<string> {
  const names = [1, 2, 3]
  const [dead, live] = [names.map((each) => `hv-osl-a${each}`), names.map((each) => `hv-osl-b${each}`)]
  const size = { ram_mib: 131_072, cpu_mc: 64_000 }
  const problem = {
    hosts: [
      ...dead.map((name) => ({ name, ...size, rack: 'rack-a', state: 'dead' })),
      ...live.map((name) => ({ name, ...size, rack: 'rack-b' })),
    ],
    vms: dead.flatMap((host, row) =>
      Array.from({ length: 10 }, (_, index) => ({
        vmid: `shop-worker-${row * 10 + index + 1}`,
        host,
        ram_mib: 4_096 + 2_048 * (index % 3),
        cpu_mc: 2_000,
      })),
    ),
  }
  return await askedPlan(
    spine,
    { intent: 'recover', host_ids: dead, use_rack_constraints: true, problem },
    'start 30 VMs',
  )
}

const far = (index: number) => ({
  name: `hypervisor-${index}.compute.frankfurt.example.net`,
  rack: `cage-7-row-${index}-of-the-large-hall`,
  ram_mib: 65_536,
  cpu_mc: 32_000,
  region: 'fra',
})
