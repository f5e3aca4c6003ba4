import type { ApiObject, ClusterApi } from './api.ts'
import { orderCluster } from './drawer.ts'
import { deploymentPath } from './shop.ts'
import {
  type ClusterFaultWork,
  changedBy,
  conditionOf,
  eventsOf,
  newestRevision,
  revisionFacts,
  rollOut,
  rollOutSettings,
  sinceOf,
  until,
} from './work.ts'

export const noRoom: ClusterFaultWork = {
  hits: ['recommender'],
  breakIn: (_, { api }) =>
    rollOut(api, 'recommender', (_pod, container) => {
      // Requests 640 CPUs, like a mistake in which 640m lost its unit.
      container.resources.requests.cpu = '640'
    }),
  async see(api) {
    const revision = await newestRevision(api, 'recommender')
    const pod = revision?.pods[0]
    const why = 'Insufficient cpu'
    if (!revision || !pod || !conditionOf(pod, 'PodScheduled')?.message?.includes(why)) return null
    return {
      ...revisionFacts('recommender', revision),
      pod: pod.metadata.name,
      since: sinceOf(pod, 'PodScheduled'),
      why,
      change: '640',
      before: '10m',
    }
  },
}

const claimPath = '/api/v1/namespaces/shop/persistentvolumeclaims/ledger-data-fast'

export const volumeUnbound: ClusterFaultWork = {
  hits: ['ledger'],
  async breakIn(_, { api }) {
    await api.create('/api/v1/namespaces/shop/persistentvolumeclaims', {
      metadata: { name: 'ledger-data-fast' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'fast',
        resources: { requests: { storage: '1Gi' } },
      },
    })
    await rollOut(api, 'ledger', (pod) => {
      const data = pod.volumes.find(({ name }: ApiObject) => name === 'data')
      data.persistentVolumeClaim.claimName = 'ledger-data-fast'
    })
  },
  async see(api) {
    const [claim, revision] = [await api.find(claimPath), await newestRevision(api, 'ledger')]
    const pod = revision?.pods[0]
    const why = 'storageclass.storage.k8s.io "fast" not found'
    if (claim?.status?.phase !== 'Pending' || !revision || !pod) return null
    if (!(await eventsOf(api, claim)).includes(why)) return null
    return {
      ...revisionFacts('ledger', revision),
      pod: pod.metadata.name,
      claim: 'ledger-data-fast',
      since: claim.metadata.creationTimestamp,
      why,
      change: 'ledger-data-fast',
      before: 'ledger-data',
    }
  },
  heal: (_, { api }) => api.remove(claimPath),
}

const nodePath = '/api/v1/nodes/node-2'

export const nodeNotReady: ClusterFaultWork = {
  hits: ['thumbnails'],
  breakIn: async (lab) => orderCluster(lab, { kind: 'signal', process: 'kubelet-node-2', signal: 'SIGSTOP' }),
  async see(api) {
    const ready = conditionOf(await api.get(nodePath), 'Ready')
    const why = 'Kubelet stopped posting node status'
    if (ready?.status !== 'Unknown' || !ready.message.includes(why)) return null
    return {
      object: 'node-2',
      since: ready.lastTransitionTime,
      why,
      reason: ready.reason,
      heartbeat: ready.lastHeartbeatTime,
    }
  },
  async heal(lab, { api }) {
    orderCluster(lab, { kind: 'signal', process: 'kubelet-node-2', signal: 'SIGCONT' })
    await untilNode(api, 'Ready', 'True')
  },
}

const untilNode = (api: ClusterApi, type: string, status: string): Promise<void> =>
  until(
    async () => conditionOf(await api.get(nodePath), type)?.status === status,
    `node-2 to have ${type}=${status}`,
    90_000,
  )

export const quota: ClusterFaultWork = {
  hits: ['newsletter'],
  async breakIn(_, { api }) {
    await api.patch(deploymentPath('newsletter'), { spec: { replicas: 4 } }, 'campaign-tool')
  },
  async see(api) {
    const deployment = await api.get(deploymentPath('newsletter'))
    const failure = conditionOf(deployment, 'ReplicaFailure')
    const why = 'exceeded quota: team-budget'
    if (failure?.status !== 'True' || !failure.message.includes(why)) return null
    return {
      object: 'newsletter',
      since: failure.lastTransitionTime,
      why,
      limit: 'pods=2',
      change: '4',
      changedAt: changedBy(deployment, 'campaign-tool'),
      manager: 'campaign-tool',
    }
  },
}

/** Megabytes to write: more than a node's disk has free before the kubelet evicts pods. */
const previewsMb = 176

export const diskPressure: ClusterFaultWork = {
  hits: ['thumbnails'],
  breakIn: (_, { api }) => rollOutSettings(api, 'thumbnails', `previews_mb=${previewsMb}`),
  async see(api) {
    const pressure = conditionOf(await api.get(nodePath), 'DiskPressure')
    const revision = await newestRevision(api, 'thumbnails')
    const evicted = revision?.pods.find(({ status }) => status.reason === 'Evicted')
    const why = 'The node was low on resource: ephemeral-storage'
    if (pressure?.status !== 'True' || !revision || !evicted?.status.message.includes(why)) return null
    return {
      ...revisionFacts('thumbnails', revision),
      node: 'node-2',
      pod: evicted.metadata.name,
      since: pressure.lastTransitionTime,
      why,
      condition: 'DiskPressure',
      change: 'thumbnails-settings-2',
      before: 'thumbnails-settings-1',
    }
  },
  async heal(lab, { api }) {
    await api.patch(deploymentPath('thumbnails'), { spec: { replicas: 0 } })
    await untilNode(api, 'DiskPressure', 'False')
    // Imports the images again, because the kubelet removed unused images from the full disk.
    orderCluster(lab, { kind: 'images' })
  },
}
