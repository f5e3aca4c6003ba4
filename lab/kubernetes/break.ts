import { setTimeout as sleep } from 'node:timers/promises'
import { type Fault, type Lab, WrongTarget } from '../state.ts'
import type { LabCluster } from './drawer.ts'
import { clusterFaultWork } from './fault-work.ts'
import { type ClusterFault, clusterFaultRows, isClusterFault } from './faults.ts'
import { unwellIn } from './shop.ts'
import { type ClusterFacts, renew, until } from './work.ts'

/** The most milliseconds until a fault shows in the API. */
const visibleMs = 120_000

/**
 * Breaks one fault in, and returns when the API shows the fault. If the fault is impossible, undoes
 * the partial changes and throws WrongTarget.
 */
export async function breakCluster(
  lab: Lab,
  name: ClusterFault,
  target: string,
): Promise<{ on: string; cluster: ClusterFacts }> {
  const { on } = clusterFaultRows[name]
  const { cluster } = lab
  if (!cluster)
    throw new WrongTarget(`${name} needs a cluster, and none runs: start one with "nightshift lab --kubernetes"`)
  if (target !== on) throw new WrongTarget(`${name} can be broken on ${on} only, not on ${target}`)
  const work = clusterFaultWork[name]
  const unwell = await unwellIn(cluster.api)
  const hit = unwell.find((each) => work.hits.some((workload) => each.includes(`/${workload} `)))
  if (hit || (await work.see(cluster.api))) throw new WrongTarget(`this object is unhealthy already: ${hit ?? on}`)
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
    if (Date.now() > end) throw new WrongTarget(`${name} cannot be seen in the API after ${visibleMs / 1_000} s`)
  }
}

/** Undoes a fault: removes its workloads and creates them in their first revision again. */
export async function healCluster(lab: Lab, { fault }: Fault): Promise<void> {
  if (lab.cluster && isClusterFault(fault)) await undo(lab, lab.cluster, fault)
}

async function undo(lab: Lab, cluster: LabCluster, name: ClusterFault): Promise<void> {
  const { heal, hits, see } = clusterFaultWork[name]
  await heal?.(lab, cluster)
  for (const workload of hits) await renew(cluster.api, workload)
  await until(async () => (await see(cluster.api)) === null, `${name} to be gone`)
}
