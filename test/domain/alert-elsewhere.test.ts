import { describe, expect, test } from '@jest/globals'
import { chooseResource, type KnownResource, namesToLookUp } from '../../domain/alert-resource.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
import { resourceKey, toMatchedNames } from '../../domain/registry.ts'

/**
 * Sites on which the obvious label names the wrong thing: exporters of others, names twice, names
 * that are words.
 */

type Above = KnownResource['above']

function known(kind: InventoryKind, id: string, names: string[] = [], above: Above = []): KnownResource {
  return { kind, id, names: toMatchedNames({ id, name: id, aliases: names }), canonical: `${kind}:${id}`, above }
}

const below = ({ kind, id, names, above }: KnownResource): Above => [{ kind, id, names }, ...above]

const [oslo, bergen] = [known('region', 'osl'), known('region', 'ber')]
const twins = [oslo, bergen].flatMap((site) =>
  ['web1', 'db1'].map((name) =>
    known('node', `${site.id}-${name}`, [name, `${name}.${site.id}.example.org`], below(site)),
  ),
)
const units = twins
  .filter(({ id }) => id.endsWith('web1'))
  .map((each) => known('service_unit', `${each.id}:nginx.service`, ['nginx.service'], below(each)))
const databases = twins
  .filter(({ id }) => id.endsWith('db1'))
  .map((each) => known('database', `${each.id}:orders`, ['orders'], below(each)))
const machines = ['mon', 'gw1', 'db2', 'redis1', 'web10', 'kafka1', 'es1'].map((id) =>
  known('node', id, [`${id}.osl.example.com`]),
)
const haproxy = known('service_unit', 'gw1:haproxy.service', ['haproxy.service'], below(machines[1] as KnownResource))
const search = known(
  'service_unit',
  'db2:elasticsearch.service',
  ['elasticsearch.service'],
  below(machines[2] as KnownResource),
)
const addressed = known('node', 'six', ['2001:db8:20::4', '10.9.0.4'])
const guests = [
  known('host', 'pve1'),
  known('node', 'pve1'),
  known('vm', '101', ['shop']),
  known('node', 'shop'),
  known('vm', '102', ['git']),
]
const words = [known('node', 'api'), known('node', 'web-7'), known('vm', '110', ['wiki'])]
const cluster = known('cluster', 'eu1')
const space = known('namespace', 'pay', [], below(cluster))
const inCluster = [cluster, space, known('workload', 'pay:worker', ['worker'], below(space)), known('node', 'k8s-3')]
const registry = [
  oslo,
  bergen,
  ...twins,
  ...units,
  ...databases,
  ...machines,
  haproxy,
  search,
  addressed,
  ...guests,
  ...words,
  ...inCluster,
  known('device', 'sw1', ['10.99.0.2']),
  known('shard', 'main'),
]

function find(labels: Record<string, string>) {
  const names = new Set(namesToLookUp(labels, []))
  return chooseResource(
    labels,
    [],
    registry.filter((each) => each.names.some((name) => names.has(name))),
  )
}

type Case = [string, Record<string, string>, string | null]

const asked: Case[] = [
  ['a probe', { job: 'blackbox', instance: 'mon:9115', target: 'https://web10.osl.example.com/login' }, 'node:web10'],
  ['a probe of a page elsewhere', { job: 'blackbox', instance: 'mon:9115', target: 'https://example.net' }, null],
  ['PostgreSQL', { job: 'postgres', instance: 'mon:9187', server: 'db2:5432', datname: 'x' }, 'node:db2'],
  ['a database', { job: 'pg', instance: 'mon:9187', server: 'db1.ber.example.org' }, 'node:ber-db1'],
  [
    'a database by name',
    { job: 'pg', instance: 'mon:9187', server: 'db1.ber.example.org:5432', datname: 'orders' },
    'database:ber-db1:orders',
  ],
  ['a server that nobody listed', { job: 'postgres', instance: 'mon:9187', server: 'rds.example:5432' }, null],
  ['a server that is the same machine', { job: 'pg', instance: 'db2:9187', server: 'localhost:5432' }, 'node:db2'],
  ['Redis', { job: 'redis', instance: 'mon:9121', addr: 'redis://redis1:6379' }, 'node:redis1'],
  ['a ping', { job: 'ping', instance: 'mon:9427', target: 'web10' }, 'node:web10'],
  ['a ping of a word', { job: 'ping', instance: 'mon:9427', target: 'uplink' }, null],
  ['HAProxy about a server of its own', { job: 'haproxy', instance: 'gw1:8404', server: 'web10' }, 'node:web10'],
  [
    'HAProxy about a server that nobody listed',
    { job: 'haproxy', instance: 'gw1:8404', server: 'srv-07' },
    'service_unit:gw1:haproxy.service',
  ],
  ['a switch', { job: 'snmp', instance: '10.99.0.2', ifAlias: 'web10' }, 'device:sw1'],
  ['a consumer group', { job: 'kafka-exporter', instance: 'mon:9308', consumergroup: 'billing' }, null],
  ['a group, on a broker', { job: 'kafka-exporter', instance: 'kafka1:9308', consumergroup: 'b' }, 'node:kafka1'],
  ['a search cluster', { job: 'elasticsearch', instance: 'mon:9114', color: 'red' }, null],
  ['a search cluster, on its node', { job: 'elasticsearch', instance: 'es1:9114', color: 'red' }, 'node:es1'],
  [
    'a search cluster, where its service runs',
    { job: 'elasticsearch', instance: 'db2:9114', color: 'red' },
    'service_unit:db2:elasticsearch.service',
  ],
  ['a job with another word in it', { job: 'shipping', instance: 'api.osl.example.com:8080', code: '500' }, 'node:api'],
  ['the exporter itself', { alertname: 'TargetDown', job: 'kafka-exporter', instance: 'mon:9308' }, 'node:mon'],
  ['a pushed sample', { job: 'push', instance: 'mon:9091', exported_instance: 'db2' }, 'node:db2'],
  ['a pushed sample of no machine', { job: 'push', instance: 'mon:9091', exported_job: 'backup' }, null],
  ['a relayed host', { exported_host: 'web10', host: 'mon' }, 'node:web10'],
  ['a page by its host', { job: 'nginx', instance: 'gw1:9913', host: 'www.example.net' }, 'node:gw1'],
  ['a remote write', { job: 'x', instance: 'mon:9090', remote_name: 'a', url: 'http://db2:9009/push' }, 'node:mon'],
]

const twice: Case[] = [
  ['a short name on two sites', { job: 'node', instance: 'web1:9100' }, null],
  ['a short name with its region', { job: 'node', instance: 'web1:9100', region: 'ber' }, 'node:ber-web1'],
  ['a short name with another region', { job: 'node', instance: 'web1:9100', region: 'par' }, null],
  [
    'a unit on one of two machines of one name',
    { job: 'node', instance: 'web1.ber.example.org:9100', name: 'nginx.service' },
    'service_unit:ber-web1:nginx.service',
  ],
  [
    'a unit by region',
    { job: 'node', instance: 'web1:9100', name: 'nginx.service', region: 'osl' },
    'service_unit:osl-web1:nginx.service',
  ],
  ['a database of two sites', { job: 'postgres', datname: 'orders', region: 'osl' }, null],
  ['a guest and the node within', { job: 'node', instance: 'shop:9100' }, 'node:shop'],
  ['a host and its own node', { job: 'node', instance: 'pve1:9100' }, 'node:pve1'],
  ['a host by its own label', { host: 'pve1' }, 'host:pve1'],
  ['a host by Proxmox VE', { job: 'pve', instance: 'mon:9221', id: 'node/pve1' }, 'host:pve1'],
  ['a store of a host', { job: 'pve', instance: 'mon:9221', id: 'storage/pve1/local' }, 'host:pve1'],
  ['a cluster of Proxmox VE', { job: 'pve', instance: 'pve1', id: 'cluster/home' }, null],
  ['a replication', { job: 'pve', instance: 'pve1', id: '102-0', guest: 'qemu/102' }, 'vm:102'],
  ['a guest of libvirt', { job: 'libvirt', instance: 'pve1:9177', domain: 'git' }, 'vm:102'],
]

const held: Case[] = [
  ['a node beside its shard', { shard: 'main', node: 'gw1' }, 'node:gw1'],
  ['a node that nobody listed, beside its shard', { job: 'x', shard: 'main', node: 'gw9' }, 'shard:main'],
  ['a shard beside what told of it', { shard: 'main', instance: 'mon:9100' }, 'shard:main'],
  ['what was asked, beside the node of its exporter', { node: 'mon', target: 'redis1:6379' }, 'node:redis1'],
]

const chances: Case[] = [
  ['a page of somebody else', { job: 'websites', instance: 'https://api.github.com' }, null],
  ['a name of somebody else', { job: 'websites', instance: 'api.github.com' }, null],
  ['a port of somebody else', { job: 'tcp', instance: 'api.github.com:443' }, null],
  ['a database of a cloud', { job: 'pg', instance: 'mon:9187', server: 'api.eu.rds.amazonaws.com:5432' }, null],
  ['a cache of a cloud', { job: 'redis', instance: 'redis://api.euw1.cache.amazonaws.com:6379' }, null],
  ['an exporter by a full name', { job: 'node', instance: 'api.osl.example.com:9100' }, 'node:api'],
  ['a page with a numbered name', { job: 'web', instance: 'https://web-7.osl.example.com/' }, 'node:web-7'],
  ['a page of a private domain', { job: 'web', instance: 'https://wiki.lan/' }, 'vm:110'],
  ['a number', { job: 'x', host: '101' }, null],
  ['a pod that is called like a guest', { job: 'x', namespace: 'pay', pod: 'git-0' }, 'namespace:pay'],
  ['IPv6 in its long form', { job: 'node', instance: '[2001:0db8:0020:0:0:0:0:0004]:9100' }, 'node:six'],
  ['IPv4 inside IPv6', { job: 'node', instance: '[::ffff:10.9.0.4]:9100' }, 'node:six'],
  ['an address of the link', { job: 'node', instance: '[fe80::1%eth0]:9100' }, null],
  [
    'a pod and the node it runs on',
    { job: 'pay', namespace: 'pay', pod: 'worker-5d8f7c9b64-x7k2p', node: 'k8s-3' },
    'workload:pay:worker',
  ],
  [
    'a pod by annotations',
    { job: 'x', kubernetes_namespace: 'pay', kubernetes_pod_name: 'worker-0' },
    'workload:pay:worker',
  ],
]

describe('the subject of an alert is preferred to the machine that checks it', () => {
  test.each(asked)('%s', (_, labels, expected) => expect(keyFor(labels)).toBe(expected))
})

describe('two resources with one name', () => {
  test.each(twice)('%s', (_, labels, expected) => expect(keyFor(labels)).toBe(expected))
})

describe('a platform also names what contains a resource', () => {
  test.each(held)('%s', (_, labels, expected) => expect(keyFor(labels)).toBe(expected))
})

describe('a name is more than a word', () => {
  test.each(chances)('%s', (_, labels, expected) => expect(keyFor(labels)).toBe(expected))
})

const keyFor = (labels: Record<string, string>): string | null => {
  const { resource } = find(labels)
  return resource && resourceKey(resource)
}
