import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { syncTargets } from '../../api/sync-targets.ts'
import { findAlertResources, neighboursOf } from '../../db/inventory/resources.ts'
import { forgetSource } from '../../sources/ask.ts'
import { nodeOf, putCrashLoop } from '../sources/kubernetes/site.ts'
import { useApi } from '../support/api.ts'
import { type StandInCluster, startCluster } from '../support/cluster-server.ts'
import { eventually, temporaryDirectory } from '../support/directory.ts'

const directory = temporaryDirectory().path
const api = useApi(() => ({ sourcesDirectory: directory }))
let cluster: StandInCluster

beforeAll(async () => {
  cluster = await startCluster()
  writeFileSync(join(directory, 'token'), 'token-of-a-test')
  await api.put('/inventory', {
    body: {
      nodes: [
        { id: 'metal-1', hostname: 'metal-1.example.com', ip: '10.0.0.1' },
        { id: 'metal-7', hostname: 'metal-7.example.com', ip: '10.0.0.7' },
      ],
    },
  })
  putCluster()
  const options = { names: 'k8s-prod-1' }
  const body = { kind: 'kubernetes', url: cluster.url, credential: `file:${join(directory, 'token')}`, options }
  expect((await api.put('/sources/prod', { body })).status).toBe(200)
  await sync()
})
afterAll(async () => {
  forgetSource(api.api.deps.sources, 'prod')
  await cluster.stop()
})

const sync = () => syncTargets(api.api.deps)

const owner = (kind: string, name: string) => [{ kind, name, uid: `uid-of-${kind}-${name}`, controller: true }]
const owned = (name: string, kind: string, of: string, more = {}) => ({
  metadata: { name, namespace: 'shop', ownerReferences: owner(kind, of), ...more },
  spec: { nodeName: 'node-2' },
  status: { phase: 'Running' },
})

function putCluster(): void {
  const { put } = cluster
  putCrashLoop(cluster)
  put('Node', nodeOf('node-2', '10.0.0.2'))
  put('StatefulSet', { metadata: { name: 'db', namespace: 'shop' }, spec: { replicas: 1 }, status: {} })
  put('Pod', {
    ...owned('db-0', 'StatefulSet', 'db'),
    spec: { nodeName: 'node-2', volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data-db-0' } }] },
  })
  put('PersistentVolumeClaim', {
    metadata: { name: 'data-db-0', namespace: 'shop' },
    spec: {},
    status: { phase: 'Bound' },
  })
  put('CronJob', { metadata: { name: 'backup', namespace: 'shop' }, spec: {}, status: {} })
  put('Job', { ...owned('backup-29401920', 'CronJob', 'backup'), spec: {}, status: {} })
  put('Pod', owned('backup-29401920-x2x9k', 'Job', 'backup-29401920'))
  put('Service', { metadata: { name: 'web', namespace: 'shop' }, spec: { selector: { app: 'web' } } })
  put('Ingress', {
    metadata: { name: 'shop', namespace: 'shop' },
    spec: { rules: [{ http: { paths: [{ backend: { service: { name: 'web' } } }] } }] },
  })
  // A pod that says that it is of a Deployment, with a uid that is not that of it.
  put('Pod', {
    metadata: {
      name: 'liar',
      namespace: 'shop',
      labels: { app: 'web' },
      ownerReferences: [{ kind: 'Deployment', name: 'web', uid: 'made-up', controller: true }],
    },
    spec: { nodeName: 'node-2' },
    status: { phase: 'Running' },
  })
}

const exporter = {
  job: 'kube-state-metrics',
  instance: '10.42.0.9:8080',
  service: 'kube-state-metrics',
  endpoint: 'http',
}
const find = async (labels: Record<string, string>) => {
  const [found] = await findAlertResources(api.api.deps.db, [labels], [])
  return found?.resource ? `${found.resource.kind}:${found.resource.id}` : null
}

describe('alerts of kube-state-metrics, cAdvisor and the rules of kube-prometheus find their resources', () => {
  test.each([
    [
      'KubePodCrashLooping',
      {
        ...exporter,
        namespace: 'shop',
        pod: 'web-7fd8966c8d-8cjqz',
        container: 'app',
        reason: 'CrashLoopBackOff',
        uid: 'u',
      },
      'workload:prod:shop:deployment:web',
    ],
    [
      'the same without honoured labels',
      {
        ...exporter,
        namespace: 'monitoring',
        pod: 'kube-state-metrics-7d9f8b6c5-x2x9k',
        exported_namespace: 'shop',
        exported_pod: 'web-7fd8966c8d-8cjqz',
      },
      'workload:prod:shop:deployment:web',
    ],
    [
      'KubeDeploymentReplicasMismatch',
      { ...exporter, namespace: 'shop', deployment: 'web' },
      'workload:prod:shop:deployment:web',
    ],
    [
      'an alert about a ReplicaSet',
      { ...exporter, namespace: 'shop', replicaset: 'web-5cd6c546f7' },
      'workload:prod:shop:deployment:web',
    ],
    [
      'KubeStatefulSetReplicasMismatch',
      { ...exporter, namespace: 'shop', statefulset: 'db' },
      'workload:prod:shop:statefulset:db',
    ],
    [
      'KubeJobFailed',
      { ...exporter, namespace: 'shop', job_name: 'backup-29401920' },
      'workload:prod:shop:cronjob:backup',
    ],
    [
      'a pod of a CronJob',
      { ...exporter, namespace: 'shop', pod: 'backup-29401920-x2x9k' },
      'workload:prod:shop:cronjob:backup',
    ],
    ['KubeNodeNotReady', { ...exporter, node: 'node-2', condition: 'Ready', status: 'true' }, 'node:prod:node-2'],
    [
      'CPUThrottlingHigh',
      { namespace: 'shop', pod: 'db-0', container: 'postgres' },
      'workload:prod:shop:statefulset:db',
    ],
    [
      'a series of cAdvisor',
      {
        job: 'kubelet',
        metrics_path: '/metrics/cadvisor',
        instance: '10.0.0.2:10250',
        node: 'node-2',
        namespace: 'shop',
        pod: 'db-0',
        container: 'postgres',
        id: '/kubepods/burstable/pod1',
        image: 'postgres:17',
        name: 'abc',
      },
      'workload:prod:shop:statefulset:db',
    ],
    [
      'KubePersistentVolumeFillingUp',
      {
        job: 'kubelet',
        metrics_path: '/metrics',
        instance: '10.0.0.2:10250',
        node: 'node-2',
        namespace: 'shop',
        persistentvolumeclaim: 'data-db-0',
      },
      'volume_claim:prod:shop:data-db-0',
    ],
    [
      'an ingress controller',
      {
        job: 'ingress-nginx',
        instance: '10.42.0.3:10254',
        namespace: 'ingress-nginx',
        pod: 'ingress-nginx-controller-abc',
        exported_namespace: 'shop',
        ingress: 'shop',
      },
      'ingress:prod:shop:shop',
    ],
    [
      'KubeQuotaExceeded',
      { ...exporter, namespace: 'shop', resourcequota: 'q', resource: 'pods' },
      'namespace:prod:shop',
    ],
    [
      'a node whose machine is known by its address',
      { ...exporter, node: 'node-1', condition: 'MemoryPressure' },
      'node:metal-1',
    ],
    ['the node exporter of that machine', { job: 'node', instance: '10.0.0.1:9100' }, 'node:metal-1'],
    ['a pod that nobody knows', { ...exporter, namespace: 'shop', pod: 'never-seen' }, 'namespace:prod:shop'],
    ['a pod that claims an owner', { ...exporter, namespace: 'shop', pod: 'liar' }, 'namespace:prod:shop'],
  ])('%s', async (_, labels, wanted) => expect(await find(labels)).toBe(wanted))
})

test('a cluster is named by the labels of its source, and an alert with other labels is not about it', async () => {
  const labels = { ...exporter, namespace: 'shop', deployment: 'web' }
  expect(await find({ ...labels, cluster: 'k8s-prod-1' })).toBe('workload:prod:shop:deployment:web')
  expect(await find({ ...labels, cluster: 'k8s-test-1' })).toBeNull()
})

test('a cluster is a resource with its nodes, namespaces, workloads and what leads to the workloads', async () => {
  const shown = async (key: string) => {
    const { body } = await api.get(`/inventory/resources/${key.replace(':', '/')}`)
    return (body.relations as unknown as { from: string; kind: string; to: string }[])
      .filter(({ from }) => from === key)
      .map(({ kind, to }) => `${kind} ${to}`)
      .sort()
  }
  expect(await shown('workload:prod:shop:statefulset:db')).toEqual([
    'belongs_to namespace:prod:shop',
    'depends_on volume_claim:prod:shop:data-db-0',
    'runs_on node:prod:node-2',
  ])
  expect(await shown('ingress:prod:shop:shop')).toEqual([
    'belongs_to namespace:prod:shop',
    'depends_on cluster_service:prod:shop:web',
  ])
  expect(await shown('cluster_service:prod:shop:web')).toContain('depends_on workload:prod:shop:deployment:web')
  expect(await shown('namespace:prod:shop')).toEqual(['belongs_to cluster:prod'])
})

test('an incident about a pod begins with the state of its workload, and the workload has a state', async () => {
  const labels = {
    alertname: 'KubePodCrashLooping',
    severity: 'critical',
    namespace: 'shop',
    pod: 'web-7fd8966c8d-8cjqz',
  }
  const alert = { status: 'firing', labels, annotations: {}, startsAt: new Date().toISOString() }
  await api.post('/ingest/alertmanager', { body: { version: '4', status: 'firing', alerts: [alert] } })
  const { body } = await api.get('/incidents')
  const [incident] = body.items as unknown as { id: string; resource: unknown }[]
  expect(incident?.resource).toEqual({ kind: 'workload', id: 'prod:shop:deployment:web' })
  const { items } = (await api.get(`/incidents/${incident?.id}/cluster`)).body as unknown as {
    items: { source: string; facts: string[] }[]
  }
  const facts = items[0]?.facts ?? []
  expect(items).toMatchObject([{ source: 'prod' }])
  expect(facts[0]).toBe('Deployment shop/web: 0 of 1 pods ready, 1 wanted; not ready: 1 CrashLoopBackOff')
  expect(facts.join('\n')).toContain(
    'revision 2 (web-7fd8966c8d) at 2026-11-21T11:30:00Z: container app image: web:1 → web:2',
  )
  expect(Buffer.byteLength(JSON.stringify(facts))).toBeLessThanOrEqual(1_500)
  const state = await api.get('/resources/workload/prod:shop:deployment:web/state')
  expect(state.body).toMatchObject({ health: 'degraded', fields: { wanted: 1, revision: 0, paused: false } })
  expect((await api.get('/resources/node/prod:node-2/state')).body).toMatchObject({
    health: 'nominal',
    observed: 'node node-2 is ready',
  })
})

test('a cluster that does not answer is one line of the context, with the reason', async () => {
  const { body } = await api.get('/incidents')
  const [incident] = body.items as unknown as { id: string }[]
  cluster.refuse('Pod', { status: 403 })
  forgetSource(api.api.deps.sources, 'prod')
  const { items } = (await api.get(`/incidents/${incident?.id}/cluster`)).body as unknown as {
    items: { notRead?: string }[]
  }
  expect(items).toMatchObject([
    { source: 'prod', notRead: expect.stringContaining('does not let the account of Nightshift read pods') },
  ])
  cluster.allow('Pod')
  forgetSource(api.api.deps.sources, 'prod')
  await sync()
})

test('a cluster adds no neighbour on which a write would run without approval', async () => {
  for (const [kind, id] of [
    ['workload', 'prod:shop:deployment:web'],
    ['node', 'prod:node-2'],
    ['node', 'metal-1'],
    ['cluster', 'prod'],
  ] as const) {
    const near = await neighboursOf(api.api.deps.db, { kind, id })
    expect(near.filter((each) => each.id.startsWith('prod'))).toEqual([])
  }
})

test('an address that two nodes of a cluster claim belongs to neither machine', async () => {
  cluster.put('Node', nodeOf('node-8', '10.0.0.7'))
  cluster.put('Node', nodeOf('node-9', '10.0.0.7'))
  await eventually('both', async () => {
    await sync()
    return (await find({ ...exporter, node: 'node-9' })) === 'node:prod:node-9'
  })
  expect(await find({ ...exporter, node: 'node-8' })).toBe('node:prod:node-8')
  expect(await find({ job: 'node', instance: 'metal-7.example.com:9100' })).toBe('node:metal-7')
})

test('a deleted pod finds its workload, also after a restart of this process', async () => {
  cluster.put('Pod', owned('db-1', 'StatefulSet', 'db', { uid: 'uid-of-db-1' }))
  const pod = { ...exporter, namespace: 'shop', pod: 'web-7fd8966c8d-8cjqz' }
  cluster.remove('Pod', 'shop', 'web-7fd8966c8d-8cjqz')
  forgetSource(api.api.deps.sources, 'prod')
  await sync()
  expect(await find(pod)).toBe('workload:prod:shop:deployment:web')
  const rows = await api.api.deps.db
    .selectFrom('clusterMember')
    .select(['name', 'goneAt'])
    .where('goneAt', 'is not', null)
    .execute()
  expect(rows.map(({ name }) => name)).toEqual(['web-7fd8966c8d-8cjqz'])
})

test('a name of 253 characters has an id and can be found', async () => {
  const name = `${'long-'.repeat(50)}end`
  cluster.put('StatefulSet', { metadata: { name, namespace: 'shop', uid: 'uid-of-long' }, spec: {}, status: {} })
  await eventually('it', async () => {
    await sync()
    return /^workload:prod:shop:statefulset:long-.*-[0-9a-f]{12}$/.test(
      (await find({ ...exporter, namespace: 'shop', statefulset: name })) ?? '',
    )
  })
})

test('a source that becomes another cluster forgets the resources of the first', async () => {
  const other = await startCluster()
  other.put('Node', nodeOf('other-1', '10.9.0.1'))
  // Another server is another place for a credential: a new file is for this one.
  writeFileSync(join(directory, 'other-token'), 'token-of-another')
  const body = { kind: 'kubernetes', url: other.url, credential: `file:${join(directory, 'other-token')}` }
  expect((await api.put('/sources/prod', { body })).status).toBe(200)
  await sync()
  expect(await find({ ...exporter, namespace: 'shop', deployment: 'web' })).toBeNull()
  expect(await find({ ...exporter, node: 'other-1' })).toBe('node:prod:other-1')
  expect(await api.api.deps.db.selectFrom('clusterMember').select('name').execute()).toEqual([])
  forgetSource(api.api.deps.sources, 'prod')
  await other.stop()
})
