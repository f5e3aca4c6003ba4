import type { Lab } from '../state.ts'
import type { ApiObject, ClusterApi } from './api.ts'
import type { LabCluster } from './drawer.ts'
import {
  createWorkload,
  deploymentPath,
  isWell,
  podsPath,
  volumesOf,
  type WorkloadName,
  workloads,
  writeSettings,
} from './shop.ts'

/**
 * A fault as the API describes it: names, times, revisions, and the texts that contain the reason.
 */
export type ClusterFacts = Record<string, string>

/** The code of one fault on the cluster: breaking, seeing, healing. Each part queries the API. */
export type ClusterFaultWork = {
  /** Workloads that are unhealthy while the fault lasts. */
  hits: WorkloadName[]
  breakIn(lab: Lab, cluster: LabCluster): Promise<void>
  /** Reads the fault from the API. Null if the fault is absent or not yet complete. */
  see(api: ClusterApi): Promise<ClusterFacts | null>
  /** Undoes changes outside the fault's workloads, before the workloads are renewed. */
  heal?(lab: Lab, cluster: LabCluster): Promise<void>
}

/** A workload's newest revision: its replica set and the pods of the set. */
export type Revision = { deployment: ApiObject; set: ApiObject; number: string; pods: ApiObject[] }

export async function newestRevision(api: ClusterApi, name: WorkloadName): Promise<Revision | null> {
  const { namespace } = workloads[name]
  const deployment = await api.find(deploymentPath(name))
  if (!deployment) return null
  const number = revisionOf(deployment)
  const sets = await api.list(`/apis/apps/v1/namespaces/${namespace}/replicasets?labelSelector=app%3D${name}`)
  const own = sets.filter((set) => set.metadata.ownerReferences?.[0]?.uid === deployment.metadata.uid)
  const set = own.find((each) => revisionOf(each) === number)
  // Ignores a revision from before the fault: it is the only revision, or a newer replica set has
  // replaced it although the deployment does not report this yet.
  const isOvertaken = own.some((each) => Number(revisionOf(each)) > Number(number))
  if (!set || own.length < 2 || isOvertaken) return null
  const pods = await api.list(podsPath(name))
  const isOfSet = (pod: ApiObject) => pod.metadata.ownerReferences?.[0]?.uid === set.metadata.uid
  return { deployment, set, number, pods: pods.filter(isOfSet).sort((a, b) => createdAt(b) - createdAt(a)) }
}

const revisionOf = ({ metadata }: ApiObject): string =>
  metadata.annotations?.['deployment.kubernetes.io/revision'] ?? ''
const createdAt = ({ metadata }: ApiObject): number => Date.parse(metadata.creationTimestamp)

/** Returns the facts that the API shows for every failed rollout. */
export const revisionFacts = (name: WorkloadName, { set, number }: Revision): ClusterFacts => ({
  object: name,
  revision: number,
  set: set.metadata.name,
  changedAt: set.metadata.creationTimestamp,
})

export const conditionOf = (object: ApiObject, type: string): ApiObject | undefined =>
  object?.status?.conditions?.find((each: ApiObject) => each.type === type)

/** Returns the last transition of a condition, as the API writes it. Empty without a condition. */
export const sinceOf = (object: ApiObject, type: string): string => conditionOf(object, type)?.lastTransitionTime ?? ''

export async function eventsOf(api: ClusterApi, { metadata }: ApiObject): Promise<string> {
  const query = `fieldSelector=involvedObject.uid%3D${metadata.uid}`
  const events = await api.list(`/api/v1/namespaces/${metadata.namespace}/events?${query}`)
  return events.map(({ reason, message }) => `${reason}: ${message}`).join('\n')
}

/**
 * Reads the log of a pod's container; with `previous`, the log from before the last restart. Empty
 * if there is no log.
 */
export async function logOf(api: ClusterApi, { metadata }: ApiObject, previous = false): Promise<string> {
  const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}/log?previous=${previous}`
  return await api.text(path).catch(() => '')
}

/** Returns the time of this manager's last change to an object. */
export const changedBy = ({ metadata }: ApiObject, manager: string): string =>
  metadata.managedFields?.findLast((each: ApiObject) => each.manager === manager)?.time ?? ''

/** Changes the pods of a workload in a new revision, as a release does. */
export async function rollOut(
  api: ClusterApi,
  name: WorkloadName,
  change: (pod: ApiObject, container: ApiObject) => void,
): Promise<void> {
  await api.change(
    deploymentPath(name),
    (deployment) => {
      const { spec } = deployment.spec.template
      change(spec, spec.containers[0])
    },
    'release-pipeline',
  )
}

/** Rolls out other settings of a workload: creates a ConfigMap, and a revision that names it. */
export async function rollOutSettings(api: ClusterApi, name: WorkloadName, settings: string): Promise<void> {
  const settingsName = await writeSettings(api, name, 2, settings)
  await rollOut(api, name, (pod) => {
    pod.volumes = volumesOf(name, settingsName)
  })
}

/** Removes a workload with its revisions and events, and creates it in its first state. */
export async function renew(api: ClusterApi, name: WorkloadName): Promise<void> {
  const { namespace } = workloads[name]
  await api.remove(deploymentPath(name))
  await until(async () => (await api.list(podsPath(name))).length === 0, `the pods of ${name} to be gone`)
  const isOfIt = ({ involvedObject }: ApiObject) =>
    involvedObject.name === name || involvedObject.name.startsWith(`${name}-`)
  const path = `/api/v1/namespaces/${namespace}/events`
  for (const event of (await api.list(path)).filter(isOfIt)) await api.remove(`${path}/${event.metadata.name}`)
  await api.remove(`/api/v1/namespaces/${namespace}/configmaps/${name}-settings-2`)
  await createWorkload(api, name)
  await until(async () => isWell(await api.get(deploymentPath(name))), `${name} to be healthy`)
}

/** Waits until a condition is true. Throws if it is not true in time. */
export async function until(check: () => Promise<boolean>, what: string, withinMs = 60_000): Promise<void> {
  for (const end = Date.now() + withinMs; !(await check()); ) {
    if (Date.now() > end) throw new Error(`waited ${withinMs / 1000} s for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}
