import { describe, expect, test } from '@jest/globals'
import { toPlainLabel, toPlainLabels } from '../../domain/alert-labels.ts'
import { chooseResource, type KnownResource, namesToLookUp } from '../../domain/alert-resource.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
import { resourceKey, toMatchedNames } from '../../domain/registry.ts'
import { formatResourceRules, parseResourceRules } from '../../domain/resource-rules.ts'

/** What the words of a label say, and what is the answer where the narrowest thing is not known. */

type Above = KnownResource['above']
function known(kind: InventoryKind, id: string, names: string[] = [], above: Above = []): KnownResource {
  return { kind, id, names: toMatchedNames({ id, name: id, aliases: names }), canonical: `${kind}:${id}`, above }
}
const below = ({ kind, id, names, above }: KnownResource): Above => [{ kind, id, names }, ...above]

const cluster = known('cluster', 'eu1')
const [pay, tools] = ['pay', 'tools'].map((id) => known('namespace', id, [], below(cluster))) as [
  KnownResource,
  KnownResource,
]
const monitoring = { ...known('node', 'mon'), runsExporters: true }
const registry = [
  cluster,
  pay,
  tools,
  known('workload', 'tools:scanner', ['scanner'], below(tools)),
  known('host', 'esx-1', ['esx-1.corp.example']),
  known('vm', 'erp'),
  known('node', 'db-1', ['10.1.0.1']),
  known('node', 'db-2'),
  known('node', 'twin-a', ['twin', '10.1.0.2']),
  known('node', 'twin-b', ['twin']),
  known('device', 'ap-1'),
  known('node', 'api'),
  monitoring,
  known('service_unit', 'mon:influxdb.service', ['influxdb.service'], below(monitoring)),
]

function keyFor(labels: Record<string, string>): string | null {
  const names = new Set(namesToLookUp(labels, []))
  const { resource } = chooseResource(
    labels,
    [],
    registry.filter((each) => each.names.some((name) => names.has(name))),
  )
  return resource && resourceKey(resource)
}

type Case = [string, Record<string, string>, string | null]

const words: Case[] = [
  ['capitals', { Hostname: 'db-1', gpu: '3' }, 'node:db-1'],
  ['dots', { 'host.name': 'db-1' }, 'node:db-1'],
  ['a word before the last', { vcenter_host_name: 'esx-1.corp.example' }, 'host:esx-1'],
  ['a guest before its host', { vcenter_vm_name: 'erp', vcenter_host_name: 'esx-1' }, 'vm:erp'],
  ['the agent before the address of a proxy', { agent_hostname: 'db-1', instance: 'agent:12345' }, 'node:db-1'],
  ['the other end', { job: 'mysql', instance: 'db-2:9104', master_host: 'db-1' }, 'node:db-2'],
  ['what was asked, in a label that says of what', { job: 'x', instance: 'mon:1', snmp_target: 'ap-1' }, 'device:ap-1'],
  [
    'a server that it uses',
    { job: 'shop', instance: 'db-2:8080', database_host: 'db-1', bgp_peer_address: '10.1.0.1' },
    'node:db-2',
  ],
  ['a node of Erlang on this machine', { job: 'chat', instance: 'db-2:9999', node: 'ejabberd@localhost' }, 'node:db-2'],
  [
    'a service on a node that is named',
    { job: 'consul', instance: 'x:9107', node: 'mon', service_name: 'influxdb' },
    'service_unit:mon:influxdb.service',
  ],
  ['a cluster of a program', { kafka_cluster: 'eu1', topic: 'orders' }, null],
  ['a service of a volume', { hostname: 'db-1@ceph', service: 'cinder-volume' }, 'node:db-1'],
  [
    'a pod as OpenTelemetry names it',
    { 'k8s.namespace.name': 'tools', 'k8s.pod.name': 'scanner-0' },
    'workload:tools:scanner',
  ],
  ['the namespace of a secret', { secret_namespace: 'pay', namespace: 'tools', pod: 'scanner-0' }, 'namespace:pay'],
  [
    'a namespace that is none of a cluster',
    { exported_namespace: 'default', namespace: 'tools', pod: 'scanner-0' },
    'workload:tools:scanner',
  ],
]

const holders: Case[] = [
  [
    'a pod of a workload that nobody listed',
    { job: 'x', namespace: 'pay', pod: 'web-0', instance: '10.42.0.9:80' },
    'namespace:pay',
  ],
  ['a namespace that nobody listed', { job: 'x', namespace: 'new', pod: 'web-0', cluster: 'eu1' }, 'cluster:eu1'],
  ['a deployment outside of a cluster', { job: 'wildfly', instance: 'db-1:9990', deployment: 'shop.war' }, 'node:db-1'],
  ['a node that nobody listed', { job: 'kube-state-metrics', node: 'k-9', cluster: 'eu1' }, 'cluster:eu1'],
  [
    'a page that is asked from a namespace',
    { job: 'probe/tools/x', namespace: 'tools', instance: 'https://example.net' },
    null,
  ],
  ['a switch that is asked from a namespace', { job: 'snmp', namespace: 'tools', instance: '10.9.9.9' }, null],
  ['a guest that nobody listed', { vm_name: 'old', host_name: 'esx-1' }, null],
  ['a cluster by another label', { vcenter_cluster_name: 'eu1', vcenter_datacenter_name: 'x' }, 'cluster:eu1'],
]

const tellers: Case[] = [
  ['others', { alertname: 'SolrDown', job: 'solr', instance: 'mon:9854' }, null],
  ['a member that it names', { job: 'x', instance: 'mon:9001', name: 'db-1:27017' }, 'node:db-1'],
  ['a device that it names', { job: 'x', instance: 'mon:9130', name: 'ap-1' }, 'device:ap-1'],
  [
    'an object of a namespace that bears the name of a machine',
    { job: 'x', instance: 'mon:9001', exported_namespace: 'pay', name: 'db-1' },
    'namespace:pay',
  ],
  ['a page of somebody else', { job: 'kuma', instance: 'mon:3001', monitor_hostname: 'api.github.com' }, null],
  ['a check that bears the name of a page', { job: 'kuma', instance: 'mon:3001', name: 'api.github.com' }, null],
  ['its own machine', { job: 'node', instance: 'mon:9100' }, 'node:mon'],
  [
    'a service that runs there',
    { job: 'integrations/influxdb', instance: 'mon:8086' },
    'service_unit:mon:influxdb.service',
  ],
  ['its own trouble', { alertname: 'TargetDown', job: 'solr', instance: 'mon:9854' }, 'node:mon'],
  ['a container, on a machine that runs none', { job: 'cadvisor', instance: 'db-2:8080', name: 'db-1' }, 'node:db-2'],
]

describe('the words of a label show what it names', () => {
  test.each(words)('%s', (_, labels, expected) => expect(keyFor(labels)).toBe(expected))
})

describe('what contains a resource is the answer if the resource is unknown', () => {
  test.each(holders)('%s', (_, labels, expected) => expect(keyFor(labels)).toBe(expected))
})

describe('an alert from a machine that runs exporters is about', () => {
  test.each(tellers)('%s', (_, labels, expected) => expect(keyFor(labels)).toBe(expected))
})

test('a name of two machines is decided by a later label that names one of them, and by no other label', () => {
  expect(keyFor({ nodename: 'twin', instance: '10.1.0.2:9100', job: 'node' })).toBe('node:twin-a')
  expect(keyFor({ nodename: 'twin', instance: 'db-1:9100', job: 'node' })).toBeNull()
})

test('labels are compared by their words, and shown as they were written', () => {
  expect(
    ['Hostname', 'vcenter.host-name', 'k8s.node.name', 'kubernetes_namespace', 'k8s_job_name'].map(toPlainLabel),
  ).toEqual(['hostname', 'vcenter_host_name', 'exported_node', 'exported_namespace', 'job_name'])
  expect(toPlainLabels({ Host: 'a', host: 'b', empty: ' ' }).plain).toEqual({ host: 'b' })
  expect(chooseResource({ 'host.name': 'db-9' }, [], []).tried).toMatchObject([
    { label: 'host.name', result: 'unknown' },
  ])
})

test('rules are written as they are read, also for labels with dots', () => {
  const text = 'app.host -> node:*; customer=eu-* -> namespace:*; team=blue -> cluster:eu1'
  const parsed = parseResourceRules(text)
  expect(parsed.ok && formatResourceRules(parsed.rules)).toBe(text)
  const rules = parsed.ok ? parsed.rules : []
  expect(chooseResource({ 'app.host': 'db-1:8080' }, rules, registry).resource).toEqual({ kind: 'node', id: 'db-1' })
})
