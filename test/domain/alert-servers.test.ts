import { expect, test } from '@jest/globals'
import { chooseResource, type KnownResource } from '../../domain/alert-resource.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
import { toMatchedNames } from '../../domain/registry.ts'

/**
 * Servers of databases, and guests of Proxmox VE, beside labels that name something else as well: a
 * wrong one is worse than none.
 */

function known(kind: InventoryKind, id: string, aliases: string[] = [], on: KnownResource[] = []): KnownResource {
  const above = on.map(({ kind, id, names }) => ({ kind, id, names }))
  return { kind, id, names: toMatchedNames({ id, name: id, aliases }), canonical: `${kind}:${id}`, above }
}
const host = known('host', 'pve-1')
const machine = known('node', 'db-1', ['db-1.example.com', '10.0.0.2'])
const registry = [
  host,
  machine,
  known('vm', '102', ['git'], [host]),
  known('database', 'main', ['db-1.example.com:5432', 'postgres', 'postgresql', 'orders'], [machine]),
  known('database', 'shop', ['10.0.0.5:3306', 'mysql', 'mariadb', 'wiki']),
  known('database', 'ledger', ['ledger-db']),
]

test.each<[string, Record<string, string>]>([
  ['database:shop', { job: 'mysql', instance: '10.0.0.5:3306' }],
  ['database:shop', { job: 'mysql', instance: 'mon-1:9104', server: '10.0.0.5:3306' }],
  ['database:main', { job: 'postgres', instance: 'db-1:9187' }],
  ['database:ledger', { job: 'postgres', instance: 'ledger-db:9187' }],
  // A container of that name, on whatever host.
  ['none', { job: 'mysql', instance: 'mysql:3306' }],
  ['none', { job: 'mysql', instance: 'mysql.eu.example.org:9104' }],
  ['none', { job: 'mariadb', server: 'mariadb:3306' }],
  // A machine that bears the name of a database.
  ['none', { job: 'mysql', instance: 'wiki:9104' }],
  ['none', { job: 'postgres', instance: 'orders.example.org:9187' }],
  ['vm:102', { job: 'pve', id: 'lxc/102', node: 'pve-1' }],
  ['vm:102', { job: 'pve', id: 'qemu/102', node: 'pve-1', instance: '10.1.0.1:9221', name: 'git' }],
  ['vm:102', { id: 'qemu/102', host: 'pve-1' }],
  ['none', { id: 'qemu/199', node: 'pve-1' }],
  ['host:pve-1', { job: 'pve', id: 'node/pve-1', node: 'pve-1' }],
])('the answer is %s for %j', (wanted, labels) => {
  const { resource } = chooseResource({ alertname: 'Down', ...labels }, [], registry)
  expect(resource ? `${resource.kind}:${resource.id}` : 'none').toBe(wanted)
})
