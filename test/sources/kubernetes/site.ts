import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach } from '@jest/globals'
import type { Source } from '../../../domain/source.ts'
import { forgetSource, newSourceStates } from '../../../sources/ask.ts'
import { planRead, probeSource, readSource } from '../../../sources/kinds.ts'
import { type ClusterObject, type StandInCluster, startCluster } from '../../support/cluster-server.ts'
import { temporaryDirectory } from '../../support/directory.ts'

/** A source of a cluster over a stand-in, begun anew for each test. */

export const sourceOf = (url: string, more: Partial<Source> = {}): Source => ({
  name: 'prod',
  kind: 'kubernetes',
  url,
  credential: null,
  writeCredential: null,
  scheme: null,
  headers: {},
  caFile: null,
  certFile: null,
  keyFile: null,
  options: {},
  timeoutSeconds: 60,
  createdBy: 'ada',
  createdAt: '2026-11-21T12:00:00Z',
  ...more,
})

export const nowMs = Date.parse('2026-11-21T12:00:00Z')

export function useCluster() {
  const stage = {
    cluster: null as unknown as StandInCluster,
    states: newSourceStates(),
    source: sourceOf(''),
    directory: '',
  }
  beforeEach(async () => {
    stage.directory = temporaryDirectory().path
    stage.states = newSourceStates(() => {}, stage.directory)
    stage.cluster = await startCluster()
    write('token', 'token-of-a-test')
    stage.source = sourceOf(stage.cluster.url, { credential: `file:${join(stage.directory, 'token')}` })
  })
  afterEach(async () => {
    forgetSource(stage.states, 'prod')
    await stage.cluster.stop()
  })
  const write = (name: string, text: string): string => {
    const path = join(stage.directory, name)
    writeFileSync(path, text)
    return path
  }
  /** What a model would read of a call. */
  const read = async (tool: string, args: Record<string, unknown>) => {
    const planned = planRead([stage.source], tool, args)
    if (!planned.ok) throw new Error(planned.reason)
    return await readSource(planned, stage.states, { nowMs, incidentBeganMs: null })
  }
  return {
    stage: Object.assign(stage, { forget: () => forgetSource(stage.states, 'prod') }),
    write,
    read,
    probe: () => probeSource(stage.source, stage.states),
  }
}

/** A Deployment with its two ReplicaSets and a pod of the newer one, which crashes. */
export function putCrashLoop({ put }: StandInCluster, namespace = 'shop'): void {
  const template = (image: string, mode: string) => ({
    metadata: { labels: { app: 'web' } },
    spec: {
      containers: [
        {
          name: 'app',
          image,
          args: ['--mode=x', 'planted-argument'],
          env: [
            { name: 'MODE', value: mode },
            { name: 'DB_PASSWORD', value: 'planted-env' },
          ],
          envFrom: [{ configMapRef: { name: 'web-config' } }],
          resources: { limits: { memory: '64Mi' } },
        },
      ],
    },
  })
  const owner = (kind: string, name: string) => [
    { apiVersion: 'apps/v1', kind, name, uid: `uid-of-${kind}-${name}`, controller: true },
  ]
  put('Node', nodeOf('node-1', '10.0.0.1'))
  put('Namespace', { metadata: { name: namespace }, status: { phase: 'Active' } })
  put('ConfigMap', {
    metadata: {
      name: 'web-config',
      namespace,
      managedFields: [{ manager: 'kubectl-edit', time: '2026-11-21T11:20:00Z' }],
    },
    data: { mode: 'planted-config' },
  })
  put('Deployment', {
    metadata: { name: 'web', namespace, managedFields: [{ manager: 'kubectl-set', time: '2026-11-21T11:30:00Z' }] },
    spec: { replicas: 1, template: template('web:2', 'bad') },
    status: {
      readyReplicas: 0,
      conditions: [
        {
          type: 'Available',
          status: 'False',
          reason: 'MinimumReplicasUnavailable',
          lastTransitionTime: '2026-11-21T11:30:10Z',
        },
      ],
    },
  })
  for (const [name, revision, image, mode, at] of [
    ['web-5cd6c546f7', '1', 'web:1', 'ok', '2026-11-20T08:00:00Z'],
    ['web-7fd8966c8d', '2', 'web:2', 'bad', '2026-11-21T11:30:00Z'],
  ] as const)
    put('ReplicaSet', {
      metadata: {
        name,
        namespace,
        creationTimestamp: at,
        annotations: { 'deployment.kubernetes.io/revision': revision },
        ownerReferences: owner('Deployment', 'web'),
      },
      spec: { replicas: revision === '2' ? 1 : 0, template: template(image, mode) },
      status: {},
    })
  put('Pod', {
    metadata: {
      name: 'web-7fd8966c8d-8cjqz',
      namespace,
      creationTimestamp: '2026-11-21T11:30:01Z',
      labels: { app: 'web' },
      ownerReferences: owner('ReplicaSet', 'web-7fd8966c8d'),
    },
    spec: { nodeName: 'node-1', ...template('web:2', 'bad').spec },
    status: {
      phase: 'Running',
      conditions: [
        { type: 'Ready', status: 'False', reason: 'ContainersNotReady', lastTransitionTime: '2026-11-21T11:30:01Z' },
      ],
      containerStatuses: [
        {
          name: 'app',
          restartCount: 9,
          ready: false,
          state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s restarting failed container' } },
          lastState: {
            terminated: {
              reason: 'Error',
              exitCode: 3,
              startedAt: '2026-11-21T11:55:00Z',
              finishedAt: '2026-11-21T11:55:02Z',
            },
          },
        },
      ],
    },
  })
  put(
    'Event',
    eventAbout('Pod', namespace, 'web-7fd8966c8d-8cjqz', {
      reason: 'BackOff',
      message: 'Back-off restarting failed container app',
      count: 40,
    }),
  )
}

export const nodeOf = (name: string, address: string): ClusterObject => ({
  metadata: { name },
  spec: {},
  status: {
    addresses: [
      { type: 'InternalIP', address },
      { type: 'Hostname', address: name },
    ],
    conditions: [{ type: 'Ready', status: 'True' }],
    nodeInfo: { kubeletVersion: 'v1.34.4' },
  },
})

export const eventAbout = (
  kind: string,
  namespace: string,
  name: string,
  more: Record<string, unknown>,
): ClusterObject => ({
  metadata: { name: `${name}.${String(more.reason)}.${String(more.message).length}`, namespace },
  involvedObject: { kind, namespace, name, uid: `uid-of-${kind}-${name}` },
  type: 'Warning',
  firstTimestamp: '2026-11-21T11:30:05Z',
  lastTimestamp: '2026-11-21T11:59:00Z',
  ...more,
})
