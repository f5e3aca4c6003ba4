import { setTimeout as sleep } from 'node:timers/promises'
import { type Fault, type Lab, WrongTarget } from '../state.ts'
import type { LabCluster } from './drawer.ts'
import { clusterFaultWork } from './fault-work.ts'
import { type ClusterFault, clusterFaultRows, isClusterFault } from './faults.ts'
import { unwellIn } from './shop.ts'
import { type ClusterFacts, renew, until } from './work.ts'

/** How long a fault may take to show in the API. */
const visibleMs = 120_000

/**
 * Breaks one in and answers once the API shows it. Throws WrongTarget where that is impossible, and
 * takes back what it began.
 */
export async function breakCluster(
  lab: Lab,
  name: ClusterFault,
  target: string,
): Promise<{ on: string; cluster: ClusterFacts }> {
  const { on } = clusterFaultRows[name]
  const { cluster } = lab
  if (!cluster)
    throw new WrongTarget(`there is no cluster to break ${name} in: "nightshift lab --kubernetes" starts one`)
  if (target !== on) throw new WrongTarget(`${name} is broken on ${on}, not on ${target}`)
  const work = clusterFaultWork[name]
  const unwell = await unwellIn(cluster.api)
  const hit = unwell.find((each) => work.hits.some((workload) => each.includes(`/${workload} `)))
  if (hit || (await work.see(cluster.api))) throw new WrongTarget(`it is not well already: ${hit ?? on}`)
  try {
    await work.breakIn(lab, cluster)
    return { on, cluster: await untilSeen(cluster, name) }
  } catch (error) {
    await undo(lab, cluster, name).catch(() => undefined)
    throw error
  }
}

async function untilSeen({ api }: LabCluster, name: ClusterFault): Promise<ClusterFacts> {
  for (const end = Date.now() + visibleMs; ; await sleep(300)) {
    const seen = await clusterFaultWork[name].see(api)
    if (seen) return seen
    if (Date.now() > end) throw new WrongTarget(`${name} does not show in the API after ${visibleMs / 1_000} s`)
  }
}

/** Takes one back: the workloads that it hit are removed and made in their first revision. */
export async function healCluster(lab: Lab, { fault }: Fault): Promise<void> {
  if (lab.cluster && isClusterFault(fault)) await undo(lab, lab.cluster, fault)
}

async function undo(lab: Lab, cluster: LabCluster, name: ClusterFault): Promise<void> {
  const { heal, hits, see } = clusterFaultWork[name]
  await heal?.(lab, cluster)
  for (const workload of hits) await renew(cluster.api, workload)
  await until(async () => (await see(cluster.api)) === null, `${name} to be gone`)
}
