import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Source } from '../../../domain/source.ts'
import { forgetSource, newSourceStates } from '../../../sources/ask.ts'
import { planRead, probeSource, readSource } from '../../../sources/kinds.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { note } from '../facts.ts'
import { findProgram } from '../kinds.ts'
import { type RealApiServer, startApiServer } from './api-server.ts'

/**
 * A large cluster: real controllers and scheduler, nodes and kubelets by kwok. What is measured is
 * noted, and no time is asserted.
 */

const nodes = 1_000
const deployments = 500
const replicas = 20
const programs = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kwok']
const missing = programs.filter((name) => findProgram(name) === null)
const place = temporaryDirectory()

async function inTurns<T>(all: readonly T[], does: (each: T) => Promise<unknown>, atOnce = 20): Promise<void> {
  const left = [...all]
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let next = left.pop(); next !== undefined; next = left.pop()) await does(next)
    }),
  )
}

const nodeOf = (name: string) => ({
  metadata: { name, labels: { 'kubernetes.io/hostname': name }, annotations: { 'kwok.x-k8s.io/node': 'fake' } },
  status: {
    allocatable: { cpu: '32', memory: '256Gi', pods: '110' },
    capacity: { cpu: '32', memory: '256Gi', pods: '110' },
  },
})
const deploymentOf = (name: string) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace: 'default' },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        containers: [
          {
            ...{ name: 'app', image: `registry.example/${name}:1`, args: ['--a=1', '--b=2'] },
            env: Array.from({ length: 12 }, (_, at) => ({ name: `SETTING_${at}`, value: `value ${at}` })),
            resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '256Mi' } },
            readinessProbe: { httpGet: { path: '/healthz', port: 8080 } },
          },
        ],
      },
    },
  },
})

const about = missing.length > 0 ? describe.skip : describe
about(`a cluster of ${nodes} nodes${missing.length > 0 ? ` (missing: ${missing.join(', ')})` : ''}`, () => {
  let api: RealApiServer
  const count = async (path: string, ready: string) => {
    const { body } = await api.get(`${path}?limit=1${ready}`)
    const { items, metadata } = JSON.parse(body) as { items: unknown[]; metadata: { remainingItemCount?: number } }
    return items.length + (metadata.remainingItemCount ?? 0)
  }
  const pods = '/api/v1/namespaces/default/pods'
  beforeAll(async () => {
    api = await startApiServer()
    await eventually('the namespace', async () => (await api.get('/api/v1/namespaces/default')).status === 200)
    const fast = ['--kube-api-qps=1000', '--kube-api-burst=2000']
    api.startBeside('kube-controller-manager', [
      '--leader-elect=false',
      '--secure-port=0',
      ...fast,
      '--concurrent-deployment-syncs=20',
      '--concurrent-replicaset-syncs=20',
    ])
    api.startBeside('kube-scheduler', ['--leader-elect=false', '--secure-port=0', ...fast])
    api.startBeside('kwok', ['--manage-all-nodes=true'])
    await inTurns(
      Array.from({ length: nodes }, (_, at) => nodeOf(`node-${at}`)),
      (node) => api.send('POST', '/api/v1/nodes', node),
    )
    await eventually(
      'the account',
      async () => (await api.get('/api/v1/namespaces/default/serviceaccounts/default')).status === 200,
    )
    await inTurns(
      Array.from({ length: deployments }, (_, at) => deploymentOf(`app-${at}`)),
      (each) => api.send('POST', '/apis/apps/v1/namespaces/default/deployments', each),
    )
    await eventually('all pods to be made', async () => (await count(pods, '')) === deployments * replicas, 900_000)
    await eventually(
      'all pods to run',
      async () => {
        const { body } = await api.get(`${pods}?limit=1&fieldSelector=status.phase%21%3DRunning`)
        return (JSON.parse(body) as { items: unknown[] }).items.length === 0
      },
      900_000,
    )
  })
  afterAll(async () => {
    await api?.stop()
    place.remove()
  })

  test('is listed, stored and looked up in', async () => {
    writeFileSync(join(place.path, 'token'), 'of-a-test')
    writeFileSync(join(place.path, 'ca.crt'), api.ca())
    const states = newSourceStates(() => {}, place.path)
    const source: Source = {
      ...{ name: 'prod', kind: 'kubernetes', url: api.url, credential: `file:${join(place.path, 'token')}` },
      ...{ writeCredential: null, scheme: null, headers: {}, caFile: join(place.path, 'ca.crt'), certFile: null },
      ...{ keyFile: null, options: {}, timeoutSeconds: 60, createdBy: 'ada', createdAt: '2026-11-21T12:00:00Z' },
    }
    const used = () => {
      globalThis.gc?.()
      return process.memoryUsage()
    }
    const before = used()
    const began = performance.now()
    expect(await probeSource(source, states)).toContain(`${nodes} nodes, ${deployments * replicas} pods`)
    note('first list of 1,000 nodes and 10,000 pods', `${((performance.now() - began) / 1_000).toFixed(1)} s`)
    const after = used()
    const mib = (of: 'heapUsed' | 'rss') => `${Math.round((after[of] - before[of]) / 2 ** 20)} MiB`
    note(
      'memory of the view',
      `heap ${mib('heapUsed')}, resident ${mib('rss')}${globalThis.gc ? '' : ', not collected before'}`,
    )
    const read = async (tool: string, args: Record<string, unknown>) => {
      const planned = planRead([source], tool, args)
      if (!planned.ok) throw new Error(planned.reason)
      const start = performance.now()
      const answer = await readSource(planned, states, { nowMs: Date.now(), incidentBeganMs: null })
      return { answer, ms: performance.now() - start }
    }
    const listed: number[] = []
    for (let at = 0; at < 20; at += 1)
      listed.push((await read('get_kubernetes', { kind: 'Deployment', namespace: 'default', name: `app-${at}` })).ms)
    const middle = (all: number[]) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)]!.toFixed(1)
    note('one Deployment, median of 20', `${middle(listed)} ms`)
    const diagnosed: number[] = []
    for (let at = 0; at < 20; at += 1)
      diagnosed.push((await read('pod_diagnosis', { namespace: 'default', name: `app-${at}` })).ms)
    note('diagnosis of a workload, median of 20', `${middle(diagnosed)} ms`)
    const loss = await read('kubernetes_node_loss', { nodes: ['node-1', 'node-2'] })
    expect(loss.answer.summary).toMatchObject({ stayPending: 0 })
    note('what two nodes would leave', `${(loss.ms / 1_000).toFixed(1)} s`)
    forgetSource(states, 'prod')
  })
})
