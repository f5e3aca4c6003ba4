import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { waitOf } from '../../db/incidents/waits.ts'
import type { Approval } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import { type Spine, startSpine } from '../support/spine.ts'

/**
 * Two minutes by hand (`MODEL_DOWN_SECONDS=120 npm test -- test/failure/parts-away`); else as long
 * as two tries take.
 */
const downMs = Number(process.env.MODEL_DOWN_SECONDS ?? '0') * 1000
let spine: Spine

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'] })
})
afterAll(async () => {
  await spine?.stop()
})

test('a model that is down for a while delays the investigation: each attempt is a row, and it continues', async () => {
  await spine.kill('runbook')
  await spine.lab.break('service_down', 'web-osl-1')
  const incident = await spine.incident('service_down', 'investigating')
  const failures = async () => (await spine.events(incident.id)).filter((event) => event.kind === 'model_failed')
  await sleep(downMs)
  await spine.until('two tries', async () => (await failures()).length >= 2)
  expect((await spine.incident('service_down')).status).toBe('investigating')
  await spine.start('runbook')
  await spine.incident('service_down', 'resolved')
  expect((await failures())[0]).toMatchObject({ metadata: { code: 'unavailable' } })
  await spine.turnThePage()
})

/**
 * What the run itself wrote: alerts come when they come, and what is noted about a repair that is
 * watched is noted later.
 */
const ownSteps = (events: IncidentEvent[]) =>
  events
    .filter(({ kind }) => !kind.startsWith('alert') && kind !== 'noted')
    .map(({ kind, metadata }) => `${kind} ${(metadata as { tool?: string }).tool ?? ''}`)

test('a core API that is away for 20 s during an investigation does not change its end', async () => {
  await spine.lab.break('replication_lag', 'db-osl-1')
  const { id } = await spine.incident('replication_lag', 'investigating')
  await spine.kill('api')
  const waits = await spine.until('the step to say what it waits for', () => waitOf(spine.db, id))
  expect(waits).toMatchObject({ for: 'core_api' })
  // Temporal shows it as soon as the SDK sends the next beat.
  const awayFor = sleep(20_000)
  await spine.until('the heartbeat to say the same', async () => {
    const { pendingActivities } = (await spine.client.workflow.getHandle(`investigate:${id}:1`).describe()).raw
    const beats = (pendingActivities ?? []).flatMap(({ heartbeatDetails }) => heartbeatDetails?.payloads ?? [])
    return beats.some(({ data }) => Buffer.from(data ?? []).includes('core_api'))
  })
  await awayFor
  await spine.start('api')
  await spine.incident('replication_lag', 'resolved')
  const events = await spine.events(id)
  expect(events.filter((event) => JSON.stringify(event.metadata).includes('UNANSWERED'))).toEqual([])
  const converged = (await spine.effects()).filter(({ request }) => request.includes('converge'))
  expect(converged).toMatchObject([{ runs: 1 }])
  // The same steps as those of an incident whose core API was there.
  await spine.turnThePage()
  await spine.lab.break('replication_lag', 'db-ams-1')
  const undisturbed = await spine.incident('replication_lag', 'resolved')
  expect(ownSteps(events)).toEqual(ownSteps(await spine.events(undisturbed.id)))
  expect(await spine.get(`/incidents/${id}`)).toMatchObject({ waits: null })
  await spine.turnThePage()
})

const isOver = ({ status }: Incident) => ['resolved', 'escalated'].includes(status)
const ended = (host: string) =>
  spine.until(`the end of ${host}`, async () =>
    (await spine.incidents()).find((incident) => incident.resource?.id === host && isOver(incident)),
  )

async function approve(approval: Approval): Promise<void> {
  const as = { token: spine.tokens.approver }
  const { body } = await spine.post(`/approvals/${approval.id}/token`, { decision: 'approve' }, as)
  await spine.post(`/approvals/${approval.id}/decision`, { decision: 'approve', token: body.token }, as)
}

test('the API is killed during a plan: the plan continues when the API is back, and no VM moves twice', async () => {
  await spine.lab.break('drain', 'host-osl-3')
  const asked = await spine.pendingApproval()
  await approve(asked)
  await spine.until('the first step to begin', async () =>
    (await spine.events(asked.incidentId)).some(({ kind }) => kind === 'step_started'),
  )
  await spine.kill('api')
  await spine.start('api')
  expect(await ended('host-osl-3')).toMatchObject({ status: 'resolved' })
  expect(await spine.lab.oracle('drain', 'host-osl-3')).toMatchObject({ healthy: true })
  const moves = (await spine.effects()).filter(({ request }) => request.includes('/migrate '))
  expect(moves.length).toBeGreaterThan(1)
  expect(new Set(moves.map(({ request }) => request)).size).toBe(moves.length)
  expect(moves.every(({ runs }) => runs === 1)).toBe(true)
  const rows = (await spine.events(asked.incidentId)).filter(({ kind }) => kind === 'step_finished')
  expect(rows).toHaveLength(moves.length)
  await spine.turnThePage()
})

test('a host dies while its plan waits for a person: this plan is never carried out, and another is asked about', async () => {
  await spine.lab.break('host_down', 'host-ams-1')
  const first = await spine.pendingApproval()
  const target = (first.dryRun.details.steps as { to: string }[])[0]?.to as string
  await spine.lab.break('host_down', target)
  await spine.until('the loss to be known', async () =>
    (await spine.get<{ items: { id: string; state: string }[] }>('/hosts')).items.some(
      ({ id, state }) => id === target && state === 'dead',
    ),
  )
  await approve(first)
  const second = await spine.until('another question', async () =>
    (await spine.get<{ items: Approval[] }>('/approvals?status=pending')).items.find(({ id }) => id !== first.id),
  )
  expect((second.dryRun.details.steps as { to: string }[]).map(({ to }) => to)).not.toContain(target)
  const started = (await spine.effects()).filter(({ request }) => request.includes('/start '))
  expect(started).toEqual([])
})
