import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine

beforeAll(async () => {
  spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'worker'],
    environment: { WATCHDOG_INTERVAL_SECONDS: '0.5' },
  })
}, 300_000)
afterAll(async () => {
  await spine?.stop()
})

test('two incidents that want the very same action ask once; the second learns what was decided and does nothing twice', async () => {
  await sql`insert into platform_config (key, value) values ('agent.leader_wait', '0')`.execute(spine.db)
  await spine.lab.break('host_down', 'host-osl-1')
  const approval = await spine.pendingApproval()
  // A second source tells of the same host.
  await spine.post(
    '/ingest/generic',
    {
      summary: 'host-osl-1 does not answer',
      severity: 'critical',
      dedup: 'second',
      name: 'host_down',
      labels: { host: 'host-osl-1' },
    },
    { token: spine.tokens.ingest },
  )
  const second = await spine.until('the second to wait', async () =>
    (await spine.incidents('?type=host_down')).find(
      (each) => each.id !== approval.incidentId && each.status === 'awaiting_approval',
    ),
  )
  // Several rounds of the watchdog: it is waiting, not lost.
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  expect((await spine.get<{ items: unknown[] }>('/approvals?status=pending')).items).toHaveLength(1)
  expect(await spine.get(`/incidents/${second.id}`)).toMatchObject({ status: 'awaiting_approval' })

  const minted = await spine.post(
    `/approvals/${approval.id}/token`,
    { decision: 'approve' },
    { token: spine.tokens.approver },
  )
  await spine.post(
    `/approvals/${approval.id}/decision`,
    { decision: 'approve', token: minted.body.token },
    { token: spine.tokens.approver },
  )
  await spine.until('both ends', async () =>
    (await spine.incidents('?type=host_down')).every((each) => ['resolved', 'escalated'].includes(each.status)),
  )
  const events = await spine.events(second.id)
  expect(events.filter((event) => event.kind === 'approval_requested')).toEqual([])
  expect(events.filter((event) => event.kind === 'tool_started' && event.metadata.effect === 'write')).toEqual([])
  expect(events.flatMap((event) => (event.kind === 'call_judged' ? [event.metadata.code] : []))).toContain(
    'DECIDED_ELSEWHERE',
  )
  expect(
    (await spine.lab.effects())
      .filter((effect) => effect.request.includes('/vms/'))
      .every((effect) => effect.runs === 1),
  ).toBe(true)
}, 300_000)
