import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ApiObject, ClusterApi } from '../../../lab/kubernetes/api.ts'
import { type ClusterFault, clusterFaultRows } from '../../../lab/kubernetes/faults.ts'

/**
 * Writes what the real API of the lab's cluster answers about a fault into `test/data/kubernetes`,
 * from where a stand-in serves it in every run.
 */

const directory = join(import.meta.dirname, '../../data/kubernetes')

const listsOf = (namespace: string): Record<string, string> => ({
  Pod: `/api/v1/namespaces/${namespace}/pods`,
  Service: `/api/v1/namespaces/${namespace}/services`,
  ConfigMap: `/api/v1/namespaces/${namespace}/configmaps`,
  PersistentVolumeClaim: `/api/v1/namespaces/${namespace}/persistentvolumeclaims`,
  ResourceQuota: `/api/v1/namespaces/${namespace}/resourcequotas`,
  Event: `/api/v1/namespaces/${namespace}/events`,
  Deployment: `/apis/apps/v1/namespaces/${namespace}/deployments`,
  ReplicaSet: `/apis/apps/v1/namespaces/${namespace}/replicasets`,
  Job: `/apis/batch/v1/namespaces/${namespace}/jobs`,
})

/**
 * A fault's recording: what the oracle read of it, the objects by kind, and what containers wrote.
 */
export type Recorded = {
  facts: Record<string, string>
  objects: Record<string, ApiObject[]>
  /** By `namespace/pod`; ` previous` is the container before. */
  logs: Record<string, string>
}

/**
 * Workloads that a fault is about, by the beginning of their names; its node comes along always.
 */
const workloadsOf = (fault: ClusterFault): string[] => {
  const name = clusterFaultRows[fault].on.split('/')[1]
  if (fault === 'k8s_red_herring') return ['pricing', 'log-shipper']
  return [name ?? 'thumbnails', ...(fault === 'k8s_webhook_expired' ? ['pod-policy'] : [])]
}

export async function recordFault(api: ClusterApi, fault: ClusterFault, facts: Record<string, string>): Promise<void> {
  const [place = '', named] = clusterFaultRows[fault].on.split('/')
  const namespace = named === undefined ? 'shop' : place
  const names = workloadsOf(fault)
  const isOfIt = (name: string) => names.some((each) => name === each || name.startsWith(`${each}-`))
  const objects: Recorded['objects'] = {
    Node: await api.list('/api/v1/nodes'),
    Namespace: [await api.get(`/api/v1/namespaces/${namespace}`)],
  }
  for (const [kind, path] of Object.entries(listsOf(namespace))) {
    const all = await api.list(path)
    objects[kind] = all.filter((object) => kind === 'ResourceQuota' || isOfIt(nameIn(object)))
  }
  if (named === undefined) objects.Event?.push(...(await api.list('/api/v1/namespaces/default/events')))
  const logs: Recorded['logs'] = {}
  for (const { metadata } of objects.Pod ?? [])
    for (const previous of [false, true]) {
      const text = await api.text(`${listsOf(namespace).Pod}/${metadata.name}/log?previous=${previous}`).catch(() => '')
      if (text !== '') logs[`${namespace}/${metadata.name}${previous ? ' previous' : ''}`] = text
    }
  const trimmed = Object.entries(objects).map(([kind, all]) => [kind, all.map(trim)])
  const recorded: Recorded = { facts, objects: Object.fromEntries(trimmed), logs }
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, `${fault}.json`), `${JSON.stringify(recorded)}\n`)
}

const nameIn = ({ involvedObject, metadata }: ApiObject): string => involvedObject?.name ?? metadata.name

/**
 * Leaves out what is large and says nothing here: which manager owns which field, of events all of
 * that, and the images of a node.
 */
function trim({ kind: _, apiVersion: __, ...object }: ApiObject): ApiObject {
  const { managedFields, ...metadata } = object.metadata
  const isEvent = object.involvedObject !== undefined
  const managers = isEvent
    ? undefined
    : managedFields?.map(({ fieldsV1: _, fieldsType: __, ...manager }: ApiObject) => manager)
  const { images: _images, nodeInfo, ...status } = object.status ?? {}
  // Facts of the recording machine: only its programs.
  const { kubeletVersion, containerRuntimeVersion, osImage } = nodeInfo ?? {}
  return {
    ...object,
    metadata: { ...metadata, ...(managers && { managedFields: managers }) },
    ...(object.status && {
      status: { ...status, ...(nodeInfo && { nodeInfo: { kubeletVersion, containerRuntimeVersion, osImage } }) },
    }),
  }
}
