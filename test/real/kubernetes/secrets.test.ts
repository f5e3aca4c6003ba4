import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { pino } from 'pino'
import { syncTargets } from '../../../api/sync-targets.ts'
import { listResources, readContext, readStateOf } from '../../../sources/kinds.ts'
import { useApi } from '../../support/api.ts'
import { eventually } from '../../support/directory.ts'
import { note } from '../facts.ts'
import { plant } from './planted.ts'
import { lacking, pathOfManifest, type RealCluster, startRealCluster } from './site.ts'

/** What models, people, rows and pages get to see of a real cluster that is full of secrets. */

let cluster: RealCluster

;(lacking ? describe.skip : describe)(`a real cluster that is full of secrets${lacking ? ` (${lacking})` : ''}`, () => {
  beforeAll(async () => {
    cluster = await startRealCluster()
    await cluster.giveRights()
  })
  afterAll(async () => await cluster?.stop())
  const logged: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void logged.push(line) })
  const api = useApi(() => ({ sourcesDirectory: cluster.place, log }))

  test('shows none of 200 in contexts, answers, bodies, rows, pages and the log', async () => {
    const { namespace, planted, objects, events, definition, custom } = plant()
    expect(planted.length).toBe(200)
    for (const object of [...objects, definition]) await cluster.apply(object)
    for (const each of events) await cluster.api.create(pathOfManifest(each), each)
    await eventually(
      'the kind to be served',
      async () =>
        await cluster.api.create(pathOfManifest(custom), custom).then(
          () => true,
          () => false,
        ),
    )
    const source = cluster.sourceWith()
    const said: string[] = []
    const say = (what: unknown) => void said.push(JSON.stringify(what))
    const pods = await eventually('a container that ended twice', async () => {
      const found = (await cluster.api.list(`/api/v1/namespaces/${namespace}/pods`)) as {
        metadata: { name: string }
        status: { containerStatuses?: { restartCount: number }[] }
      }[]
      return found.some(({ status }) => (status.containerStatuses?.[0]?.restartCount ?? 0) >= 2) && found
    })
    say(await cluster.probe(source))
    const kinds = [
      'Pod',
      'Node',
      'Namespace',
      'Deployment',
      'ReplicaSet',
      'StatefulSet',
      'DaemonSet',
      'Job',
      'CronJob',
      'PersistentVolumeClaim',
      'Service',
      'Ingress',
      'ConfigMap',
      'ResourceQuota',
    ]
    for (const kind of kinds) say(await cluster.read(source, 'get_kubernetes', { kind, namespace }))
    const named: [string, string][] = [
      ...pods.map(({ metadata }): [string, string] => ['Pod', metadata.name]),
      ...['safe', 'pulls'].map((name): [string, string] => ['Deployment', name]),
      ...(
        (await cluster.api.list(`/apis/apps/v1/namespaces/${namespace}/replicasets`)) as {
          metadata: { name: string }
        }[]
      ).map(({ metadata }): [string, string] => ['ReplicaSet', metadata.name]),
      ...['settings', 'no-secrets-here'].map((name): [string, string] => ['ConfigMap', name]),
      ['Service', 'safe'],
    ]
    for (const [kind, name] of named) say(await cluster.read(source, 'get_kubernetes', { kind, namespace, name }))
    say(await cluster.read(source, 'get_kubernetes', { kind: 'Namespace', name: namespace }))
    for (const name of ['safe', 'pulls', ...pods.map(({ metadata }) => metadata.name)]) {
      say(await cluster.read(source, 'pod_diagnosis', { namespace, name }))
      say(await cluster.read(source, 'rollout_history', { namespace, name }))
      for (const previous of [false, true])
        say(
          await cluster
            .read(source, 'kubernetes_logs', { namespace, name, previous })
            .catch((error: Error) => error.message),
        )
    }
    say(await cluster.read(source, 'kubernetes_events', { namespace }))
    for (const kind of ['Secret', 'Vault'])
      say(await cluster.read(source, 'get_kubernetes', { kind, namespace }).catch((error: Error) => error.message))
    for (const [kind, id, name] of [
      ['workload', `prod:${namespace}:deployment:safe`, 'safe'],
      ['workload', `prod:${namespace}:deployment:pulls`, 'pulls'],
      ['namespace', `prod:${namespace}`, namespace],
      ['cluster_service', `prod:${namespace}:safe`, 'safe'],
      ['cluster', 'prod', 'prod'],
    ] as const) {
      say(await readContext('cluster', [source], { kind, id, name, pod: null }, cluster.states))
      say(await readStateOf(source, { kind, id, name }, cluster.states))
    }
    say(await listResources(source, cluster.states))
    await sayPages(say, `prod:${namespace}:deployment:safe`)

    expect(logged.length).toBeGreaterThan(0)
    said.push(...logged)
    const all = said.join('\n')
    const parts = [
      'BackOff',
      '[redacted:',
      'key-3',
      'SETTING_2',
      'Planted3',
      'Failed to pull image',
      'error:',
      'source.read',
    ]
    expect(parts.filter((part) => !all.includes(part))).toEqual([])
    const found = planted.filter(({ secret }) =>
      [secret, Buffer.from(secret).toString('base64').replace(/=+$/, '')].some(
        (form) => all.includes(form) || all.includes(form.slice(0, 12)),
      ),
    )
    expect(found.map(({ road, secret }) => `${road}: ${secret}`)).toEqual([])
    // The server shows them to who may do everything.
    const there = await whatIsThere(namespace)
    expect(
      planted
        .filter(({ secret }) => !there.includes(secret.slice(0, 12)))
        .map(({ road, secret }) => `${road}: ${secret}`),
    ).toEqual([])
    note(
      'planted secrets in a cluster',
      `${planted.length}, found in ${said.length} answers (${Math.round(all.length / 1_000)} kB): ${found.length}`,
    )
  })

  /** An incident about it, its context and its pages, and the rows behind them. */
  async function sayPages(say: (what: unknown) => void, id: string): Promise<void> {
    const { url, caFile, credential } = cluster.sourceWith()
    const put = await api.put('/sources/prod', { body: { kind: 'kubernetes', url, caFile, credential } })
    expect(put.status).toBe(200)
    await syncTargets(api.api.deps)
    const alert = {
      status: 'firing',
      labels: { alertname: 'KubePodCrashLooping', namespace: 'vault', deployment: 'safe', severity: 'critical' },
      annotations: {},
      startsAt: new Date().toISOString(),
    }
    await api.post('/ingest/alertmanager', { body: { version: '4', status: 'firing', alerts: [alert] } })
    const { body } = await api.get('/incidents')
    const [incident] = body.items as unknown as { id: string; resource: { id: string } | null }[]
    expect(incident?.resource?.id).toBe(id)
    for (const path of [
      `/incidents/${incident?.id}/cluster`,
      `/inventory/resources/workload/${id}`,
      '/inventory/resources',
      '/sources',
      '/status',
    ]) {
      const answer = await api.get(path)
      expect(answer.status).toBe(200)
      say(answer.body)
    }
    for (const tool of ['pod_diagnosis', 'kubernetes_logs', 'rollout_history'])
      say((await api.post('/sources/read', { body: { tool, arguments: { namespace: 'vault', name: 'safe' } } })).body)
    for (const table of ['resourceSource', 'clusterMember', 'audit'] as const)
      say(await api.api.deps.db.selectFrom(table).selectAll().execute())
  }

  async function whatIsThere(namespace: string): Promise<string> {
    const core = ['pods', 'configmaps', 'secrets', 'services', 'events'].map(
      (plural) => `/api/v1/namespaces/${namespace}/${plural}`,
    )
    const paths = [
      ...core,
      `/api/v1/namespaces/${namespace}`,
      `/apis/apps/v1/namespaces/${namespace}/deployments`,
      `/apis/example.com/v1/namespaces/${namespace}/vaults`,
    ]
    const texts = await Promise.all(paths.map((path) => cluster.api.text(path)))
    const secrets = (await cluster.api.list(`/api/v1/namespaces/${namespace}/secrets`)) as {
      data: Record<string, string>
    }[]
    const decoded = secrets.flatMap(({ data }) =>
      Object.values(data).map((each) => Buffer.from(each, 'base64').toString()),
    )
    // A text within a text is written with its quotes and signs escaped.
    return [...texts, ...decoded].join('\n').replaceAll('\\\\', '\\').replaceAll('\\u0026', '&')
  }
})
