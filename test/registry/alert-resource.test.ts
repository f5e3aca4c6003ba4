import { describe, expect, test } from '@jest/globals'
import { parseResourceRules } from '../../domain/alert.ts'
import { chooseResource, type KnownResource, namesToLookUp } from '../../domain/alert-resource.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
import { resourceKey, toMatchedNames } from '../../domain/registry.ts'

describe('alert resource', () => {
  type Above = KnownResource['above']

  function known(kind: InventoryKind, id: string, names: string[] = [], above: Above = []): KnownResource {
    return { kind, id, names: toMatchedNames({ id, name: id, aliases: names }), canonical: `${kind}:${id}`, above }
  }

  const below = ({ kind, id, names, above }: KnownResource): Above => [{ kind, id, names }, ...above]

  /** Fifty hosts with their services, two namespaces with the same three workloads, as a small site has them. */
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

  describe('an alert finds what it is about', () => {
    test.each(cases)('%s', (_, labels, expected) => {
      expect(keyFor(labels)).toBe(expected)
    })
  })

  test('two things of one name are none, and both are named', () => {
    const twice = [known('node', 'a', ['app.example.com']), known('node', 'b', ['app.example.com'])]
    const found = find({ instance: 'app.example.com:80' }, '', twice)
    expect(found).toMatchObject({ resource: null, candidates: ['node:a', 'node:b'] })
    expect(find({ namespace: '', pod: 'api-7d9f8b6c5-x2x9k' }).candidates).toEqual([
      'workload:payments:api',
      'workload:shop:api',
    ])
  })

  test('two names of one thing are one thing', () => {
    const twice = [known('vm', 'a', ['app']), { ...known('node', 'a', ['app']), canonical: 'vm:a' }]
    expect(find({ instance: 'app:80' }, '', twice).resource).not.toBeNull()
  })

  test('what was tried is kept in its order, with why it did not name anything', () => {
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
    ['app_host -> nod:*', '"nod" is no kind'],
    ['app=*-* -> node:*', 'more than one *'],
    ['app=x -> node:*', 'nothing stands for the *'],
    ['app -> node:a/b', 'is no id'],
  ])('the rule %s is refused with what is wrong', (text, reason) => {
    expect(parseResourceRules(text)).toEqual({ ok: false, reason: expect.stringContaining(reason) })
  })

  test('labels choose among what is known and make nothing known, in whatever order they come', () => {
    for (const [, labels] of cases) {
      const turned = Object.fromEntries(Object.entries(labels).reverse())
      expect(find(turned)).toEqual(find(labels))
      expect(find(labels, '', []).resource).toBeNull()
    }
  })
})

describe('alert elsewhere', () => {
  /** Sites on which the obvious label names the wrong thing: exporters of others, names twice, names that are words. */

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
    ...[oslo, bergen, ...twins, ...units, ...databases, ...machines, haproxy, search, addressed],
    ...[...guests, ...words, ...inCluster, known('device', 'sw1', ['10.99.0.2']), known('shard', 'main')],
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
    [
      'a job with another word in it',
      { job: 'shipping', instance: 'api.osl.example.com:8080', code: '500' },
      'node:api',
    ],
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
    ['a pod that is called like a guest', { job: 'x', namespace: 'pay', pod: 'git-0' }, null],
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

  describe('what was asked goes before what asks', () => {
    test.each(asked)('%s', (_, labels, expected) => expect(keyFor(labels)).toBe(expected))
  })

  describe('of two things with one name', () => {
    test.each(twice)('%s', (_, labels, expected) => expect(keyFor(labels)).toBe(expected))
  })

  describe('a platform names what holds a thing as well', () => {
    test.each(held)('%s', (_, labels, expected) => expect(keyFor(labels)).toBe(expected))
  })

  describe('a name is more than a word', () => {
    test.each(chances)('%s', (_, labels, expected) => expect(keyFor(labels)).toBe(expected))
  })

  const keyFor = (labels: Record<string, string>): string | null => {
    const { resource } = find(labels)
    return resource && resourceKey(resource)
  }
})
