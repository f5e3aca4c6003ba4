import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { IncidentEvent } from '../../domain/event.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine

beforeAll(async () => {
  // Twenty web shards, one full disk each: converging one mends no other.
  spine = await startSpine({
    parts: ['lab', 'runbook', 'api'],
    environment: { LAB_WEB_SHARDS: '20', RUNBOOK_DELAY_MS: '60' },
  })
}, 120_000)
afterAll(async () => {
  await spine?.stop()
})

type Span = { from: number; to: number }

/** The most that were at work at once, by the times of their rows. */
function mostAtOnce(spans: Span[]): number {
  return Math.max(...spans.map(({ from }) => spans.filter((other) => other.from <= from && from < other.to).length))
}

const spanOf = (events: IncidentEvent[]): Span => ({
  from: Date.parse(events.find((event) => event.kind === 'claimed')?.at ?? ''),
  to: Date.parse(events.findLast((event) => event.kind === 'resolved' || event.kind === 'escalated')?.at ?? ''),
})

test('twenty full disks: one leader, then at most two followers at a time, each with the hint, and none adopts it wrongly', async () => {
  await sql`insert into platform_config (key, value) values ('agent.concurrency.disk_pressure', '2')`.execute(spine.db)
  const shards = await spine.get<{ items: { id: string }[] }>('/resources?q=web-&kind=shard&limit=100')
  const all = await Promise.all(
    shards.items.map(async ({ id }) => {
      const { items } = await spine.get<{ items: { id: string }[] }>(`/shards/${id}/nodes`)
      return items[0]?.id as string
    }),
  )
  expect(all).toHaveLength(20)
  // One of the twenty has another cause: a tenant's data fills its disk.
  const odd = all[13] as string
  for (const node of all) await spine.lab.break(node === odd ? 'disk_pressure_tenant' : 'disk_pressure', node)
  await spine.until(
    'twenty alerts',
    async () => (await spine.incidents('?type=disk_pressure&limit=100')).length === 20,
    60_000,
  )
  await spine.start('worker')
  const incidents = await spine.until(
    'twenty ends',
    async () => {
      const found = await spine.incidents('?type=disk_pressure&limit=100')
      return found.every((incident) => ['resolved', 'escalated'].includes(incident.status)) && found
    },
    240_000,
  )
  const logs = await Promise.all(incidents.map((incident) => spine.events(incident.id)))
  expect(incidents.filter((incident) => incident.role === 'leader')).toHaveLength(1)
  const followers = incidents.flatMap((incident, index) =>
    incident.role === 'follower' ? [logs[index] as IncidentEvent[]] : [],
  )
  const leader = logs[incidents.findIndex((incident) => incident.role === 'leader')] as IncidentEvent[]
  const leaderEnd = spanOf(leader).to
  expect(followers.every((log) => spanOf(log).from >= leaderEnd)).toBe(true)
  expect(mostAtOnce(followers.map(spanOf))).toBeLessThanOrEqual(2)

  const odds = incidents.find((incident) => incident.resource?.id === odd)
  expect(odds?.status).toBe('escalated')
  expect(incidents.filter((incident) => incident.status === 'resolved')).toHaveLength(19)
  for (const log of followers) {
    const context = log.find((event) => event.kind === 'context_assembled')
    expect(context?.kind === 'context_assembled' && context.metadata.hintFrom).toBe(leader[0]?.incidentId)
  }
  const diverged = followers.filter((log) => log.some((event) => event.kind === 'hint_diverged'))
  if (odds?.role === 'follower') expect(diverged.map((log) => log[0]?.incidentId)).toEqual([odds.id])
}, 400_000)
