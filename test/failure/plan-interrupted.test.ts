import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { Approval } from '../../domain/approval.ts'
import type { Incident } from '../../domain/incident.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'] })
}, 300_000)
afterAll(async () => {
  await spine?.stop()
})

const isOver = ({ status }: Incident) => ['resolved', 'escalated'].includes(status)
const ended = (host: string) =>
  spine.until(
    `the end of ${host}`,
    async () => (await spine.incidents()).find((incident) => incident.resource?.id === host && isOver(incident)),
    240_000,
  )

async function approve(approval: Approval): Promise<void> {
  const as = { token: spine.tokens.approver }
  const { body } = await spine.post(`/approvals/${approval.id}/token`, { decision: 'approve' }, as)
  await spine.post(`/approvals/${approval.id}/decision`, { decision: 'approve', token: body.token }, as)
}

test('the API is killed while a plan is carried out: it goes on when the API is back, and no VM moves twice', async () => {
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
  const moves = (await spine.lab.effects()).filter(({ request }) => request.includes('/migrate '))
  expect(moves.length).toBeGreaterThan(1)
  expect(new Set(moves.map(({ request }) => request)).size).toBe(moves.length)
  expect(moves.every(({ runs }) => runs === 1)).toBe(true)
  const rows = (await spine.events(asked.incidentId)).filter(({ kind }) => kind === 'step_finished')
  expect(rows).toHaveLength(moves.length)
  await spine.lab.heal()
}, 400_000)

test('a host dies while its plan waits for a person: that plan is never carried out, and another is asked about', async () => {
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
  const started = (await spine.lab.effects()).filter(({ request }) => request.includes('/start '))
  expect(started).toEqual([])
}, 400_000)
