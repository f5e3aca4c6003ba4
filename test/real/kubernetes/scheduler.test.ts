import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { random } from '../../../placement/cluster/size-classes.ts'
import {
  readScheduledNode,
  readScheduledPod,
  type ScheduledNode,
  type ScheduledPod,
} from '../../../sources/kubernetes/scheduled.ts'
import { judgeNodes, newBoard } from '../../../sources/kubernetes/scheduling-rules.ts'
import { eventually } from '../../support/directory.ts'
import { findProgram } from '../kinds.ts'
import { type RealApiServer, startApiServer } from './api-server.ts'

/**
 * Our word on where pods may go, held against the scheduler of Kubernetes itself, one pod at a
 * time.
 */

type Fields = Record<string, unknown>
const situations = 12
const podsEach = 14
const required = 'requiredDuringSchedulingIgnoredDuringExecution'
const programs = ['etcd', 'kube-apiserver', 'kube-scheduler']
const missing = programs.filter((name) => findProgram(name) === null)

function drawNodes(next: () => number): Fields[] {
  return ['n0', 'n1', 'n2', 'n3'].map((name, index) => ({
    metadata: {
      name,
      labels: {
        'kubernetes.io/hostname': name,
        zone: index % 2 === 0 ? 'x' : 'y',
        ...(next() < 0.5 && { disk: 'ssd' }),
      },
    },
    spec: {
      ...(index === 3 && next() < 0.6 && { taints: [{ key: 'gpu', value: 'true', effect: 'NoSchedule' }] }),
      ...(index === 2 && next() < 0.3 && { unschedulable: true }),
    },
    status: {
      allocatable: { cpu: '4', memory: '8Gi', pods: '8' },
      conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: null, lastTransitionTime: null }],
    },
  }))
}

function drawPod(next: () => number, index: number): Fields {
  const pick = <T>(...all: T[]): T => all[Math.floor(next() * all.length)] as T
  const app = pick('web', 'db', 'cache')
  const term = (topologyKey: string, of: string) => ({ topologyKey, labelSelector: { matchLabels: { app: of } } })
  const apart = next() < 0.3 && {
    podAntiAffinity: { [required]: [term(pick('kubernetes.io/hostname', 'zone'), pick(app, 'db'))] },
  }
  const beside = next() < 0.25 && {
    podAffinity: { [required]: [term(pick('kubernetes.io/hostname', 'zone'), pick(app, 'cache'))] },
  }
  const expression = pick<Fields>(
    { key: 'disk', operator: 'Exists' },
    { key: 'disk', operator: 'DoesNotExist' },
    { key: 'zone', operator: 'NotIn', values: ['x'] },
    { key: 'zone', operator: 'In', values: ['x', 'q'] },
  )
  const near = next() < 0.25 && {
    nodeAffinity: { [required]: { nodeSelectorTerms: [{ matchExpressions: [expression] }] } },
  }
  const requests = { cpu: `${pick(250, 500, 1_000, 2_000)}m`, memory: pick('256Mi', '1Gi', '3Gi') }
  return {
    metadata: { name: `p${index}`, namespace: 'default', labels: { app } },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'c',
          image: 'none',
          resources: { requests },
          ...(next() < 0.15 && { ports: [{ containerPort: 80, hostPort: 80 }] }),
        },
      ],
      ...(next() < 0.2 && { initContainers: [{ name: 'i', image: 'none', resources: { requests: { cpu: '3' } } }] }),
      ...(next() < 0.3 && {
        tolerations: [
          pick<Fields>({ key: 'gpu', operator: 'Exists' }, { operator: 'Exists' }, { key: 'gpu', value: 'no' }),
        ],
      }),
      ...(next() < 0.15 && { nodeSelector: { zone: pick('x', 'y') } }),
      ...((apart || beside || near) && { affinity: { ...apart, ...beside, ...near } }),
      ...(next() < 0.3 && {
        topologySpreadConstraints: [
          {
            ...term(pick('zone', 'kubernetes.io/hostname'), app),
            maxSkew: pick(1, 2),
            whenUnsatisfiable: 'DoNotSchedule',
          },
        ],
      }),
    },
  }
}

async function said(api: RealApiServer, ...[method, path, body]: Parameters<RealApiServer['send']>) {
  const answer = await api.send(method, path, body)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body.slice(0, 300)}`)
  return JSON.parse(answer.body) as Fields
}

const itemsAt = async (api: RealApiServer, path: string) =>
  (JSON.parse((await api.get(path)).body) as { items: unknown[] }).items

/** Admission taints a new node until it is ready. */
async function putNode(api: RealApiServer, node: Fields): Promise<void> {
  const made = await said(api, 'POST', '/api/v1/nodes', node)
  const { name } = node.metadata as { name: string }
  const ready = await said(api, 'PUT', `/api/v1/nodes/${name}`, { ...made, spec: node.spec })
  await said(api, 'PUT', `/api/v1/nodes/${name}/status`, { ...ready, status: node.status })
}

async function fateOf(api: RealApiServer, name: string): Promise<string> {
  let fate = ''
  await eventually(`the scheduler to decide about ${name}`, async () => {
    const { spec, status } = JSON.parse((await api.get(`/api/v1/namespaces/default/pods/${name}`)).body) as {
      spec: { nodeName?: string }
      status: { conditions?: { type: string; status: string; reason?: string }[] }
    }
    const isRefused = status.conditions?.some((each) => each.type === 'PodScheduled' && each.reason === 'Unschedulable')
    fate = spec.nodeName ?? (isRefused ? 'pending' : '')
    return fate !== ''
  })
  return fate
}

const about = missing.length > 0 ? describe.skip : describe
about(`the scheduler of Kubernetes${missing.length > 0 ? ` (missing: ${missing.join(', ')})` : ''}`, () => {
  let api: RealApiServer
  beforeAll(async () => {
    api = await startApiServer()
    await eventually('the namespace', async () => (await api.get('/api/v1/namespaces/default')).status === 200)
    await said(api, 'POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } })
    api.startBeside('kube-scheduler', ['--leader-elect=false', '--secure-port=0'])
  })
  afterAll(async () => await api?.stop())

  test('puts each pod on a predicted node, and leaves pending those without a predicted node', async () => {
    const counts = { placed: 0, pending: 0 }
    for (let seed = 1; seed <= situations; seed += 1) {
      const next = random(7_919 * seed)
      const drawn = drawNodes(next)
      for (const node of drawn) await putNode(api, node)
      for (let index = 0; index < podsEach; index += 1) {
        const pod = drawPod(next, index)
        const nodes = (await itemsAt(api, '/api/v1/nodes')).map((each) => readScheduledNode(each) as ScheduledNode)
        const pods = (await itemsAt(api, '/api/v1/pods')).map((each) => readScheduledPod(each) as ScheduledPod)
        const board = newBoard(
          nodes,
          pods.filter(({ node }) => node !== ''),
          new Map(),
        )
        const made = readScheduledPod(await said(api, 'POST', '/api/v1/namespaces/default/pods', pod)) as ScheduledPod
        const judge = judgeNodes(board, made)
        const open = nodes.filter((node) => judge(node).length === 0).map(({ name }) => name)
        const fate = await fateOf(api, made.name)
        const isAsSaid = open.length === 0 ? fate === 'pending' : open.includes(fate)
        const why = nodes.map((node) => `${node.name}: ${JSON.stringify(judge(node))}`)
        expect({ seed, pod: isAsSaid ? null : pod, fate, open, why, isAsSaid }).toMatchObject({ isAsSaid: true })
        counts[fate === 'pending' ? 'pending' : 'placed'] += 1
        // One that waits would be tried again when others come.
        if (fate === 'pending')
          await said(api, 'DELETE', `/api/v1/namespaces/default/pods/${made.name}?gracePeriodSeconds=0`, undefined)
      }
      await said(api, 'DELETE', '/api/v1/namespaces/default/pods?gracePeriodSeconds=0', undefined)
      for (const { metadata } of drawn)
        await said(api, 'DELETE', `/api/v1/nodes/${(metadata as { name: string }).name}`, undefined)
      await eventually('all to be gone', async () => (await itemsAt(api, '/api/v1/pods')).length === 0)
    }
    console.info(`${counts.placed} pods were placed and ${counts.pending} left pending, each as said`)
    expect(counts.placed).toBeGreaterThan(situations)
    expect(counts.pending).toBeGreaterThan(situations)
  })
})
