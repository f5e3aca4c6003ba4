import type { Scene } from './build.ts'
import { clusterScene } from './rows-cluster.ts'
import { nightScene } from './rows-night.ts'
import { type OrderedBy, orderedBy, ordersScene } from './rows-orders.ts'
import { planScene } from './rows-plan.ts'
import { shardScene } from './rows-shard.ts'
import { webScene } from './rows-web.ts'

/** The rows that lies and honest claims are about, by name. */
export type SceneName = 'shard' | 'web' | 'plan' | 'cluster' | 'night' | OrderedBy

export const scenes: Record<SceneName, Scene> = {
  shard: shardScene,
  web: webScene,
  plan: planScene,
  cluster: clusterScene,
  night: nightScene,
  ...(Object.fromEntries(orderedBy.map((by) => [by, ordersScene(by)])) as Record<OrderedBy, Scene>),
}
