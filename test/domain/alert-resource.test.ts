import { describe, expect, test } from '@jest/globals'
import { chooseResource, type KnownResource, namesToLookUp } from '../../domain/alert-resource.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
import { resourceKey, toMatchedNames } from '../../domain/registry.ts'
import { parseResourceRules } from '../../domain/resource-rules.ts'

type Above = KnownResource['above']

function known(kind: InventoryKind, id: string, names: string[] = [], above: Above = []): KnownResource {
  return { kind, id, names: toMatchedNames({ id, name: id, aliases: names }), canonical: `${kind}:${id}`, above }
}

const below = ({ kind, id, names, above }: KnownResource): Above => [{ kind, id, names }, ...above]

/**
 * Fifty hosts with their services, two namespaces with the same three workloads, as a small site
 * has them.
 */
const nodes = Array.from({ length: 50 }, (_, at) => {
  const id = `${['web', 'db', 'mq', 'cache', 'lb'][at % 5]}-${Math.floor(at / 5) + 1}`
  return known('node', id, [`${id}.osl.example.com`, `10.20.0.${at + 10}`])
})
const node = (id: string): KnownResource => nodes.find((each) => each.id === id) as KnownResource
const services = nodes.flatMap((each) =>
  ['nginx.service', 'postgresql.service', 'redis.service'].map((unit) =>
    known('service_unit', `${each.id}:${unit}`, [unit], below(each)),
  ),
)
const databases = ['orders', 'billing'].map((name) => known('database', `db-1:${name}`, [name], below(node('db-1'))))
const cluster = known('cluster', 'eu1')
const spaces = ['payments', 'shop'].map((name) => known('namespace', name, [], below(cluster)))
const workloads = spaces.flatMap((space) =>
  ['api', 'db', 'worker'].map((name) => known('workload', `${space.id}:${name}`, [name], below(space))),
)
const exporters = [known('workload', 'monitoring:node-exporter', ['node-exporter'])]
const guests = [known('vm', '101', ['shop-vm']), known('host', 'pve1')]
const registry = [...nodes, ...services, ...databases, cluster, ...spaces, ...workloads, ...exporters, ...guests]

function find(labels: Record<string, string>, rules = '', from: readonly KnownResource[] = registry) {
  const parsed = parseResourceRules(rules)
  if (!parsed.ok) throw new Error(parsed.reason)
  const names = new Set(namesToLookUp(labels, parsed.rules))
  const matching = from.filter((each) => each.names.some((name) => names.has(name)))
  return chooseResource(labels, parsed.rules, matching)
}

const keyFor = (labels: Record<string, string>, rules = ''): string | null => {
  const { resource } = find(labels, rules)
  return resource && resourceKey(resource)
}

const inCluster = { job: 'kube-state-metrics', instance: '10.42.1.9:8080' }
const ofExporterPod = {
  namespace: 'payments',
  pod: 'node-exporter-x2x9k',
  container: 'node-exporter',
  endpoint: 'https',
}

/** Labels as exporters set them, and what they are about. */
const cases: [string, Record<string, string>, string | null][] = [
  ['a node exporter by its short name', { job: 'node', instance: 'web-1:9100' }, 'node:web-1'],
  ['a node exporter by its full name', { job: 'node', instance: 'web-1.osl.example.com:9100' }, 'node:web-1'],
  ['a node exporter by its address', { job: 'node', instance: '10.20.0.11:9100', device: '/dev/sda' }, 'node:db-1'],
  [
    'a node exporter that runs in a pod',
    { job: 'node-exporter', instance: '10.20.0.11:9100', ...ofExporterPod },
    'node:db-1',
  ],
  [
    'a systemd unit on its host',
    { job: 'node', instance: 'web-1:9100', name: 'nginx.service', state: 'failed' },
    'service_unit:web-1:nginx.service',
  ],
  ['a systemd unit that nobody listed', { job: 'node', instance: 'web-1:9100', name: 'cron.service' }, 'node:web-1'],
  ['PostgreSQL by its job', { job: 'postgresql', instance: 'db-1:9187' }, 'service_unit:db-1:postgresql.service'],
  ['a database of a host', { job: 'postgres', instance: 'db-1:9187', datname: 'orders' }, 'database:db-1:orders'],
  ['a database of that name elsewhere', { job: 'postgres', instance: 'db-2:9187', datname: 'orders' }, 'node:db-2'],
  [
    'Redis by its own address',
    { job: 'redis-exporter', instance: 'redis://10.20.0.13:6379' },
    'service_unit:cache-1:redis.service',
  ],
  ['RabbitMQ by its node', { job: 'rabbitmq', instance: '10.1.1.1:15692', node: 'rabbit@mq-1' }, 'node:mq-1'],
  ['a probe of a page', { job: 'blackbox', instance: 'https://web-2.osl.example.com/health' }, 'node:web-2'],
  ['a probe of an address and port', { job: 'blackbox-tcp', instance: '10.20.0.15:443' }, 'node:web-2'],
  ['Ceph by its host name', { job: 'ceph', instance: 'mgr:9283', hostname: 'DB-3' }, 'node:db-3'],
  ['a container of cAdvisor', { job: 'cadvisor', instance: 'lb-1:8080', name: 'registry' }, 'node:lb-1'],
  ['a guest of Proxmox VE', { job: 'pve', instance: '192.0.2.9', id: 'qemu/101' }, 'vm:101'],
  ['a host of Proxmox VE', { job: 'pve', instance: '192.0.2.9', id: 'node/pve1' }, 'host:pve1'],
  ['a deployment', { ...inCluster, namespace: 'payments', deployment: 'api' }, 'workload:payments:api'],
  ['the same deployment elsewhere', { ...inCluster, namespace: 'shop', deployment: 'api' }, 'workload:shop:api'],
  [
    'a pod of a deployment',
    { ...inCluster, namespace: 'shop', pod: 'api-7d9f8b6c5-x2x9k', container: 'app' },
    'workload:shop:api',
  ],
  ['a pod of a stateful set', { ...inCluster, namespace: 'shop', pod: 'db-0' }, 'workload:shop:db'],
  ['a pod of a daemon set', { ...inCluster, namespace: 'shop', pod: 'worker-x2x9k' }, 'workload:shop:worker'],
  [
    'a sidecar with the address of its pod',
    { job: 'api', instance: '10.42.3.7:9187', namespace: 'shop', pod: 'api-7d9f8b6c5-x2x9k' },
    'workload:shop:api',
  ],
  ['a cluster node', { ...inCluster, node: 'web-3', condition: 'Ready' }, 'node:web-3'],
  ['a kubelet', { job: 'kubelet', instance: '10.20.0.11:10250', node: 'ip-10-20-0-11' }, 'node:db-1'],
  ['a quota of a namespace', { ...inCluster, namespace: 'shop', resourcequota: 'q' }, 'namespace:shop'],
  [
    'a volume claim',
    { job: 'kubelet', instance: '10.20.0.11:10250', namespace: 'shop', persistentvolumeclaim: 'data-0' },
    'namespace:shop',
  ],
  ['the API server of a cluster', { cluster: 'eu1' }, 'cluster:eu1'],

  ['a machine that nobody listed', { job: 'node', instance: 'web-99:9100' }, null],
  ['a machine of that name in another domain', { job: 'node', instance: 'web-1.fra.example.com:9100' }, null],
  [
    'a machine that nobody listed, in a cluster that somebody did',
    { job: 'node', instance: 'web-99:9100', cluster: 'eu1' },
    null,
  ],
  ['this machine, whichever that is', { job: 'prometheus', instance: 'localhost:9090' }, null],
  ['a loopback address', { job: 'node', instance: '127.0.0.1:9100' }, null],
  ['a deployment of a namespace that nobody listed', { job: 'x', namespace: 'other', deployment: 'api' }, null],
  [
    'a deployment of a cluster that nobody listed',
    { ...inCluster, cluster: 'us1', namespace: 'shop', deployment: 'api' },
    null,
  ],
  ['the pod of an exporter', { job: 'x', namespace: 'other', pod: 'node-exporter-x2x9k' }, null],
  ['a member of Consul that nobody listed', { job: 'consul', instance: 'web-1:9107', node: 'web-99' }, null],
  ['a service of a cloud', { job: 'yace', instance: 'web-1:5000', dbinstance_identifier: 'orders' }, null],
  ['a device by itself', { device: 'web-1' }, null],
  ['a job by itself', { job: 'nginx' }, null],
  ['no label at all', {}, null],
]

describe('an alert finds its resource', () => {
  test.each(cases)('%s', (_, labels, expected) => {
    expect(keyFor(labels)).toBe(expected)
  })
})

test('two resources with one name match nothing, and both are named', () => {
  const twice = [known('node', 'a', ['app.example.com']), known('node', 'b', ['app.example.com'])]
  const found = find({ instance: 'app.example.com:80' }, '', twice)
  expect(found).toMatchObject({ resource: null, candidates: ['node:a', 'node:b'] })
  expect(find({ namespace: '', pod: 'api-7d9f8b6c5-x2x9k' }).candidates).toEqual([
    'workload:payments:api',
    'workload:shop:api',
  ])
})

test('two names of one resource are one resource', () => {
  const twice = [known('vm', 'a', ['app']), { ...known('node', 'a', ['app']), canonical: 'vm:a' }]
  expect(find({ instance: 'app:80' }, '', twice).resource).not.toBeNull()
})

test('the tried names stay in their order, with the reason why each matched nothing', () => {
  const { tried, by } = find({ job: 'postgres', instance: 'db-2:9187', datname: 'orders' })
  expect(tried).toEqual([
    { label: 'datname', name: 'orders', result: 'elsewhere' },
    { label: 'instance', name: 'db-2', result: 'found' },
  ])
  expect(by).toBe('instance')
})

test("a site's own rules come first", () => {
  const rules = 'app_host -> node:*; customer=eu-* -> namespace:*; team=blue -> cluster:eu1'
  expect(keyFor({ app_host: 'web-4', instance: 'web-1:9100' }, rules)).toBe('node:web-4')
  expect(keyFor({ customer: 'eu-shop' }, rules)).toBe('namespace:shop')
  expect(keyFor({ customer: 'us-shop' }, rules)).toBeNull()
  expect(keyFor({ team: 'blue' }, rules)).toBe('cluster:eu1')
  expect(keyFor({ team: 'bluebird' }, rules)).toBeNull()
  expect(keyFor({ app_host: 'nobody' }, rules)).toBeNull()
})

test.each([
  ['app_host', 'not of the form'],
  ['app_host -> nod:*', '"nod" is not a kind'],
  ['app=*-* -> node:*', 'more than one *'],
  ['app=x -> node:*', 'the pattern has no *'],
  ['app -> node:a/b', 'is not an id'],
])('the rule %s is refused with its error', (text, reason) => {
  expect(parseResourceRules(text)).toEqual({ ok: false, reason: expect.stringContaining(reason) })
})

test('labels choose among known resources and add none, in any order', () => {
  for (const [, labels] of cases) {
    const turned = Object.fromEntries(Object.entries(labels).reverse())
    expect(find(turned)).toEqual(find(labels))
    expect(find(labels, '', []).resource).toBeNull()
  }
})
