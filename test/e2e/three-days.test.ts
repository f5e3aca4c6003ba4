import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import pino from 'pino'
import { actActivities } from '../../activities/act.ts'
import { approvalActivities } from '../../activities/approvals.ts'
import { contextActivities } from '../../activities/context.ts'
import { sanitizeFailures } from '../../activities/failures.ts'
import { servedModels } from '../../activities/served-models.ts'
import { thinkActivities } from '../../activities/think.ts'
import { createCoreClient } from '../../clients/core.ts'
import { createModelClient } from '../../clients/model.ts'
import { eventsOf } from '../../db/log/events.ts'
import type { Approval } from '../../domain/approval.ts'
import { runbookServer } from '../../lab/runbook/server.ts'
import { readPrompts } from '../../prompts/render.ts'
import { useApi } from '../support/api.ts'
import { moveClock, openedIncident } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'
import { useTemporal } from '../support/temporal.ts'

const threeDaysMs = 3 * 86_400_000
const platform = scriptedPlatform()
const core = useApi(() => ({ platform }))
const temporal = useTemporal({ timeSkipping: true })
let server: ReturnType<typeof serve>
let model: Server
let activities: Record<string, (...args: never[]) => Promise<unknown>>

beforeAll(async () => {
  server = serve({ fetch: core.api.app.fetch, port: 0, hostname: '127.0.0.1' })
  model = runbookServer(0)
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve))
  const url = (of: { address(): unknown }) => `http://127.0.0.1:${(of.address() as AddressInfo).port}`
  if (!server.listening) await once(server, 'listening')
  const deps = {
    db: core.db,
    environment: {},
    core: createCoreClient({ baseUrl: url(server as never), apiKey: core.tokens.agent }),
  }
  const log = pino({ level: 'silent' })
  activities = {
    ...sanitizeFailures(
      contextActivities({ ...deps, prompts: readPrompts(), protocol: 'native', model: 'runbook-rules' }),
      log,
    ),
    ...sanitizeFailures(actActivities(deps), log),
    ...sanitizeFailures(approvalActivities(deps), log),
    ...sanitizeFailures(
      thinkActivities({
        db: core.db,
        models: [
          {
            name: 'default',
            model: 'runbook-rules',
            fallbacks: [],
            client: createModelClient({ baseUrl: url(model), apiKey: '' }),
            served: servedModels(core.db, { baseUrl: url(model), apiKey: '' }, log),
          },
        ],
        temperature: 0,
        maxTokens: 500,
        contextTokens: 16_000,
      }),
      log,
    ),
  } as never
  await sql`insert into platform_config (key, value) values ('approval.expiry.execute_migration', '604800')`.execute(
    core.db,
  )
})
afterAll(() => {
  server.close()
  model.close()
})

const dead = 'host-osl-1'
beforeEach(async () => {
  await moveClock(core.owner, '0 days')
  Object.assign(platform, { begun: [] })
  platform.inventoryState = scriptedPlatform().inventoryState
  const fenced = { by: 'its power switch', at: null }
  for (const host of platform.inventoryState.hosts) if (host.id === dead) Object.assign(host, { state: 'dead', fenced })
  for (const vm of platform.inventoryState.vms) if (vm.host === dead) vm.running = false
  await core.get('/hosts')
})

/**
 * Runs an investigation of the dead host up to its question, lets three days pass on both clocks,
 * and approves.
 */
async function approvedAfterThreeDays(meanwhile: () => void = () => {}) {
  const incidentId = await openedIncident(core.db, {
    name: 'host_down',
    labels: { host: dead },
    title: `Host ${dead} is down`,
  })
  const pending = async () => {
    const { body } = await core.get('/approvals?status=pending')
    return (body.items as unknown as Approval[]).find((approval) => approval.incidentId === incidentId)
  }
  await temporal.working(activities, async (taskQueue) => {
    const handle = await temporal.client.workflow.start('InvestigateIncident', {
      workflowId: `investigate:${incidentId}:1`,
      taskQueue,
      args: [{ incidentId, attempt: 1, role: 'leader', groupId: `grp_${incidentId}`, group: 'none' }],
    })
    const first = await eventually('the question', pending)
    // The question is a row a moment before its run waits for the answer.
    await eventually('the run to wait', async () => {
      const { events } = await handle.fetchHistory()
      return events?.at(-1)?.timerStartedEventAttributes
    })
    await moveClock(core.owner, '3 days')
    await temporal.skip(threeDaysMs)
    meanwhile()
    // A read counts as current for a quarter of a second, and these three days take less.
    core.api.deps.state.forget()
    await approve(first.id)
    await handle.signal('decided')
    if ((await core.get(`/approvals/${first.id}`)).body.status !== 'consumed') {
      const next = await eventually('the end, or another question', async () => {
        const { status, category } = (await core.get(`/incidents/${incidentId}`)).body
        if (status === 'escalated' && category !== 'mitigated') {
          const rows = (await eventsOf(core.db, incidentId)).slice(-5).map(({ kind, metadata }) => ({ kind, metadata }))
          throw new Error(`it was escalated: ${JSON.stringify(rows)}`)
        }
        const again = await pending()
        return status === 'escalated' ? 'ended' : again?.id !== first.id && again
      })
      if (next !== 'ended') {
        await approve(next.id)
        await handle.signal('decided')
      }
    }
    await handle.result()
  })
  return { incidentId, events: await eventsOf(core.db, incidentId) }
}

async function approve(approvalId: string): Promise<void> {
  const { body } = await core.post(`/approvals/${approvalId}/token`, {
    as: core.tokens.approver,
    body: { decision: 'approve' },
  })
  const decided = await core.post(`/approvals/${approvalId}/decision`, {
    as: core.tokens.approver,
    body: { decision: 'approve', token: body.token },
  })
  expect(decided.status).toBe(200)
}

test('an approval that waited three days still works, and its target is read afresh before the write', async () => {
  const { incidentId, events } = await approvedAfterThreeDays()
  expect((await core.get(`/incidents/${incidentId}`)).body).toMatchObject({
    status: 'escalated',
    category: 'mitigated',
  })
  const judged = events.filter((event) => event.kind === 'call_judged' && event.metadata.tool === 'execute_migration')
  expect(judged.map((event) => event.kind === 'call_judged' && event.metadata.code)).toEqual(['RISK_HIGH', 'APPROVED'])
  const [asked, decided] = ['approval_requested', 'approval_decided'].map((kind) =>
    events.find((event) => event.kind === kind),
  )
  expect(Date.parse(decided?.at ?? '') - Date.parse(asked?.at ?? '')).toBeGreaterThan(threeDaysMs - 60_000)
  expect(platform.begun.length).toBeGreaterThan(0)
  expect(new Set(platform.begun).size).toBe(platform.begun.length)
})

test('if the platform changed in those three days, the approval is withdrawn and asked again for the current state', async () => {
  const { events } = await approvedAfterThreeDays(() => {
    for (const host of platform.inventoryState.hosts) if (host.id !== dead) host.ramMib += 1_024
  })
  const judged = events.filter((event) => event.kind === 'call_judged' && event.metadata.tool === 'execute_migration')
  expect(judged.map((event) => event.kind === 'call_judged' && event.metadata.code)).toEqual([
    'RISK_HIGH',
    'DRIFT',
    'APPROVED',
  ])
  expect(events.find((event) => event.kind === 'approval_withdrawn')).toBeDefined()
  const asked = events.filter((event) => event.kind === 'approval_requested')
  expect(asked[1]).toMatchObject({
    metadata: { replaces: asked[0]?.kind === 'approval_requested' && asked[0].metadata.approvalId },
  })
  expect(new Set(platform.begun).size).toBe(platform.begun.length)
})
