import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { syncTargets } from '../../../api/sync-targets.ts'
import type { ClusterNow, PodLog } from '../../../domain/cluster-now.ts'
import { forgetSource } from '../../../sources/ask.ts'
import { nodeOf, putCrashLoop } from '../../sources/kubernetes/site.ts'
import { useApi } from '../../support/api.ts'
import { type StandInCluster, startCluster } from '../../support/cluster-server.ts'
import { temporaryDirectory } from '../../support/directory.ts'

const directory = temporaryDirectory().path
const api = useApi(() => ({ sourcesDirectory: directory }))
let cluster: StandInCluster
const pod = 'web-7fd8966c8d-8cjqz'

beforeAll(async () => {
  cluster = await startCluster()
  putCrashLoop(cluster)
  const ill = nodeOf('node-7', '10.0.0.7')
  cluster.put('Node', {
    ...ill,
    status: { conditions: [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' }] },
  })
  const told = {
    metadata: { name: 'node-8' },
    spec: {},
    status: { addresses: [{ type: 'InternalIP', address: '10.0.0.8' }] },
  }
  cluster.put('Node', told)
  cluster.logs.set(`shop/${pod}`, '2026-11-21T11:55:01Z it starts\n2026-11-21T11:55:02Z password=planted-in-log\n')
  cluster.logs.set(`shop/${pod} previous`, '2026-11-21T11:50:02Z unknown setting cache_sise\n')
  await api.put('/inventory', { body: { nodes: [{ id: 'metal-8', hostname: 'metal-8.example.com', ip: '10.0.0.8' }] } })
  writeFileSync(join(directory, 'token'), 'token-of-a-test')
  const body = { kind: 'kubernetes', url: cluster.url, credential: `file:${join(directory, 'token')}` }
  expect((await api.put('/sources/prod', { body })).status).toBe(200)
  await syncTargets(api.api.deps)
})
afterAll(async () => {
  forgetSource(api.api.deps.sources, 'prod')
  await cluster.stop()
})

const web = '/resources/workload/prod:shop:deployment:web/cluster'
const now = async (path: string) => (await api.get(path)).body as unknown as ClusterNow

describe('the page of a resource in a cluster', () => {
  test('the page shows the state of a workload, how its container ended, the change of the newest rollout and the events', async () => {
    const { facts, conditions, pods, worst, rollouts, changes, events, partial } = await now(web)
    expect(facts).toContainEqual({ name: 'Ready', text: '0 of 1', isIll: true })
    expect(conditions.map(({ of, type, is, isIll }) => [of, type, is, isIll])).toEqual([
      ['Deployment shop/web', 'Available', 'False', true],
      [`Pod ${pod}`, 'Ready', 'False', true],
    ])
    expect(pods).toEqual([
      { state: 'CrashLoopBackOff', isWell: false, count: 1, pods: [{ name: pod, node: 'node-1', restarts: 9 }] },
    ])
    expect(worst?.containers[0]?.ends).toEqual([
      { isBefore: true, reason: 'Error', exitCode: 3, at: '2026-11-21T11:55:02Z', ranFor: '2 s', message: '' },
    ])
    expect(rollouts.map(({ revision }) => revision)).toEqual([2, 1])
    expect(rollouts[0]?.changed).toContain('container app image: web:1 → web:2')
    expect(changes).toContainEqual({
      text: 'ConfigMap web-config was changed by kubectl-edit',
      at: '2026-11-21T11:20:00Z',
    })
    expect(events[0]).toMatchObject({ reason: 'BackOff', count: 40 })
    expect(partial).toEqual([])
  })

  test('the page shows the unhealthy pods of a node, each with its workload', async () => {
    const { facts, conditions, unwell } = await now('/resources/node/prod:node-1/cluster')
    expect(facts[0]).toEqual({ name: 'Node', text: 'node-1, ready', isIll: false })
    expect(conditions.map(({ type, is }) => [type, is])).toEqual([['Ready', 'True']])
    expect(unwell).toEqual([
      { kind: 'pod', text: `shop/${pod}: CrashLoopBackOff, 9 restarts`, resource: 'workload:prod:shop:deployment:web' },
    ])
  })

  test('the page shows the unhealthy parts of a cluster by their ids in the registry', async () => {
    const { facts, unwell, heardAt } = await now('/resources/cluster/prod/cluster')
    expect(facts).toContainEqual({ name: 'Nodes', text: '1 of 3 ready', isIll: true })
    expect(unwell.map(({ kind, resource }) => [kind, resource])).toEqual([
      ['node', 'node:prod:node-7'],
      ['node', 'node:metal-8'],
      ['workload', 'workload:prod:shop:deployment:web'],
    ])
    // The time is told in whole seconds.
    expect(Date.parse(heardAt ?? '')).toBeGreaterThanOrEqual(beganMs - 1_000)
  })

  test('the page shows no value of an environment variable, an argument or a ConfigMap, and no password of a log', async () => {
    const answers = await Promise.all(
      [web, `${web}/log`, '/resources/cluster/prod/cluster'].map((each) => api.get(each)),
    )
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(JSON.stringify(answers.map(({ body }) => body))).not.toContain('planted')
  })

  test('the page is for people who may read, and exists for resources of a cluster', async () => {
    expect((await api.get(web, { as: api.tokens.ingest })).status).toBe(403)
    expect((await api.get(`${web}/log`, { as: api.tokens.ingest })).status).toBe(403)
    expect((await api.get('/resources/workload/prod:shop:deployment:none/cluster')).status).toBe(404)
    expect((await api.get('/resources/node/prod:node-1/cluster/log')).status).toBe(404)
  })
})

describe('the log of a pod', () => {
  test('the log is that of the worst pod or of the container before, and each reading is in the audit log', async () => {
    const own = (await api.get(`${web}/log`)).body as unknown as PodLog
    expect([own.pod, own.container, own.containers, own.isPrevious]).toEqual([pod, 'app', ['app'], false])
    expect(own.lines[0]).toEqual({ at: '2026-11-21T11:55:01Z', text: 'it starts' })
    const before = (await api.get(`${web}/log?pod=${pod}&previous=true`)).body as unknown as PodLog
    expect(before.lines.map(({ text }) => text)).toEqual(['unknown setting cache_sise'])
    const rows = await api.db.selectFrom('audit').select('detail').where('what', '=', 'source.read').execute()
    expect(rows.some(({ detail }) => detail?.includes('"previous":true'))).toBe(true)
  })

  test('the log of a pod of another workload is refused', async () => {
    const { status, body } = await api.get(`${web}/log?pod=db-0`)
    expect([status, body.code]).toEqual([424, 'REJECTED'])
    expect(body.detail).toBe('prod: db-0 is not a pod of the workload now, so it has no log')
  })

  test('the log has at most the newest 500 lines', async () => {
    const lines = Array.from({ length: 700 }, (_, at) => `2026-11-21T11:55:02Z line ${at}`)
    cluster.logs.set(`shop/${pod}`, lines.join('\n'))
    const { lines: shown, isCut } = (await api.get(`${web}/log`)).body as unknown as PodLog
    expect([shown.length, shown.at(-1)?.text, isCut]).toEqual([500, 'line 699', true])
  })
})

const beganMs = Date.now()

test('a cluster that does not let its events be read leaves them out with the reason, and a revoked account is reported', async () => {
  cluster.refuse('Event', { status: 403, message: 'forbidden' })
  const { events, partial, pods } = await now(web)
  expect([events, pods.length]).toEqual([[], 1])
  expect(partial).toEqual([
    expect.stringMatching(/^events: prod does not let the account of Nightshift read events in shop: the role lacks/),
  ])
  cluster.allow('Event')
  cluster.refuse('log', { status: 401 })
  const { status, body } = await api.get(`${web}/log`)
  cluster.allow('log')
  expect([status, body.code]).toEqual([424, 'UNAUTHORIZED'])
})
