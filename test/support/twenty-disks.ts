import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import type { Spine } from './spine.ts'

type TwentyDisks = { odd: string; incidents: Incident[]; logs: IncidentEvent[][] }

/**
 * Fills one disk on each of twenty web shards, one of them with a tenant's data, which no convergence mends; then lets a
 * worker loose and waits for the twenty ends. The spine needs `LAB_WEB_SHARDS=20` and no worker yet.
 */
export async function twentyDisks(spine: Spine): Promise<TwentyDisks> {
  const shards = await spine.get<{ items: { id: string }[] }>('/resources?q=web-&kind=shard&limit=100')
  const nodes = await Promise.all(
    shards.items.map(async ({ id }) => {
      const { items } = await spine.get<{ items: { id: string }[] }>(`/shards/${id}/nodes`)
      return items[0]?.id as string
    }),
  )
  const odd = nodes[13] as string
  for (const node of nodes) await spine.lab.break(node === odd ? 'disk_pressure_tenant' : 'disk_pressure', node)
  const all = () => spine.incidents('?type=disk_pressure&limit=100')
  await spine.until('twenty incidents', async () => (await all()).length === 20)
  await spine.start('worker')
  const incidents = await spine.until(
    'twenty ends',
    async () => {
      const found = await all()
      return found.every((incident) => ['resolved', 'escalated'].includes(incident.status)) && found
    },
    240_000,
  )
  return { odd, incidents, logs: await Promise.all(incidents.map((incident) => spine.events(incident.id))) }
}

/** When a run was at work, by the times of its rows. */
export function spanOf(events: IncidentEvent[]): { from: number; to: number } {
  const end = events.findLast((event) => event.kind === 'resolved' || event.kind === 'escalated')
  return { from: Date.parse(events.find((event) => event.kind === 'claimed')?.at ?? ''), to: Date.parse(end?.at ?? '') }
}

/** The most that were at work at once. */
export function mostAtOnce(spans: { from: number; to: number }[]): number {
  return Math.max(...spans.map(({ from }) => spans.filter((other) => other.from <= from && from < other.to).length))
}
