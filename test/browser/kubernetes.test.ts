import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { ClusterKind } from '../../sources/kubernetes/kinds.ts'
import type { Recorded } from '../real/kubernetes/record.ts'
import { axeOf, hears, pressButton, screenshot, signedIn, useBrowser } from '../support/browser.ts'
import { type ClusterObject, type StandInCluster, startCluster } from '../support/cluster-server.ts'
import { temporaryDirectory } from '../support/directory.ts'

const files = temporaryDirectory()
const on = useBrowser({ SOURCES_DIR: files.path })
let cluster: StandInCluster

const recorded = (fault: string): Recorded =>
  JSON.parse(readFileSync(join(import.meta.dirname, `../data/kubernetes/${fault}.json`), 'utf8'))
const pages = { loop: recorded('k8s_crash_loop'), away: recorded('k8s_node_not_ready') }

/** What a real API server said while a workload crashed, and of a node that was away. */
function putFaults(): void {
  for (const { objects, logs } of [pages.loop, pages.away]) {
    for (const [kind, list] of Object.entries(objects))
      for (const object of list) cluster.put(kind as ClusterKind, object as ClusterObject)
    for (const [key, text] of Object.entries(logs)) cluster.logs.set(key, text)
  }
}

beforeAll(async () => {
  cluster = await startCluster()
  putFaults()
  const { spine } = on
  const path = join(files.path, 'token')
  writeFileSync(path, 'token-of-a-test')
  const headers = { authorization: `Bearer ${spine.tokens.admin}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ kind: 'kubernetes', url: cluster.url, credential: `file:${path}` })
  await fetch(`${spine.url}/api/v1/sources/prod`, { method: 'PUT', headers, body })
  await spine.post('/sources/prod/test', {}, { token: spine.tokens.admin })
})
afterAll(async () => {
  await cluster.stop()
  files.remove()
})

const open = async (resource: string) => {
  await on.page.goto(`${on.spine.url}/resources/${encodeURIComponent(resource)}`)
  return on.page.getByRole('region', { name: 'In the cluster now' })
}

test.each([
  [1440, 'light'],
  [390, 'dark'],
  [1440, 'dark'],
  [390, 'light'],
] as const)(
  'a person sees why a workload crashes, since which change, and its log (%i px, %s)',
  async (width, colorScheme) => {
    const { set, change, why = '', pod } = pages.loop.facts
    on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 900 }, colorScheme })
    const shown = await open('workload:prod:shop:deployment:cart')
    await shown.getByRole('heading', { name: 'Rollouts, and what each rollout changed' }).waitFor()
    await shown.getByText(`${change}`).first().waitFor()
    for (const word of [set, pod, 'CrashLoopBackOff', 'The previous container ended'])
      expect(await shown.innerText()).toContain(word)
    expect(await shown.getByText(why).count()).toBeGreaterThan(0)
    await shown.getByLabel('of the container before it restarted').check()
    await pressButton(on.page, 'Read the log')
    await shown.getByRole('region', { name: 'Lines of the log' }).getByText(why).first().waitFor()
    await hears(on.page)
    expect(await on.page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
    expect((await axeOf(on.page).analyze()).violations.map(({ id, nodes }) => [id, nodes[0]?.html])).toEqual([])
    await screenshot(on.page, `workload-log-${width}-${colorScheme}`)
    await on.page.evaluate('scrollTo(0, 0)')
    await screenshot(on.page, `workload-${width}-${colorScheme}`)
    expect(on.page.complaints).toEqual([])
  },
)

test('a person goes from the cluster to a lost node, and sees since when it is lost', async () => {
  on.page = await signedIn(on.browser, on.spine, 'approver')
  const shown = await open('cluster:prod')
  await shown.getByRole('link', { name: /^node node-2 is not ready/ }).waitFor()
  // The pods of its new revision crash, while those of the one before serve.
  await shown
    .getByRole('link', { name: /^Deployment shop\/cart: 1 of 1 ready, .*the rollout is not over, 1 CrashLoopBackOff/ })
    .waitFor()
  await screenshot(on.page, 'cluster-1440-light')
  await shown.getByRole('link', { name: /^node node-2 is not ready/ }).click()
  await shown
    .getByRole('cell', { name: `${pages.away.facts.reason}: ${pages.away.facts.why}` })
    .first()
    .waitFor()
  await shown.getByText('NodeNotReady').first().waitFor()
  expect((await axeOf(on.page).analyze()).violations.map(({ id }) => id)).toEqual([])
  await screenshot(on.page, 'node-1440-light')
  await on.page.setViewportSize({ width: 390, height: 900 })
  await screenshot(on.page, 'node-390-light')
  expect(on.page.complaints).toEqual([])
})

test('a cluster that revoked our access is reported, and the page of its resource stays', async () => {
  cluster.refuse('Deployment', { status: 401 })
  on.page = await signedIn(on.browser, on.spine, 'approver')
  const shown = await open('workload:prod:shop:deployment:cart')
  await shown.getByRole('alert').getByText('does not accept the credential (401)').waitFor()
  await on.page.getByRole('heading', { name: 'Sources' }).waitFor()
  cluster.allow('Deployment')
  await shown.getByRole('button', { name: 'Try again' }).click()
  await shown.getByRole('heading', { name: 'Pods by state' }).waitFor()
})
