import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Server } from 'node:net'
import { delimiter, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import pg from 'pg'
import { cgroupOf, cgroupRoots } from '../../../lab/kubernetes/drawer.ts'
import { type Postgres, startPostgres } from '../../../start/postgres.ts'
import { searchAttributes, startTemporal, type Temporal } from '../../../start/temporal.ts'
import { findTemporalCli } from '../../../start/temporal-cli.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { type ScriptedModel, scriptedModel } from '../../support/scripted-model.ts'
import { note } from '../facts.ts'
import { findProgram, whyNot } from '../kinds.ts'
import { askBehind, openPassage, type Passage, socketTo } from '../passage.ts'
import { imageArchive } from './image.ts'
import { type OneNode, startOneNode } from './one-node.ts'

type Pod = {
  metadata: { namespace: string; name: string; labels: Record<string, string> }
  spec: { containers: { image: string }[] }
  status: { podIP: string }
}

const namesPolicy = (address: string) => `---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: name-server, namespace: nightshift }
spec:
  podSelector: {}
  policyTypes: [Egress]
  egress:
    - to: [{ ipBlock: { cidr: ${address}/32 } }]
      ports: [{ protocol: UDP, port: 53 }, { protocol: TCP, port: 53 }]
`

const lacking = whyNot('deploy')
const checkout = join(import.meta.dirname, '../../..')
const page = readFileSync(join(checkout, 'docs/how-to/production.md'), 'utf8')
const section = page.slice(page.indexOf('## On Kubernetes'), page.indexOf('## TLS and a proxy'))

;(lacking ? describe.skip : describe)(`the manifests on a real node${lacking ? ` (${lacking})` : ''}`, () => {
  const place = temporaryDirectory()
  const at = (name: string) => join(place.path, name)
  let node: OneNode
  let postgres: Postgres
  let temporal: Temporal
  let model: ScriptedModel
  let owner: pg.Client
  const open: (Server | Passage)[] = []
  const token = (name: string) => readFileSync(at(`${name}-token`), 'utf8').trim()
  const ask = (path: string, more: { token?: string; body?: unknown } = {}) => askBehind(at('service'), path, more)

  beforeAll(async () => {
    const image = await imageArchive(place.path)
    note('image', `${Math.round(readFileSync(image).length / 1e6)} MB`)
    const began = performance.now()
    node = await startOneNode(place.path, [image])
    note('node ready with the image imported by ctr in', `${Math.round((performance.now() - began) / 1_000)} s`)
    postgres = await startPostgres({ dir: at('postgres'), durable: false })
    const cli = await findTemporalCli({ rootDir: checkout, env: process.env })
    temporal = await startTemporal({
      cli: cli.path,
      dir: null,
      searchAttributes,
      logFile: at('temporal.log'),
      env: process.env,
    })
    model = await scriptedModel(() => [{ tool: 'escalate', arguments: { reason: 'a person has to look at it' } }])
    owner = new pg.Client({ connectionString: postgres.url })
    await owner.connect()
    const ports = {
      db: postgres.port,
      temporal: Number(temporal.address.split(':')[1]),
      model: Number(new URL(model.url).port),
    }
    for (const [name, port] of Object.entries(ports)) open.push(await socketTo(port, at(name)))
    const out = [
      { socket: at('db'), host: node.address, port: 5432 },
      { socket: at('temporal'), host: node.address, port: 7233 },
      { socket: at('model'), host: node.address, port: 8000 },
    ]
    open.push(await openPassage(node.pid, { out }))
  })
  afterAll(async () => {
    for (const each of open.reverse()) await ('stop' in each ? each.stop() : each.close())
    await owner?.end()
    await node?.stop()
    await model?.stop()
    await temporal?.stop(0)
    await postgres?.stop(0)
    place.remove()
  })

  /** The folder as a person fills it in. */
  function fillIn(): void {
    cpSync(join(checkout, 'deploy'), at('deploy'), { recursive: true })
    const change = (name: string, pairs: [RegExp, string][]) => {
      const file = at(`deploy/kubernetes/${name}`)
      const text = pairs.reduce(
        (said, [from, to]) => {
          expect(said).toMatch(from)
          return said.replace(from, to)
        },
        readFileSync(file, 'utf8'),
      )
      writeFileSync(file, text)
    }
    change('site.yaml', [
      [/postgresql: \S+/, `postgresql: ${node.address}/32`],
      [/temporal: \S+/, `temporal: ${node.address}/32`],
      [/model: \S+/, `model: ${node.address}/32`],
    ])
    // This cluster's name server is no pod: a site's further connections get a policy each.
    appendFileSync(at('deploy/kubernetes/network-policies.yaml'), namesPolicy(node.address))
    change('settings.env', [
      [/TEMPORAL_ADDRESS=.*/, `TEMPORAL_ADDRESS=${node.address}:7233`],
      [/AGENT_ENABLED=false/, 'AGENT_ENABLED=true\nQUEUE_INTERVAL_SECONDS=2'],
      [/# LLM_BASE_URL=.*/, `LLM_BASE_URL=http://${node.address}:8000/v1`],
    ])
  }

  /** What a block of the page says, in a shell of somebody who has kubectl and a kubeconfig. */
  async function walk(block: string): Promise<string> {
    const shell = spawn('bash', ['-e'], {
      cwd: place.path,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: {
        PATH: [dirname(findProgram('kubectl')!), '/usr/bin', '/bin'].join(delimiter),
        HOME: place.path,
        KUBECONFIG: node.kubeconfig,
      },
    })
    let said = ''
    for (const stream of [shell.stdout, shell.stderr])
      stream.on('data', (bytes) => {
        said += bytes
      })
    shell.stdin.end(block)
    const [code] = await once(shell, 'close')
    if (code !== 0) throw new Error(`${said.slice(-2_000)}\n${await troubles()}`)
    return said
  }

  async function troubles(): Promise<string> {
    const asked = [
      ['get', 'pods', '-o', 'wide'],
      ['get', 'events', '--sort-by=.lastTimestamp'],
      ['logs', '--tail=20', '--all-containers', '-l', 'app.kubernetes.io/part-of=nightshift'],
      ['logs', '--tail=20', 'deploy/nightshift-api'],
      ['logs', '--tail=20', 'deploy/nightshift-worker'],
    ]
    const said = await Promise.all(asked.map((words) => node.kubectl('-n', 'nightshift', ...words).catch(String)))
    return said.join('\n')
  }

  test('the words of the page lead to a complete migration, a ready API and a ready worker', async () => {
    await owner.query(`create role nightshift_app nologin`)
    await owner.query(`create role site login password 'of-the-owner'`)
    await owner.query(`grant nightshift_app to site`)
    await owner.query(`create database site owner site`)
    await owner.query(`create role nightshift_services login password 'of-the-services' in role nightshift_app`)
    fillIn()
    const [block = ''] = [...section.matchAll(/^```\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text)
    const server = `${node.address}:5432/site`
    const filled = block
      .replace('nightshift:…@db.example.com:5432/nightshift', `site:of-the-owner@${server}`)
      .replace('nightshift_services:…@db.example.com:5432/nightshift', `nightshift_services:of-the-services@${server}`)
    expect(filled).not.toContain('…')
    const began = performance.now()
    const named = nameTheService()
    const said = await walk(filled)
    await named
    note('from the first word to all pods ready', `${Math.round((performance.now() - began) / 1_000)} s`)
    expect(said).toContain('job.batch/nightshift-migrate-0-2-0 condition met')
    expect(said).toContain('deployment "nightshift-worker" successfully rolled out')
    // Pods that the namespace refuses would be warned of, and named in events.
    expect(said).not.toMatch(/would violate|forbidden/i)
    expect(await node.kubectl('-n', 'nightshift', 'get', 'events')).not.toMatch(/PodSecurity|forbidden/)
  })

  /** A cluster has a name server: this one knows the API's Service. */
  async function nameTheService(): Promise<void> {
    const service = await eventually('the Service to be there', () =>
      node.api.find('/api/v1/namespaces/nightshift/services/nightshift-api').catch(() => null),
    )
    const host = service.spec.clusterIP
    const table = { 'nightshift-api.nightshift.svc.cluster.local': host }
    const into = [{ socket: at('service'), host, port: 8080 }]
    open.push(await openPassage(node.pid, { into, names: { host: node.address, table } }))
  }

  async function onSite<T>(ask: (site: pg.Client) => Promise<T>): Promise<T> {
    const site = new pg.Client({ connectionString: postgres.url.replace(/\/nightshift$/, '/site') })
    await site.connect()
    return await ask(site).finally(() => site.end())
  }

  const pods = async (part: string) => {
    const list = await node.api.list(
      `/api/v1/namespaces/nightshift/pods?labelSelector=app.kubernetes.io/name=nightshift-${part}`,
    )
    return list.filter(({ metadata }) => !metadata.deletionTimestamp)
  }

  test('each pod runs as user 1000 on a root file system that it cannot write to, without a token of the cluster, and has not restarted', async () => {
    for (const part of ['api', 'worker']) {
      const running = await pods(part)
      expect(running).toHaveLength(2)
      for (const { metadata, status } of running) {
        const look =
          'id -u; grep -E "^(Seccomp|CapEff|NoNewPrivs)" /proc/1/status; touch /opt/nightshift/x 2>&1; touch /tmp/x && echo may; ls /var/run/secrets 2>&1'
        const said = await node.kubectl('-n', 'nightshift', 'exec', metadata.name, '--', 'sh', '-c', `${look}; true`)
        expect(said).toMatch(
          /^1000\nCapEff:\t0+\nNoNewPrivs:\t1\nSeccomp:\t2\n(Seccomp_filters:\t\d+\n)?touch: .*Read-only file system\nmay\nls: .*No such file/,
        )
        expect(status.containerStatuses[0].restartCount).toBe(0)
      }
    }
    note('pods as user 1000 on a read-only root, without capabilities and token', 4)
  })

  /** Whether a pod's connection is made; plugins reject what a policy refuses, or drop it. */
  async function reaches(pod: { metadata: { namespace: string; name: string } }, host: string, port: number) {
    const look = `const s = require('net').connect({ host: '${host}', port: ${port}, timeout: 5000 });
      for (const [event, said] of [['connect', 'reached'], ['timeout', 'refused'], ['error', 'refused']])
        s.once(event, () => { console.log(said); process.exit(0) })`
    const { namespace, name } = pod.metadata
    return (await node.kubectl('-n', namespace, 'exec', name, '--', 'node', '-e', look)).trim()
  }

  test('the policies hold: no pod of another namespace reaches ours, and ours reach nothing that is not listed', async () => {
    const [api] = (await pods('api')) as [Pod]
    const [worker] = (await pods('worker')) as [Pod]
    const { image } = api.spec.containers[0]!
    const stranger = await node.api.create('/api/v1/namespaces/default/pods', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'stranger', labels: api.metadata.labels },
      spec: { containers: [{ name: 'c', image, imagePullPolicy: 'Never', command: ['sleep', '3600'] }] },
    })
    await node.kubectl('-n', 'default', 'wait', '--for=condition=Ready', '--timeout=2m', 'pod/stranger')
    const kubelet = 10_250
    expect({
      'the worker at the API': await reaches(worker, api.status.podIP, 8080),
      'a stranger with the same labels at the API': await reaches(stranger, api.status.podIP, 8080),
      'a stranger at the kubelet, which is closed to nobody here': await reaches(stranger, node.address, kubelet),
      'the worker at the kubelet': await reaches(worker, node.address, kubelet),
      'the API at the model': await reaches(api, node.address, 8000),
      'the worker at the model': await reaches(worker, node.address, 8000),
      'the API at PostgreSQL': await reaches(api, node.address, 5432),
    }).toEqual({
      'the worker at the API': 'reached',
      'a stranger with the same labels at the API': 'refused',
      'a stranger at the kubelet, which is closed to nobody here': 'reached',
      'the worker at the kubelet': 'refused',
      'the API at the model': 'refused',
      'the worker at the model': 'reached',
      'the API at PostgreSQL': 'reached',
    })
    note('network policies enforced by kube-router, connections tried', 7)
  })

  test('the namespace refuses a pod that is not restricted', async () => {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'plain' },
      spec: { containers: [{ name: 'c', image: 'x' }] },
    }
    await expect(node.api.create('/api/v1/namespaces/nightshift/pods', pod)).rejects.toThrow(/violates PodSecurity/)
  })

  test('an alert through the Service is an incident, and the workflow of the queue gives it to the model', async () => {
    const body = { title: 'Backup failed', severity: 'warning' }
    expect((await ask('/api/v1/ingest/generic', { token: token('ingest'), body })).status).toBe(202)
    const incident = await eventually('the incident to be handed to people', async () => {
      const { body: said } = await ask('/api/v1/incidents', { token: token('admin') })
      const [first] = JSON.parse(said).items
      return first?.status === 'escalated' && first
    })
    expect(incident).toBeTruthy()
    expect(model.requests.length).toBeGreaterThan(0)
  })

  test('a rolling restart of the API loses no alert, and refuses none', async () => {
    const before = (await pods('api')).map(({ metadata }) => metadata.name)
    const statuses: number[] = []
    let isOver = false
    const posting = (async () => {
      for (let n = 0; !isOver; n++) {
        const sent = { title: `Rolling ${n}`, severity: 'info' }
        statuses.push((await ask('/api/v1/ingest/generic', { token: token('ingest'), body: sent })).status)
      }
    })()
    await node.kubectl('-n', 'nightshift', 'rollout', 'restart', 'deploy/nightshift-api')
    await node.kubectl('-n', 'nightshift', 'rollout', 'status', '--timeout=10m', 'deploy/nightshift-api')
    await eventually('the pods of before to be gone', async () => {
      const list = await node.api.list('/api/v1/namespaces/nightshift/pods')
      return list.every(({ metadata }) => !before.includes(metadata.name))
    })
    isOver = true
    await posting
    expect(statuses.filter((status) => status !== 202)).toEqual([])
    const { rows } = await onSite((site) =>
      site.query(`select count(distinct title)::int as n from incident where title like 'Rolling %'`),
    )
    expect(rows[0].n).toBe(statuses.length)
    note('alerts posted while the API was replaced, each answered 202 and kept', statuses.length)
  })

  test('a worker that finds the schema of an older build waits and says for what, while the running ones continue', async () => {
    const newest = await onSite((site) =>
      site.query('delete from kysely_migration where name like $1 returning *', ['0060%']),
    )
    const before = (await pods('worker')).map(({ metadata }) => metadata.name)
    await node.kubectl('-n', 'nightshift', 'rollout', 'restart', 'deploy/nightshift-worker')
    const [added] = await eventually('the new pod to be up', async () => {
      const added = (await pods('worker')).filter(({ metadata }) => !before.includes(metadata.name))
      return added[0]?.status.containerStatuses?.[0].started && added
    })
    const logs = () => node.kubectl('-n', 'nightshift', 'logs', added!.metadata.name)
    await eventually('it to say for what', async () => (await logs()).includes('not applied: 0060-retention'))
    const isReady = ({ status }: { status: { containerStatuses?: { ready: boolean }[] } }) =>
      status.containerStatuses?.[0]?.ready
    expect(
      (await pods('worker'))
        .filter(isReady)
        .map(({ metadata }) => metadata.name)
        .toSorted(),
    ).toEqual(before.toSorted())
    const { name, timestamp } = newest.rows[0]
    await onSite((site) =>
      site.query('insert into kysely_migration (name, timestamp) values ($1, $2)', [name, timestamp]),
    )
    await node.kubectl('-n', 'nightshift', 'rollout', 'status', '--timeout=10m', 'deploy/nightshift-worker')
    expect(await logs()).toContain('the worker is ready')
  })

  test('everything that was applied is removed, and the node keeps no mount, group or process', async () => {
    await walk('kubectl delete -k deploy/kubernetes --timeout=5m')
    await node.stop()
    const mounts = readFileSync('/proc/mounts', 'utf8')
    expect(mounts).not.toContain(place.path)
    for (const root of cgroupRoots()) expect(existsSync(join(root, cgroupOf(place.path)))).toBe(false)
    expect(existsSync(at('kubernetes'))).toBe(false)
  })
})
