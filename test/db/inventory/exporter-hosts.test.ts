import { expect, test } from '@jest/globals'
import { importSiteFile } from '../../../db/inventory/import-site.ts'
import { declareResources, findByNames } from '../../../db/inventory/registry.ts'
import { findAlertResources } from '../../../db/inventory/resources.ts'
import { importSource, type SourceDeclaration } from '../../../domain/declared-resources.ts'
import { findExporterHosts } from '../../../domain/exporter-hosts.ts'
import { resourceKey } from '../../../domain/registry.ts'
import { siteFile } from '../../../domain/site.ts'
import { targetsSource, targetsToDeclared } from '../../../domain/source.ts'
import { useDatabase } from '../../support/database.ts'

const database = useDatabase()

const declare = (
  source: typeof importSource,
  resources: SourceDeclaration['resources'],
  more: SourceDeclaration['relations'] = [],
) => database.db.transaction().execute((trx) => declareResources(trx, source, { resources, relations: more }))

async function keyFor(labels: Record<string, string>): Promise<string | null> {
  const [found] = await findAlertResources(database.db, [labels], [])
  return found?.resource ? resourceKey(found.resource) : null
}

const ofOthers = { alertname: 'SolrDown', job: 'solr', instance: 'mon-1:9854' }

test('a machine that runs exporters according to an inventory is not the subject of their alerts', async () => {
  await declare(importSource, [{ kind: 'node', id: 'mon-1' }])
  expect(await keyFor(ofOthers)).toBe('node:mon-1')
  await declare(
    importSource,
    [
      { kind: 'node', id: 'mon-1', attributes: { runs_exporters: true } },
      { kind: 'service_unit', id: 'mon-1:grafana.service', aliases: ['grafana.service'] },
    ],
    [
      {
        from: { kind: 'service_unit', id: 'mon-1:grafana.service' },
        kind: 'runs_on',
        to: { kind: 'node', id: 'mon-1' },
      },
    ],
  )
  expect(await keyFor(ofOthers)).toBeNull()
  // What measures the machine itself, what runs there, and the exporter's own trouble are its own.
  expect(await keyFor({ job: 'node', instance: 'mon-1:9100' })).toBe('node:mon-1')
  expect(await keyFor({ job: 'grafana', instance: 'mon-1:3000' })).toBe('service_unit:mon-1:grafana.service')
  expect(await keyFor({ ...ofOthers, alertname: 'TargetDown' })).toBe('node:mon-1')
})

test('a file of hosts declares this for one of its nodes', async () => {
  const nodes = [{ id: 'mon-1', group: 'hosts', hostname: 'mon-1.example.com', ip: '10.0.0.9' }]
  const resources = [{ kind: 'node', id: 'mon-1', attributes: { runs_exporters: true } }]
  const wish = { isDryRun: false, isPruning: false, hasPlatform: false, who: 'anna' }
  await importSiteFile(database.db, siteFile.parse({ groups: [{ id: 'hosts' }], nodes, resources }), wish)
  expect(await keyFor({ ...ofOthers, instance: 'mon-1.example.com:9854' })).toBeNull()
  expect(await keyFor({ job: 'node', instance: '10.0.0.9:9100' })).toBe('node:mon-1')
})

test('a source without authority cannot declare that a machine runs exporters', async () => {
  await declare(importSource, [{ kind: 'node', id: 'mon-1' }])
  await declare({ name: 'prometheus:x', hasAuthority: false }, [
    { kind: 'target', id: 'mon-1:1', attributes: { runs_exporters: true } },
  ])
  expect((await findByNames(database.db, ['mon-1'])).map(({ runsExporters }) => runsExporters)).toEqual([false])
})

test('targets show which machine runs exporters', async () => {
  await declare(
    importSource,
    ['mon-1', 'web-1', 'web-2'].map((id) => ({ kind: 'node' as const, id })),
  )
  const scraped = [
    ...['blackbox', 'pve', 'nut', 'domain'].map((job) => [job, 'mon-1:9000']),
    ...['web-1', 'web-2', 'mon-1'].flatMap((id) =>
      ['node', 'nginx', 'php', 'redis', 'blackbox-local'].map((job) => [job, `${id}:80`]),
    ),
  ].map(([job = '', instance = '']) => ({ labels: { job, instance } }))
  const { resources, relations } = targetsToDeclared(scraped, (id) => ({ kind: 'node', id }))
  await declare(targetsSource({ kind: 'prometheus', name: 'main' }), resources, relations)
  expect(await keyFor(ofOthers)).toBeNull()
  expect(await keyFor({ job: 'shop', instance: 'web-1:8080' })).toBe('node:web-1')
})

test.each([
  [
    'each machine has them',
    ['a', 'b'].flatMap((machine) => ['blackbox', 'pve', 'x', 'y', 'z'].map((job) => ({ job, machine }))),
    [],
  ],
  ['there are few of them', ['blackbox', 'pve', 'snmp'].map((job) => ({ job, machine: 'a' })), []],
  [
    'none of them measures others',
    ['nginx', 'redis', 'mysql', 'php', 'shop'].map((job) => ({ job, machine: 'a' })),
    [],
  ],
  ['one of them measures others', ['snmp', 'redis', 'mysql', 'nut'].map((job) => ({ job, machine: 'a' })), ['a']],
])('whether a machine is a monitoring host, if %s', (_where, scraped, expected) => {
  expect([...findExporterHosts(scraped)]).toEqual(expected)
})
