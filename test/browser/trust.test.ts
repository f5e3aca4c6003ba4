import { beforeAll, expect, test } from '@jest/globals'
import { ingestAlert } from '../../db/alerts/ingest-body.ts'
import { closeIncident } from '../../db/incidents/close-incident.ts'
import { systemScope } from '../../db/scope.ts'
import { readSitePolicies, takeSitePolicy } from '../../db/site-policies.ts'
import { gradeIncident } from '../../db/trust/grade.ts'
import { stepsOf } from '../../db/trust/levels.ts'
import { standingStops } from '../../db/trust/stops.ts'
import { agentActor } from '../../domain/event.ts'
import { readSitePolicy } from '../../safety/site/read.ts'
import { toolFacts } from '../../tools/registry.ts'
import { axeOf, pressButton, screenshot, signedIn, useBrowser, type Watched } from '../support/browser.ts'
import { eventually } from '../support/directory.ts'
import { pair, playPair } from '../support/played-pair.ts'

const on = useBrowser()

const looks = [
  [1440, 'light'],
  [390, 'light'],
  [1440, 'dark'],
  [390, 'dark'],
] as const

let shadowed = ''

/**
 * A pair that was in shadow, asked, acted and fell back, and one more write in shadow that nobody
 * has graded.
 */
beforeAll(async () => {
  const { db } = on.spine
  const play = playPair(on.spine, { AGENT_TRUST: 'propose' })
  const anna = await play.person('anna')
  const escalate = (id: string) =>
    db
      .transaction()
      .execute((trx) =>
        closeIncident(
          trx,
          id,
          1,
          { status: 'escalated', code: 'AGENT', category: 'needs_approval', reason: 'Replication has to be started' },
          { actor: agentActor, stepKey: null },
        ),
      )
  await play.set(anna, 'shadow')
  for (const verdict of ['right', 'right', 'harmful'] as const) {
    const { incidentId } = await play.propose()
    await escalate(incidentId)
    await gradeIncident(db, anna, incidentId, { callId: 'c2_0', attempt: 1, verdict, text: null })
  }
  await play.set(anna, 'act')
  const ran = await play.propose('came-back')
  await play.verify(ran.incidentId, 'held')
  await play.resolve(ran.incidentId)
  await ingestAlert(db, { ...ran.alert, status: 'resolved', endsAt: new Date().toISOString() })
  await ingestAlert(db, { ...ran.alert, startsAt: new Date(Date.now() + 1_000).toISOString() })
  await play.set(anna, 'shadow')
  shadowed = (await play.propose()).incidentId
  await escalate(shadowed)
})

async function signIn(width: number, colorScheme: 'light' | 'dark'): Promise<Watched> {
  on.page = await signedIn(on.browser, on.spine, 'approver', { viewport: { width, height: 900 }, colorScheme })
  return on.page
}

/** What the page breaks of the rules for everybody, of its width, and of ours. */
async function faults(page: Watched, width: number): Promise<string[]> {
  const { violations } = await axeOf(page).analyze()
  const wide = (await page.evaluate('document.documentElement.scrollWidth')) as number
  const found = violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 120)}`))
  return [...found, ...(wide > width ? [`${wide} pixels wide`] : []), ...page.complaints]
}

test.each(looks)(
  'at %i pixels in %s trust is a table, and each pair has its record and history',
  async (width, scheme) => {
    const page = await signIn(width, scheme)
    await page.goto(`${on.spine.url}/trust`)
    await page.getByRole('link', { name: pair.tool }).waitFor()
    await screenshot(page, `trust-${scheme}-${width}`)
    expect(await faults(page, width)).toEqual([])
    await page.getByRole('link', { name: pair.tool }).click()
    await page.getByText('automatically, after').waitFor()
    await screenshot(page, `trust-pair-${scheme}-${width}`)
    expect(await faults(page, width)).toEqual([])
  },
)

test.each(looks)('at %i pixels in %s a write in shadow is a card that people grade', async (width, scheme) => {
  const page = await signIn(width, scheme)
  await page.goto(`${on.spine.url}/incidents/${shadowed}`)
  await page.getByText('The agent would have done this without asking').waitFor()
  await screenshot(page, `trust-shadow-${scheme}-${width}`)
  expect(await faults(page, width)).toEqual([])
})

test('one press grades the cause and the card, and a level is set with the record visible', async () => {
  const page = await signIn(1440, 'light')
  await page.goto(`${on.spine.url}/incidents/${shadowed}`)
  await pressButton(page, /^Right$/)
  await page.getByRole('button', { name: 'Right', exact: true, pressed: true }).waitFor()
  await pressButton(page, /^Partly$/)
  await page.getByRole('button', { name: 'Partly', pressed: true }).waitFor()
  await page.goto(`${on.spine.url}/trust/${pair.type}~${pair.tool}`)
  await pressButton(page, /Set the level/)
  await page.getByRole('radio', { name: /^act:/ }).check()
  await page.getByLabel('Reason (recorded in the audit log)').fill('3 of 4 were right')
  await page.getByRole('dialog').getByRole('button', { name: 'Set the level' }).click()
  await eventually('the level is set', async () => {
    const [step] = await stepsOf(systemScope(on.spine.db), pair, 1)
    return step?.level === 'act' && step.by === 'approver'
  })
  expect(page.complaints).toEqual([])
})

test('one press on an incident stops its kind for the site, and Home shows the stop until a person resumes it', async () => {
  const page = await signIn(390, 'light')
  await page.goto(`${on.spine.url}/incidents/${shadowed}`)
  await page.getByText('Actions', { exact: true }).click()
  await pressButton(page, /Stop this kind/)
  await page.getByRole('radio', { name: pair.tool }).check()
  await page.getByLabel('Reason (people and the agent read it)').fill('the replicas move')
  await screenshot(page, 'stop-dialog-light-390')
  await page.getByRole('dialog').getByRole('button', { name: 'Stop this kind' }).click()
  await eventually('it is stopped', async () => (await standingStops(on.spine.db)).length === 1)
  for (const [width, scheme] of looks) {
    const home = await signIn(width, scheme)
    await home.goto(`${on.spine.url}/home`)
    await home.getByText(/converge_shard in incidents of type replication_lag, stopped by approver/).waitFor()
    await screenshot(home, `stop-home-${scheme}-${width}`)
    expect(await faults(home, width)).toEqual([])
  }
  const desk = on.page
  await pressButton(desk, /Resume/)
  await desk.getByLabel('Reason (recorded in the audit log)').fill('they moved')
  await desk.getByRole('dialog').getByRole('button', { name: 'Resume' }).click()
  await eventually('it goes on', async () => (await standingStops(on.spine.db)).length === 0)
  await desk.getByText(/stopped by approver/).waitFor({ state: 'detached' })
})

test.each(looks)(
  'at %i pixels in %s Home shows a waiting policy with what it widens, and lets an admin accept it',
  async (width, scheme) => {
    const { db } = on.spine
    const text = `version: 1\nrules:\n  - { name: start-${width}-${scheme}, tool: vm_start, resource: { kind: vm, id: vm-${width}-${scheme} }, action: run }\n`
    const read = readSitePolicy(text, toolFacts, 'c0ffee')
    if (!read.ok) throw new Error(JSON.stringify(read.faults))
    await takeSitePolicy(db, { text: read.text, compiled: read.compiled, place: 'policy.yaml', commit: 'c0ffee' })
    on.page = await signedIn(on.browser, on.spine, 'admin', { viewport: { width, height: 900 }, colorScheme: scheme })
    await on.page.goto(`${on.spine.url}/home`)
    await on.page
      .getByText(new RegExp(`A site policy waits for an admin: "start-${width}-${scheme}" .* says run`))
      .waitFor()
    await screenshot(on.page, `policy-home-${scheme}-${width}`)
    expect(await faults(on.page, width)).toEqual([])
    await pressButton(on.page, /^Accept/)
    await screenshot(on.page, `policy-accept-${scheme}-${width}`)
    await on.page.getByRole('dialog').getByRole('button', { name: 'Accept' }).click()
    await eventually('it holds', async () => (await readSitePolicies(db)).inForce?.digest === read.compiled.digest)
  },
)
