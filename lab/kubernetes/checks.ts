import type { Fault, Lab } from '../state.ts'
import { clusterFaultWork } from './fault-work.ts'
import { type ClusterFault, clusterFaultRows, isClusterFault } from './faults.ts'
import { unwellIn } from './shop.ts'
import type { ClusterFacts } from './work.ts'

type Check = { name: string; ok: boolean; detail: string }

/** What stays as it was until a person acts; pods come and go. */
const lasting = ['object', 'revision', 'set', 'change', 'changedAt', 'since', 'claim', 'webhook', 'manager']
/** Times that change while the fault lasts: pressure goes and comes. */
const renewed: Partial<Record<ClusterFault, string[]>> = { k8s_disk_pressure: ['since'] }

/**
 * Whether it ended well: no tool repairs it, so the fault stands as the API showed it, for a
 * person, and nobody changed its objects.
 */
export async function checkClusterFault(lab: Lab, { fault, cluster: before }: Fault): Promise<Check[]> {
  if (!lab.cluster || !before || !isClusterFault(fault))
    return [{ name: 'the fault was broken in whole', ok: false, detail: 'it has no facts' }]
  const { on } = clusterFaultRows[fault]
  const now = await clusterFaultWork[fault].see(lab.cluster.api)
  if (now === null) {
    // Pressure ends between two evictions; the change that makes it stands.
    if (fault === 'k8s_disk_pressure') return []
    return [{ name: `${on} shows the fault, which a person ends`, ok: false, detail: 'it does not show any more' }]
  }
  const differing = lasting.filter((key) => !renewed[fault]?.includes(key) && now[key] !== before[key])
  return [
    { name: `${on} shows the fault, which a person ends`, ok: true, detail: describe(now) },
    {
      name: `nobody changed what ${on} is`,
      ok: differing.length === 0,
      detail: differing.map((key) => `${key} is ${now[key]}, was ${before[key]}`).join('; ') || 'so it is',
    },
  ]
}

/** What the API says of a fault: what, since when, by which change, and why. */
function describe({ object, since, change, set, why }: ClusterFacts): string {
  const by = change ? `, by ${change}${set ? ` in ${set}` : ''}` : ''
  return `${object} since ${since}${by}: ${why}`
}

/** Checks that the cluster is well where no fault stands; empty where there is no cluster. */
export async function checkCluster(lab: Lab): Promise<Check[]> {
  if (!lab.cluster) return []
  const hit = lab.faults.flatMap(({ fault }) => (isClusterFault(fault) ? clusterFaultWork[fault].hits : []))
  const unwell = (await unwellIn(lab.cluster.api)).filter((each) => !hit.some((name) => each.includes(`/${name} `)))
  return [
    {
      name: 'every other workload of the cluster is well',
      ok: unwell.length === 0,
      detail: unwell.join('; ') || 'so it is',
    },
  ]
}
