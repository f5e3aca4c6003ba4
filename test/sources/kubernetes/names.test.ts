import { expect, test } from '@jest/globals'
import { readContext, readStateOf } from '../../../sources/kinds.ts'
import { nodeOf, putCrashLoop, useCluster } from './site.ts'

/** Names that are those of several things, or of none: no answer is about another one. */

const { stage, read, probe } = useCluster()

const ownedBy = (kind: string, name: string) => [{ kind, name, uid: `uid-of-${kind}-${name}`, controller: true }]

const putSet = () =>
  stage.cluster.put('StatefulSet', {
    metadata: { name: 'web', namespace: 'shop' },
    spec: { replicas: 2 },
    status: { readyReplicas: 2 },
  })

test('the first turn about a StatefulSet is not about the Deployment of the same name', async () => {
  putCrashLoop(stage.cluster)
  putSet()
  await probe()
  const subject = { kind: 'workload' as const, id: 'prod:shop:statefulset:web', name: 'web', pod: null }
  const [told] = await readContext('cluster', [stage.source], subject, stage.states)
  expect(JSON.stringify(told)).toContain('StatefulSet shop/web')
  expect(JSON.stringify(told)).not.toContain('web-7fd8966c8d')
})

test('a diagnosis and a history of one of two workloads of one name mention the other', async () => {
  putCrashLoop(stage.cluster)
  putSet()
  for (const tool of ['pod_diagnosis', 'rollout_history'])
    expect((await read(tool, { namespace: 'shop', name: 'web' })).summary).toMatchObject({
      workload: 'Deployment shop/web',
      alsoCalledSo: ['StatefulSet shop/web'],
    })
})

test.each([
  ['volume_claim', 'PersistentVolumeClaim'],
  ['cluster_service', 'Service'],
  ['ingress', 'Ingress'],
] as const)('a deleted %s is not that of another namespace', async (kind, of) => {
  stage.cluster.put(of, { metadata: { name: 'data', namespace: 'pay' }, spec: {}, status: { phase: 'Bound' } })
  await probe()
  const stateOf = (id: string) => readStateOf(stage.source, { kind, id, name: 'data' }, stage.states)
  expect(await stateOf('prod:shop:data')).toBeNull()
  expect((await stateOf('prod:pay:data'))?.observed).toContain('pay/data')
})

test('an object that owns itself has each of its pods once', async () => {
  const owner = ownedBy('ReplicaSet', 'self')
  stage.cluster.put('ReplicaSet', {
    metadata: { name: 'self', namespace: 'shop', ownerReferences: owner },
    spec: { replicas: 1 },
    status: {},
  })
  stage.cluster.put('Pod', {
    metadata: { name: 'self-abcde', namespace: 'shop', ownerReferences: owner },
    spec: {},
    status: { phase: 'Running' },
  })
  expect((await read('pod_diagnosis', { namespace: 'shop', name: 'self' })).summary).toMatchObject({ pods: 1 })
})

test('a state, a label and a topology with the name of a language feature are words', async () => {
  putCrashLoop(stage.cluster)
  stage.cluster.put('Node', nodeOf('node-2', '10.0.0.2'))
  stage.cluster.put('Pod', {
    metadata: { name: 'odd', namespace: 'shop', ownerReferences: ownedBy('ReplicaSet', 'web-7fd8966c8d') },
    spec: {
      nodeName: 'node-1',
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: 'constructor', operator: 'Exists' }] }],
          },
        },
      },
    },
    status: { phase: 'Running', reason: 'constructor' },
  })
  stage.cluster.put('Service', {
    metadata: { name: 'web', namespace: 'shop' },
    spec: { selector: { constructor: 'x' } },
  })
  const { summary } = await read('pod_diagnosis', { namespace: 'shop', name: 'web' })
  expect(summary).toMatchObject({
    notReady: { CrashLoopBackOff: 1, constructor: 1 },
    services: ['web selects no pod (constructor=x)'],
  })
  const loss = (await read('kubernetes_node_loss', { nodes: ['node-1'] })).summary
  expect(JSON.stringify(loss)).toContain('node selector or affinity on node-2')
})
