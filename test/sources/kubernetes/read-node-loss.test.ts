import { expect, test } from '@jest/globals'
import { useCluster } from './site.ts'

const { stage, read } = useCluster()

const node = (name: string) => ({
  metadata: { name, labels: { 'kubernetes.io/hostname': name } },
  status: { allocatable: { cpu: '1', memory: '4Gi', pods: '110' }, conditions: [{ type: 'Ready', status: 'True' }] },
})
const owned = (kind: string, name: string) => [{ kind, name, uid: `uid-of-${kind}-${name}`, controller: true }]
const pod = (name: string, nodeName: string, more: Record<string, unknown> = {}) => ({
  metadata: { name, namespace: 'shop', labels: { app: 'web' }, ownerReferences: owned('ReplicaSet', 'web-7fd8966c8d') },
  spec: {
    nodeName,
    containers: [{ name: 'app', env: [{ name: 'A', value: 'planted-env' }], resources: { requests: { cpu: '600m' } } }],
    ...more,
  },
  status: { phase: 'Running' },
})

function putSite() {
  const { put } = stage.cluster
  for (const name of ['node-1', 'node-2']) put('Node', node(name))
  put('Deployment', { metadata: { name: 'web', namespace: 'shop' }, spec: { replicas: 2 } })
  put('ReplicaSet', {
    metadata: { name: 'web-7fd8966c8d', namespace: 'shop', ownerReferences: owned('Deployment', 'web') },
  })
  put('Pod', pod('web-7fd8966c8d-a', 'node-1'))
  put('Pod', pod('web-7fd8966c8d-b', 'node-2'))
  put('PodDisruptionBudget', {
    metadata: { name: 'web', namespace: 'shop' },
    spec: { selector: { matchLabels: { app: 'web' } } },
    status: { disruptionsAllowed: 0, expectedPods: 2, desiredHealthy: 2 },
  })
}

test('a drain that leaves a pod without a node names its workload, the rule, and what would make room', async () => {
  putSite()
  const { summary } = await read('kubernetes_node_loss', { nodes: ['node-1'] })
  expect(summary).toEqual({
    moves: 1,
    stayPending: 1,
    drainWaits: ['budget shop/web: 1 are to go, 0 may go now, and the drain would not end by itself'],
    tried: ['one more node like node-1: all have a place'],
    leftOut: ['limits of volumes per node', 'what autoscaling adds'],
    pending: [
      {
        workload: 'Deployment shop/web',
        pods: 1,
        certain: true,
        why: 'short of cpu on 1 (least: cpu 200 m on node-2)',
      },
    ],
  })
  expect(JSON.stringify(summary)).not.toContain('planted')
})

test('a volume that another node holds is named with its claim', async () => {
  putSite()
  const { put } = stage.cluster
  put('Pod', pod('db-0', 'node-1', { containers: [], volumes: [{ persistentVolumeClaim: { claimName: 'data' } }] }))
  put('PersistentVolume', {
    metadata: { name: 'pv-1' },
    spec: {
      claimRef: { namespace: 'shop', name: 'data' },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['node-1'] }] },
          ],
        },
      },
    },
  })
  const { summary } = await read('kubernetes_node_loss', { nodes: ['node-1'] })
  expect(JSON.stringify(summary.pending)).toContain('its volume is elsewhere: data on node-2')
})

test('an unknown node is refused with the known ones', async () => {
  putSite()
  await expect(read('kubernetes_node_loss', { nodes: ['node-9'] })).rejects.toThrow(
    'prod has no node node-9: there is node-1, node-2',
  )
})

test('a source that is read by namespace says that nodes belong to none', async () => {
  stage.source = { ...stage.source, options: { namespaces: 'shop' } }
  putSite()
  await expect(read('kubernetes_node_loss', { nodes: ['node-1'] })).rejects.toThrow('rights for the whole cluster')
})

test('a role without budgets gets the missing rule', async () => {
  putSite()
  stage.cluster.refuse('PodDisruptionBudget', { status: 403 })
  await expect(read('kubernetes_node_loss', { nodes: ['node-1'] })).rejects.toThrow(
    'resources: ["poddisruptionbudgets"]',
  )
})
