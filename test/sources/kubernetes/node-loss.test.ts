import { expect, test } from '@jest/globals'
import { foreseeLoss } from '../../../sources/kubernetes/node-loss.ts'
import {
  readScheduledNode,
  readScheduledPod,
  type ScheduledNode,
  type ScheduledPod,
} from '../../../sources/kubernetes/scheduled.ts'

type Fields = Record<string, unknown>

const node = (name: string, { labels = {}, taints = [], cpu = '4', memory = '8Gi', more = {} }: Fields = {}) =>
  readScheduledNode({
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...(labels as Fields) } },
    spec: { taints, ...(more as Fields) },
    status: { allocatable: { cpu, memory, pods: '110' }, conditions: [{ type: 'Ready', status: 'True' }] },
  }) as ScheduledNode

const pod = (name: string, on: string, spec: Fields = {}, metadata: Fields = {}) =>
  readScheduledPod({
    metadata: {
      name,
      namespace: 'shop',
      uid: name,
      labels: { app: 'web' },
      ownerReferences: [{ kind: 'ReplicaSet', name: 'web', uid: 'rs', controller: true }],
      ...metadata,
    },
    spec: {
      nodeName: on,
      containers: [{ resources: { requests: { cpu: '500m', memory: '1Gi' } } }],
      ...spec,
    },
    status: { phase: 'Running' },
  }) as ScheduledPod

const asks = (cpu: string, memory: string) => ({ containers: [{ resources: { requests: { cpu, memory } } }] })
const required = 'requiredDuringSchedulingIgnoredDuringExecution'

const foresee = (
  nodes: ScheduledNode[],
  pods: ScheduledPod[],
  more: Fields = {},
  intent: 'drain' | 'failure' = 'drain',
) => foreseeLoss({ nodes, pods, budgets: [], volumes: new Map(), ...more }, ['a'], intent)

test.each([
  ['500m', 1],
  ['2', 2],
  ['1.5Gi', 1.5 * 2 ** 30],
  ['1e3', 1_000],
  ['100M', 100e6],
  ['12E', 12e18],
  ['3Ei', 3 * 2 ** 60],
  ['-1', -1],
  ['4 Gi', 0],
  ['', 0],
  [7, 7],
  [null, 0],
])('the quantity %p is %p', (given, is) => {
  const asked = pod('p', 'a', { containers: [{ resources: { requests: { 'example.com/x': given } } }] }).requests
  expect(asked['example.com/x']).toBe(is)
})

test.each<[string, Fields, Fields]>([
  ['all containers', asks('250m', '1Gi'), { cpu: 250, memory: 2 ** 30, pods: 1 }],
  [
    'an init container that needs more',
    { ...asks('250m', '1Gi'), initContainers: [{ resources: { requests: { cpu: '1' } } }] },
    { cpu: 1_000, memory: 2 ** 30, pods: 1 },
  ],
  [
    'one that stays beside them',
    { ...asks('250m', '1Gi'), initContainers: [{ restartPolicy: 'Always', resources: { requests: { cpu: '1' } } }] },
    { cpu: 1_250, memory: 2 ** 30, pods: 1 },
  ],
  [
    'what running it costs',
    { ...asks('250m', '1Gi'), overhead: { cpu: '10m' } },
    { cpu: 260, memory: 2 ** 30, pods: 1 },
  ],
  [
    'requests of the pod',
    { ...asks('250m', '1Gi'), resources: { requests: { cpu: '2' } } },
    { cpu: 2_000, memory: 2 ** 30, pods: 1 },
  ],
])('a pod asks for %s', (_, spec, amounts) => {
  expect(pod('p', 'a', spec).requests).toEqual(amounts)
})

const [a, b] = [node('a'), node('b')]

test('pods of a drained node move to nodes with room, and those of a DaemonSet or without an owner are listed apart', () => {
  const loss = foresee(
    [a, b],
    [
      pod('web-1', 'a'),
      pod('agent', 'a', {}, { ownerReferences: [{ kind: 'DaemonSet', name: 'agent', uid: 'd', controller: true }] }),
      pod('static', 'a', {}, { annotations: { 'kubernetes.io/config.mirror': 'x' } }),
      pod('bare', 'a', {}, { ownerReferences: [] }),
      pod('elsewhere', 'b'),
    ],
  )
  const names = (pods: readonly ScheduledPod[]) => pods.map(({ name }) => name)
  expect([names(loss.moving), names(loss.lost), names(loss.bound), loss.pending]).toEqual([
    ['web-1'],
    ['bare'],
    ['agent', 'static'],
    [],
  ])
})

const taint = { key: 'gpu', value: 'true', effect: 'NoSchedule' }
const hostname = { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'web' } } }

test.each<[string, ScheduledNode, Fields, ScheduledPod[], string]>([
  ['memory', node('b', { memory: '1Gi' }), asks('1', '2Gi'), [], 'resources memory'],
  ['a taint', node('b', { taints: [taint] }), {}, [], 'taint gpu=true'],
  [
    'a toleration of another effect',
    node('b', { taints: [taint] }),
    { tolerations: [{ key: 'gpu', operator: 'Exists', effect: 'NoExecute' }] },
    [],
    'taint gpu=true',
  ],
  ['a cordon', node('b', { more: { unschedulable: true } }), {}, [], 'cordoned '],
  ['a node selector', b, { nodeSelector: { disk: 'ssd' } }, [], 'node affinity '],
  [
    'a node affinity',
    b,
    {
      affinity: {
        nodeAffinity: {
          [required]: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['x'] }] }] },
        },
      },
    },
    [],
    'node affinity ',
  ],
  [
    'its own kind there',
    b,
    { affinity: { podAntiAffinity: { [required]: [hostname] } } },
    [pod('web-2', 'b')],
    'apart ',
  ],
  [
    'one there that keeps away from it',
    b,
    {},
    [pod('hater', 'b', { affinity: { podAntiAffinity: { [required]: [hostname] } } }, { labels: { app: 'db' } })],
    'apart ',
  ],
  [
    'nobody there to be beside',
    b,
    { affinity: { podAffinity: { [required]: [{ ...hostname, labelSelector: { matchLabels: { app: 'cache' } } }] } } },
    [],
    'beside ',
  ],
  [
    'a port of the node',
    b,
    { containers: [{ ports: [{ hostPort: 443 }] }] },
    [pod('lb', 'b', { containers: [{ ports: [{ hostPort: 443 }] }] })],
    'port 443/TCP',
  ],
])('a pod stays pending for %s', (_, other, spec, there, why) => {
  const { pending } = foresee([a, other], [pod('web-1', 'a', spec), ...there])
  const said = pending.flatMap((each) => each.why.get('b')!.map(({ rule, detail }) => `${rule} ${detail}`))
  expect(said).toEqual([why])
  expect(pending[0]!.isCertain).toBe(why !== 'beside ')
})

test.each<[string, ScheduledNode, Fields]>([
  [
    'a toleration',
    node('b', { taints: [taint] }),
    { tolerations: [{ key: 'gpu', value: 'true', effect: 'NoSchedule' }] },
  ],
  [
    'a toleration of everything',
    node('b', { taints: [taint], more: { unschedulable: true } }),
    { tolerations: [{ operator: 'Exists' }] },
  ],
  ['a taint that only prefers', node('b', { taints: [{ ...taint, effect: 'PreferNoSchedule' }] }), {}],
  ['being the first of its kind', b, { affinity: { podAffinity: { [required]: [hostname] } } }],
  [
    'an affinity to others by number',
    node('b', { labels: { cores: '8' } }),
    {
      affinity: {
        nodeAffinity: {
          [required]: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'cores', operator: 'Gt', values: ['4'] }] }] },
        },
      },
    },
  ],
])('a pod moves by %s', (_, other, spec) => {
  expect(foresee([a, other], [pod('web-1', 'a', spec)]).pending).toEqual([])
})

test('zones that would become uneven keep a pod pending, and one more node like the lost one makes room', () => {
  const zoned = (name: string, zone: string) => node(name, { labels: { zone } })
  const rule = {
    topologyKey: 'zone',
    maxSkew: 1,
    whenUnsatisfiable: 'DoNotSchedule',
    labelSelector: { matchLabels: { app: 'web' } },
  }
  const spread = { topologySpreadConstraints: [rule] }
  const { pending, room } = foresee(
    [zoned('a', 'x'), node('c', { labels: { zone: 'x' }, taints: [taint] }), zoned('b', 'y')],
    [pod('web-1', 'a', spread), pod('web-2', 'b', spread)],
  )
  expect(pending.map((each) => each.why.get('b'))).toEqual([[{ rule: 'spread', detail: 'zone' }]])
  expect(pending[0]!.isCertain).toBe(false)
  expect(room).toEqual([{ change: 'one more node like a', pending: 0 }])
})

test('a volume of another node keeps a pod pending', () => {
  const volumes = new Map([['shop/data', ({ name }: ScheduledNode) => name === 'a']])
  const claims = { volumes: [{ persistentVolumeClaim: { claimName: 'data' } }] }
  const { pending } = foresee([a, b], [pod('db-0', 'a', claims)], { volumes })
  expect(pending.map((each) => [each.isCertain, ...each.why.get('b')!])).toEqual([
    [true, { rule: 'volume', detail: 'data' }],
  ])
})

test('more important pods take the room first, and what depends on the order is reported', () => {
  const { pending, mostPending } = foresee(
    [a, node('b', { cpu: '3' })],
    [pod('low', 'a', { ...asks('2', '1Gi'), priority: 1 }), pod('high', 'a', { ...asks('2', '1Gi'), priority: 9 })],
  )
  expect(pending.map((each) => [each.pod.name, each.isCertain])).toEqual([['low', false]])
  expect(mostPending).toBe(1)
})

test('a budget that allows no eviction makes a drain that does not end by itself', () => {
  const budget = { namespace: 'shop', name: 'web', selector: [{ key: 'app', operator: 'In', values: ['web'] }] }
  const waiting = (allowed: number, allowsNone = false) =>
    foresee([a, b], [pod('web-1', 'a'), pod('web-2', 'a')], { budgets: [{ ...budget, allowed, allowsNone }] }).waiting
  expect(waiting(0, true)).toMatchObject([{ leaving: 2, isEndless: true }])
  // A pod of it is not ready at the moment, and may be soon.
  expect(waiting(0)).toMatchObject([{ leaving: 2, isEndless: false }])
  expect(waiting(1)).toMatchObject([{ leaving: 2, isEndless: false }])
  expect(waiting(2)).toEqual([])
})

test('on a failed node a StatefulSet waits for its deletion', () => {
  const owned = { ownerReferences: [{ kind: 'StatefulSet', name: 'db', uid: 's', controller: true }] }
  const pods = [pod('db-0', 'a', {}, owned)]
  expect(foresee([a, b], pods, {}, 'failure').stuck.map(({ name }) => name)).toEqual(['db-0'])
  expect(foresee([a, b], pods, {}, 'drain').stuck).toEqual([])
})

test('invalid objects are ignored', () => {
  for (const given of [null, 7, 'x', [], {}, { metadata: 7 }, { metadata: { uid: 'u', name: 'n' } }])
    expect([readScheduledPod(given), readScheduledNode({ ...(given as object), metadata: null })]).toEqual([null, null])
  const odd = readScheduledPod({
    metadata: { uid: 'u', name: 'n', namespace: 's', labels: 7, ownerReferences: 'x' },
    spec: { containers: [{ resources: { requests: { cpu: {}, memory: '1Zi' } } }], tolerations: [7], affinity: 'x' },
  })
  expect(odd).toMatchObject({ requests: { cpu: 0, memory: 0, pods: 1 }, owner: null })
})
