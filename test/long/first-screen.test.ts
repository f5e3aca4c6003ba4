import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { Browser } from 'playwright-core'
import { append } from '../../db/log/append.ts'
import type { Approval } from '../../domain/approval.ts'
import type { ServedBrief } from '../../domain/brief.ts'
import { agentActor } from '../../domain/event.ts'
import { enrolLab } from '../../start/lab-devices.ts'
import { ensureMeshKeys } from '../../start/mesh-keys.ts'
import { firstScreen, screenshot, signedIn } from '../support/browser.ts'
import { launch } from '../support/chromium.ts'
import { claimedIncident } from '../support/database.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type Spine, startSpine } from '../support/spine.ts'

const keys = temporaryDirectory()
let spine: Spine
let browser: Browser

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'], environment: ensureMeshKeys(keys.path) })
  browser = await launch()
  await enrolLab(spine.url, spine.tokens.admin, spine.lab)
})
afterAll(async () => {
  await browser?.close()
  await spine?.stop()
  keys.remove()
})

/** Faults of the lab whose repair a person is asked about, with an existing target. */
const waits = [
  // What a person has is not investigated when its alert comes back: each fault is at a place that
  // none before it had.
  ['step_fails', 'host-osl-1'],
  ['host_down', 'host-ams-1'],
  ['drain', 'host-osl-3'],
  ['rack_down', 'ams-r2'],
  ['runaway_process', 'web-osl-1'],
  ['bad_deploy', 'web-osl-1'],
  ['full_log', 'web-osl-1'],
  ['missing_package', 'web-osl-1'],
  ['port_squatter', 'web-osl-1'],
] as const

/**
 * A fault may open several incidents: once the first is escalated, the next of its group asks, and
 * waits in its turn.
 */
async function endAll(): Promise<void> {
  await spine.until('every incident to be escalated', async () => {
    const open = (await spine.incidents()).filter(({ status }) => !['resolved', 'escalated'].includes(status))
    for (const { id } of open) await spine.post(`/incidents/${id}/escalate`, { reason: 'the next fault is tried' })
    return open.length === 0
  })
}

test.each(waits)(
  'the first screen of %s at %s answers what, since when, why, what is asked and the consequences of each answer, on a desktop and on a phone',
  async (fault, target) => {
    await spine.lab.break(fault, target)
    const { id, incidentId } = await spine.pendingApproval()
    for (const viewport of [
      { width: 1440, height: 900 },
      { width: 390, height: 844 },
    ]) {
      const page = await signedIn(browser, spine, 'approver', { viewport })
      await page.goto(`${spine.url}/incidents/${incidentId}`)
      const seen = await firstScreen(page)
      await screenshot(page, `first-${fault}-${viewport.width}`)
      if (viewport.width === 1440) console.log(JSON.stringify({ fault, ...seen.answers }, null, 1))
      expect(seen).toMatchObject({ missing: [], below: [] })
      expect(Object.values(seen.answers).join(' ')).not.toMatch(/[{}]/)
      expect(page.complaints).toEqual([])
      await page.context().close()
    }
    await endAll()
    await spine.turnThePage()
    expect((await spine.get<Approval>(`/approvals/${id}`)).status).not.toBe('pending')
  },
)

/** Turns of a model that looked again and again, as a run without limits would leave them. */
async function longLog(turns: number): Promise<string> {
  const id = await claimedIncident(spine.db, { title: 'A long story' })
  const target = { kind: 'node' as const, id: 'web-1' }
  const about = { resourceKind: target.kind, resourceId: target.id }
  await spine.owner.updateTable('incident').set(about).where('id', '=', id).execute()
  const filler = 'nothing new '.repeat(80)
  for (let from = 1; from <= turns; from += 250) {
    await spine.db.transaction().execute(async (trx) => {
      for (let turn = from; turn < from + 250 && turn <= turns; turn++) {
        await append(trx, id, 1, {
          kind: 'model_answered',
          actor: agentActor,
          detail: `Answer ${turn}`,
          turn,
          metadata: {
            content: `Look ${turn}. ${filler}`,
            body: null,
            calls: [],
            final: null,
            problem: null,
            model: 'm',
            usage: { promptTokens: 10, completionTokens: 1 },
            finishReason: 'stop',
            durationMs: 1,
          },
        })
        await append(trx, id, 1, {
          kind: 'tool_finished',
          actor: agentActor,
          detail: 'Called tool: get_node',
          turn,
          metadata: {
            callId: `c${turn}_0`,
            tool: 'get_node',
            arguments: { id: 'web-1' },
            effect: 'read',
            targets: [target],
            outcome: 'done',
            result: { ok: true, data: { filler }, meta: {} },
            body: null,
            durationMs: 4,
            discovered: [{ ...target, name: 'web-1', aliases: [], seen: true, health: 'degraded' }],
            said: `web-1 is degraded: ${turn} s behind`,
          },
        })
      }
    })
  }
  return id
}

test('the page of an incident with ten thousand rows gets its end, and each of its rows is found', async () => {
  const turns = 5_000
  const id = await longLog(turns)
  const page = await signedIn(browser, spine)
  const { resource, spent } = await spine.get<ServedBrief>(`/incidents/${id}/brief`)
  expect(resource?.text).toBe(`web-1 is degraded: ${turns} s behind`)
  expect(spent).toMatchObject({ turns, tokens: 11 * turns })
  /** How many rows the page has asked for. */
  let rows = 0
  page.on('request', (request) => {
    const { pathname, searchParams } = new URL(request.url())
    if (pathname.endsWith('/events')) rows += Number(searchParams.get('limit'))
  })
  await page.goto(`${spine.url}/incidents/${id}`)
  await page.locator('.answer').getByText(`${turns} s behind`).waitFor()
  await page.locator('.turns').getByText(`Turn ${turns}`, { exact: true }).waitFor()
  // All of them took seconds.
  expect([rows > 0, rows <= 2_000]).toEqual([true, true])
  await screenshot(page, 'ten-thousand-1440')
  await page.getByRole('button', { name: 'Show 1000 earlier rows' }).click()
  await page.getByText('8001 are not shown.').waitFor()
  await page.goto(`${spine.url}/incidents/${id}#e-40`)
  await page.locator('#e-40').and(page.locator('[aria-current=true]')).waitFor()
  expect(page.complaints).toEqual([])
  await page.context().close()
})
