import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { IncidentEvent } from '../../domain/event.ts'
import { fullDisks, mostAtOnce, spanOf } from '../support/shard-platform.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine

beforeAll(async () => {
  spine = await startSpine({
    parts: ['lab', 'runbook', 'api'],
    environment: { LAB_WEB_SHARDS: '20', LAB_PROBE_INTERVAL_MS: '1500', RUNBOOK_DELAY_MS: '60' },
  })
})
afterAll(async () => {
  await spine?.stop()
})

test('twenty full disks: one leader, then at most two followers at a time, each with its hint, and no wrong hint is adopted', async () => {
  await sql`insert into platform_config (key, value) values ('agent.concurrency.disk_pressure', '2')`.execute(spine.db)
  const { odd, incidents, logs } = await fullDisks(spine, [13])
  const of = (role: string) =>
    incidents.flatMap((incident, index) => (incident.role === role ? [logs[index] as IncidentEvent[]] : []))
  const [leader, ...others] = of('leader')
  const followers = of('follower')
  expect(others).toEqual([])
  expect(followers).toHaveLength(19)

  const leaderEnd = spanOf(leader as IncidentEvent[]).to
  expect(followers.every((log) => spanOf(log).from >= leaderEnd)).toBe(true)
  expect(mostAtOnce(followers.map(spanOf))).toBe(2)
  for (const log of followers) {
    const context = log.find((event) => event.kind === 'context_assembled')
    expect(context?.kind === 'context_assembled' && context.metadata.hintFrom).toBe(leader?.[0]?.incidentId)
  }

  const different = incidents.find((incident) => incident.resource?.id === odd[0])
  expect(different).toMatchObject({ status: 'escalated', role: 'follower' })
  expect(incidents.filter((incident) => incident.status === 'resolved')).toHaveLength(19)
  const diverged = followers.filter((log) => log.some((event) => event.kind === 'hint_diverged'))
  expect(diverged.map((log) => log[0]?.incidentId)).toEqual([different?.id])
  expect(followers.filter((log) => log.some((event) => event.kind === 'hint_confirmed'))).toHaveLength(18)
})
