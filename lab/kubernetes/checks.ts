import type { Fault, Lab } from '../state.ts'
import { clusterFaultWork } from './fault-work.ts'
import { type ClusterFault, clusterFaultRows, isClusterFault } from './faults.ts'
import { unwellIn } from './shop.ts'
import type { ClusterFacts } from './work.ts'

type Check = { name: string; ok: boolean; detail: string }

/** Facts that do not change until a person acts. Facts about pods change by themselves. */
const lasting = ['object', 'revision', 'set', 'change', 'changedAt', 'since', 'claim', 'webhook', 'manager']
/** Times that change while a fault lasts. Disk pressure, for example, ends and returns. */
const renewed: Partial<Record<ClusterFault, string[]>> = { k8s_disk_pressure: ['since'] }

/**
 * Checks for a good end. No tool repairs a cluster fault, so the API must still show the fault as
 * before, and nobody may have changed its objects.
 */
export async function checkClusterFault(lab: Lab, { fault, cluster: before }: Fault): Promise<Check[]> {
  if (!lab.cluster || !before || !isClusterFault(fault))
    return [{ name: 'the fault was caused completely', ok: false, detail: 'its first state was not recorded' }]
  const { on } = clusterFaultRows[fault]
  const now = await clusterFaultWork[fault].see(lab.cluster.api)
  if (now === null) {
    // Accepts an absent fault: pressure ends between two evictions, but its cause remains.
    if (fault === 'k8s_disk_pressure') return []
    return [
      { name: `${on} still has the fault, which only a person may repair`, ok: false, detail: 'the fault is gone' },
    ]
  }
  const differing = lasting.filter((key) => !renewed[fault]?.includes(key) && now[key] !== before[key])
  return [
    { name: `${on} still has the fault, which only a person may repair`, ok: true, detail: describe(now) },
    {
      name: `nobody changed ${on}`,
      ok: differing.length === 0,
      detail: differing.map((key) => `${key} is ${now[key]}, was ${before[key]}`).join('; ') || 'unchanged',
    },
  ]
}

/** Describes a fault as the API shows it: the object, its start, the change, and the reason. */
function describe({ object, since, change, set, why }: ClusterFacts): string {
  const by = change ? `, by ${change}${set ? ` in ${set}` : ''}` : ''
  return `${object} since ${since}${by}: ${why}`
}

/** Checks that all workloads that no fault hits are healthy. Empty if the lab has no cluster. */
export async function checkCluster(lab: Lab): Promise<Check[]> {
  if (!lab.cluster) return []
  const hit = lab.faults.flatMap(({ fault }) => (isClusterFault(fault) ? clusterFaultWork[fault].hits : []))
  const unwell = (await unwellIn(lab.cluster.api)).filter((each) => !hit.some((name) => each.includes(`/${name} `)))
  return [
    {
      name: 'every other workload of the cluster is healthy',
      ok: unwell.length === 0,
      detail: unwell.join('; ') || 'all healthy',
    },
  ]
}
