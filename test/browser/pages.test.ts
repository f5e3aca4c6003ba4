import { AxeBuilder } from '@axe-core/playwright'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Browser, Page } from 'playwright-core'
import { type Spine, startSpine } from '../support/spine.ts'
import { launch, openPage, signedIn, type Watched } from './browser.ts'

let spine: Spine
let browser: Browser
let paths: string[]
const hostile = '<img src=https://evil.example/x onerror=alert(1)>\u202Eevil'

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'] })
  browser = await launch()
  await spine.lab.break('host_down', 'host-osl-1')
  const approval = await spine.pendingApproval()
  const alert = { name: 'disk_pressure', title: `Disk full on ${hostile}`, labels: { team: hostile } }
  await spine.post('/ingest/generic', alert, { token: spine.tokens.ingest })
  const gap = { incident_id: approval.incidentId, category: 'remediation', description: `No tool for ${hostile}` }
  await spine.post('/capability-gaps', gap)
  paths = [
    ...['/incidents', '/approvals', '/alerts', '/gaps', '/usage', '/health', '/config#agent.max_turns'],
    ...['', '?view=compact', '?view=json', '#e-3'].map((view) => `/incidents/${approval.incidentId}${view}`),
    `/approvals/${approval.id}`,
    `/approvals/${approval.id}/plain`,
  ]
})
afterAll(async () => {
  await browser?.close()
  await spine?.stop()
})

async function findings(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page: page as never })
    .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'])
    .analyze()
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`))
}

async function settled(page: Watched, path: string): Promise<void> {
  await page.goto(`${spine.url}${path}`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.getByText(/^Loading/).waitFor({ state: 'detached' })
}

describe.each([
  ['light', 1440],
  ['dark', 1440],
  ['light', 390],
  ['dark', 390],
] as const)('in %s at %i pixels', (colorScheme, width) => {
  test('every page can be used by everybody, fits its width, and asks nobody else', async () => {
    const page = await signedIn(browser, spine, 'admin', { colorScheme, viewport: { width, height: 900 } })
    const wrong: string[] = []
    for (const path of paths) {
      await settled(page, path)
      wrong.push(...(await findings(page)).map((finding) => `${path} ${finding}`))
      const wide = (await page.evaluate('document.documentElement.scrollWidth')) as number
      if (wide > width) wrong.push(`${path} is ${wide} pixels wide`)
    }
    expect(wrong).toEqual([])
    expect(page.complaints).toEqual([])
    await page.context().close()
  })
})

test('text of a stranger is shown as what it is', async () => {
  const page = await signedIn(browser, spine)
  for (const path of ['/alerts', '/incidents', '/gaps']) {
    await settled(page, path)
    await page.getByText('<img src=https://evil.example/x').first().waitFor()
    expect(await page.locator('img').count()).toBe(0)
    expect(await page.locator('main').innerText()).not.toContain('\u202E')
  }
  expect(page.complaints).toEqual([])
  await page.context().close()
})

test('a sign-in page is what a stranger gets, and a used code says so', async () => {
  const page = await openPage(browser, spine.url)
  await page.goto(`${spine.url}/incidents`)
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(await findings(page)).toEqual([])
  await page.goto(`${spine.url}/sign-in#code=nsc_used`)
  await page.getByRole('alert').getByText('used already').waitFor()
  expect(page.url()).toBe(`${spine.url}/sign-in`)
  await page.getByLabel('API token').fill(spine.tokens.agent)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').getByText('is not a person').waitFor()
  await page.context().close()
})

test('keys can be switched off, and filters live in the address', async () => {
  const page = await signedIn(browser, spine)
  await page.keyboard.press('/')
  await page.keyboard.type('host-osl')
  await page.waitForURL(/q=host-osl/)
  await page.getByRole('button', { name: 'critical', exact: true }).click()
  await page.waitForURL(/severity=critical/)
  await page.reload()
  await page.getByRole('link', { name: 'Host host-osl-1 is down' }).waitFor()
  await page.keyboard.press('?')
  await page.getByRole('checkbox', { name: 'Single keys are shortcuts' }).uncheck()
  await page.keyboard.press('Escape')
  await page.keyboard.press('p')
  expect(page.url()).toContain('/incidents')
  await page.context().close()
})
