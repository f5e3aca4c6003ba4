import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { Trx } from '../../../db/connect.ts'
import { declareResources, findByNames, leaseKeys, otherNames } from '../../../db/inventory/registry.ts'
import { findAlertResources, neighboursOf } from '../../../db/inventory/resources.ts'
import { listResources, showResource, surroundingsOf } from '../../../db/inventory/show-resource.ts'
import { systemScope } from '../../../db/scope.ts'
import { takeLeases } from '../../../db/writes/leases.ts'
import { importSource, platformSource, type SourceDeclaration } from '../../../domain/declared-resources.ts'
import type { InventoryKind } from '../../../domain/kinds.ts'
import type { ResourceRef } from '../../../domain/registry.ts'
import { findDeclarationFaults } from '../../../domain/site.ts'
import { claimedIncident, useDatabase } from '../../support/database.ts'

const database = useDatabase()

const inTransaction = <T>(work: (trx: Trx) => Promise<T>): Promise<T> => database.db.transaction().execute(work)
const declare = (
  source: typeof importSource,
  resources: SourceDeclaration['resources'],
  relations: SourceDeclaration['relations'] = [],
) => inTransaction((trx) => declareResources(trx, source, { resources, relations }))
const ref = (kind: InventoryKind, id: string): ResourceRef => ({ kind, id })
const targets = { name: 'prometheus:main', hasAuthority: false }

test('an unchanged list costs one read, and a changed list writes only the differences', async () => {
  const web = { kind: 'node' as const, id: 'w-1', aliases: ['10.1.0.1'] }
  expect(await declare(platformSource, [web, { kind: 'node', id: 'w-2' }])).toBe(true)
  expect(await declare(platformSource, [web, { kind: 'node', id: 'w-2' }])).toBe(false)
  await database.db.updateTable('resourceSource').set({ seenAt: '2026-01-01T00:00:00Z' }).execute()
  expect(
    await declare(platformSource, [
      { ...web, aliases: ['10.1.0.9'] },
      { kind: 'node', id: 'w-2' },
    ]),
  ).toBe(true)
  const rows = await database.db.selectFrom('resourceSource').select(['id', 'seenAt']).orderBy('id').execute()
  expect(rows.map(({ id, seenAt }) => [id, seenAt.startsWith('2026-01-01')])).toEqual([
    ['w-1', false],
    ['w-2', true],
  ])
  expect(await findByNames(database.db, ['10.1.0.1'])).toEqual([])
  expect((await findByNames(database.db, ['10.1.0.9'])).map(({ id }) => id)).toEqual(['w-1'])
})

test('a source withdraws its own facts, and never those of another source', async () => {
  await declare(platformSource, [
    { kind: 'node', id: 'both' },
    { kind: 'node', id: 'mine' },
  ])
  await declare(importSource, [{ kind: 'node', id: 'both', aliases: ['other-name'] }])
  await declare(platformSource, [])
  expect(await showResource(systemScope(database.db), ref('node', 'mine'))).toBeNull()
  expect(await showResource(systemScope(database.db), ref('node', 'both'))).toMatchObject({
    sources: ['import'],
    aliases: ['other-name'],
  })
})

test('a resource that no source has listed for a day is stale and marked', async () => {
  await declare(importSource, [
    { kind: 'cluster', id: 'old' },
    { kind: 'cluster', id: 'new' },
  ])
  await database.db
    .updateTable('resourceSource')
    .set({ seenAt: sql`nightshift_now() - interval '25 hours'` })
    .where('id', '=', 'old')
    .execute()
  const stale = await listResources(
    systemScope(database.db),
    { kind: 'cluster', q: null, isStale: true },
    { after: null, limit: 10 },
  )
  expect(stale.map(({ id }) => id)).toEqual(['old'])
})

test('a resource shows at most twelve neighbours on a side with their number, and the list has them all', async () => {
  const on = { kind: 'node' as const, id: 'busy' }
  const many = Array.from({ length: 15 }, (_, at) => ({ kind: 'container' as const, id: `c-${at + 10}` }))
  const relations = many.map((from) => ({ from, kind: 'runs_on' as const, to: on }))
  const cluster = { kind: 'cluster' as const, id: 'home' }
  await database.db.transaction().execute((trx) =>
    declareResources(trx, importSource, {
      resources: [on, cluster, ...many],
      relations: [...relations, { from: on, kind: 'belongs_to', to: cluster }],
    }),
  )
  const { needs, neededBy } = await surroundingsOf(systemScope(database.db), on)
  expect(needs).toEqual({ items: [{ key: 'cluster:home', relation: 'belongs_to', firing: 0 }], total: 1 })
  expect([neededBy.items.length, neededBy.total]).toEqual([12, 15])
  const filter = { kind: null, q: null, isStale: null }
  const page = { after: null, limit: 50 }
  expect(await listResources(systemScope(database.db), { ...filter, needs: on }, page)).toHaveLength(15)
  const below = await listResources(systemScope(database.db), { ...filter, neededBy: on }, page)
  expect(below.map(({ id }) => id)).toEqual(['home'])
})

test('a list is paged by kind and id, and searchable by any name', async () => {
  const many = Array.from({ length: 7 }, (_, at) => ({
    kind: 'workload' as const,
    id: `w:${at}`,
    aliases: [`nick-${at}`],
  }))
  await declare(importSource, many)
  const filter = { kind: 'workload' as const, q: null, isStale: null }
  const first = await listResources(systemScope(database.db), filter, { after: null, limit: 4 })
  const rest = await listResources(systemScope(database.db), filter, {
    after: `workload:${first.at(-1)?.id}`,
    limit: 4,
  })
  expect([...first, ...rest].map(({ id }) => id)).toEqual(many.map(({ id }) => id))
  const named = await listResources(systemScope(database.db), { ...filter, q: 'NICK-3' }, { after: null, limit: 4 })
  expect(named.map(({ id }) => id)).toEqual(['w:3'])
})

test('only relations of the platform or an administrator widen the vicinity, in which a reversible write runs without approval', async () => {
  await declare(platformSource, [
    { kind: 'shard', id: 's' },
    { kind: 'node', id: 'n' },
    { kind: 'shard', id: 'victim' },
  ])
  const toVictim = [{ from: ref('node', 'n'), kind: 'belongs_to' as const, to: ref('shard', 'victim') }]
  await expect(declare(targets, [{ kind: 'node', id: 'n' }], toVictim)).rejects.toThrow(
    'may only list targets and its own server',
  )
  await declare(
    targets,
    [{ kind: 'target', id: 'n:9100' }],
    [{ from: ref('target', 'n:9100'), kind: 'same_as', to: ref('node', 'n') }],
  )
  expect(await neighboursOf(database.db, ref('node', 'n'))).toEqual([])
  expect(await neighboursOf(database.db, ref('target', 'n:9100'))).toEqual([])
  await declare(importSource, [], toVictim)
  expect(await neighboursOf(database.db, ref('node', 'n'))).toEqual([ref('shard', 'victim')])
})

test('two incidents cannot write to one resource under two names', async () => {
  await declare(platformSource, [{ kind: 'vm', id: 'x' }])
  await declare(
    importSource,
    [
      { kind: 'node', id: 'x' },
      { kind: 'device', id: 'dev-x' },
    ],
    [
      { from: ref('node', 'x'), kind: 'same_as', to: ref('vm', 'x') },
      { from: ref('device', 'dev-x'), kind: 'same_as', to: ref('node', 'x') },
    ],
  )
  await declare(
    targets,
    [{ kind: 'target', id: 'x:9100' }],
    [{ from: ref('target', 'x:9100'), kind: 'same_as', to: ref('node', 'x') }],
  )
  const [first, second] = [await claimedIncident(database.db), await claimedIncident(database.db)]
  const take = (incidentId: string, target: ResourceRef) =>
    inTransaction((trx) => takeLeases(trx, { incidentId, attempt: 1, callId: 'c1_0' }, [target]))
  expect(await take(first, ref('vm', 'x'))).toBe(true)
  for (const other of [ref('node', 'x'), ref('device', 'dev-x'), ref('target', 'x:9100')])
    expect(await take(second, other)).toBe(false)
  expect(await take(second, ref('vm', 'y'))).toBe(true)
  // What a list of targets says is good for a lease, and for no look and no vicinity.
  expect((await showResource(systemScope(database.db), ref('vm', 'x')))?.sameAs).toEqual(['device:dev-x', 'node:x'])
})

test('if sources disagree on the host of a VM, neither host is near, from the VM and from the hosts, and both are shown', async () => {
  await declare(
    platformSource,
    [
      { kind: 'vm', id: 'd' },
      { kind: 'vm', id: 'sure' },
      { kind: 'host', id: 'h1' },
      { kind: 'host', id: 'h2' },
    ],
    [
      { from: ref('vm', 'd'), kind: 'runs_on', to: ref('host', 'h1') },
      { from: ref('vm', 'sure'), kind: 'runs_on', to: ref('host', 'h1') },
    ],
  )
  expect(await neighboursOf(database.db, ref('vm', 'd'))).toEqual([ref('host', 'h1')])
  await declare(importSource, [], [{ from: ref('vm', 'd'), kind: 'runs_on', to: ref('host', 'h2') }])
  expect(await neighboursOf(database.db, ref('vm', 'd'))).toEqual([])
  expect(await neighboursOf(database.db, ref('host', 'h1'))).toEqual([ref('vm', 'sure')])
  expect(await neighboursOf(database.db, ref('host', 'h2'))).toEqual([])
  const shown = await showResource(systemScope(database.db), ref('vm', 'd'))
  expect(shown?.disagreements).toEqual([
    {
      relation: 'runs_on',
      values: [
        { to: 'host:h1', source: 'platform', seenAt: expect.any(String) },
        { to: 'host:h2', source: 'import', seenAt: expect.any(String) },
      ],
    },
  ])
  // A source without authority takes nothing away.
  await declare(importSource, [], [])
  expect(await neighboursOf(database.db, ref('vm', 'd'))).toEqual([ref('host', 'h1')])
})

test('chains of several sources never merge two nodes: no read, no vicinity, one lease, and a report', async () => {
  const enrolment = { name: 'enrolment', hasAuthority: true }
  await declare(
    platformSource,
    [
      ...['t1', 't2'].map((id) => ({ kind: 'node' as const, id })),
      { kind: 'vm', id: 't' },
      { kind: 'host', id: 't' },
      { kind: 'shard', id: 'far' },
    ],
    [{ from: ref('node', 't2'), kind: 'belongs_to', to: ref('shard', 'far') }],
  )
  await declare(enrolment, [], [{ from: ref('vm', 't'), kind: 'same_as', to: ref('node', 't1') }])
  await declare(
    importSource,
    [],
    [
      { from: ref('vm', 't'), kind: 'same_as', to: ref('host', 't') },
      { from: ref('node', 't2'), kind: 'same_as', to: ref('host', 't') },
    ],
  )
  expect(await neighboursOf(database.db, ref('node', 't1'))).toEqual([])
  expect(await otherNames(database.db, [ref('node', 't1'), ref('vm', 't')])).toEqual(new Map())
  const keys = await leaseKeys(database.db, [ref('node', 't1'), ref('node', 't2'), ref('vm', 't'), ref('host', 't')])
  expect(keys).toEqual(['vm:t'])
  for (const one of [ref('node', 't1'), ref('vm', 't')])
    expect((await showResource(systemScope(database.db), one))?.disagreements).toMatchObject([
      {
        relation: 'same_as',
        values: [
          { to: 'node:t1', source: 'enrolment' },
          { to: 'node:t2', source: 'import' },
        ],
      },
    ])
})

test('an alias that is the id of another resource merges neither', async () => {
  await declare(importSource, [
    { kind: 'node', id: 'real' },
    { kind: 'node', id: 'thief', aliases: ['real'] },
  ])
  const [found] = await findAlertResources(database.db, [{ instance: 'real:9100' }], [])
  expect(found?.resource).toBeNull()
  expect(await otherNames(database.db, [ref('node', 'real')])).toEqual(new Map())
})

test('an alert finds a service on the machine that it names', async () => {
  await declare(platformSource, [
    { kind: 'node', id: 'app-1', aliases: ['10.7.0.1'] },
    { kind: 'node', id: 'app-2' },
  ])
  await declare(
    importSource,
    ['app-1', 'app-2'].map((id) => ({
      kind: 'service_unit' as const,
      id: `${id}:nginx.service`,
      name: 'nginx.service',
    })),
    ['app-1', 'app-2'].map((id) => ({
      from: ref('service_unit', `${id}:nginx.service`),
      kind: 'runs_on' as const,
      to: ref('node', id),
    })),
  )
  const labels = { instance: '10.7.0.1:9100', name: 'nginx.service' }
  const [found] = await findAlertResources(database.db, [labels], [])
  expect(found?.resource).toEqual(ref('service_unit', 'app-1:nginx.service'))
})

test('an invalid declaration is refused with all its errors at once', () => {
  const faults = findDeclarationFaults({
    resources: [
      { kind: 'node', id: 'a' },
      { kind: 'node', id: 'a' },
      { kind: 'node', id: 'b/c' },
    ],
    relations: [
      { from: ref('node', 'a'), kind: 'runs_on', to: ref('host', 'gone') },
      { from: ref('vm', 'x'), kind: 'runs_on', to: ref('vm', 'y') },
      { from: ref('vm', 'y'), kind: 'runs_on', to: ref('vm', 'x') },
      { from: ref('node', 'a'), kind: 'same_as', to: ref('node', 'a') },
    ],
  })
  expect(faults).toEqual([
    'node:a is listed twice',
    'node "b/c" is not an id: letters, digits and . _ : @ - are allowed, 128 at most',
    'node:a runs_on host:gone: host:gone is not known',
    'vm:x runs_on vm:y: vm:x is not known',
    'vm:x runs_on vm:y: vm:y is not known',
    'vm:y runs_on vm:x: vm:y is not known',
    'vm:y runs_on vm:x: vm:x is not known',
    'node:a same_as itself',
    'a loop: vm:x → vm:y → vm:x',
  ])
})

test('a chain of 100,000 causes no loop and no stack overflow', () => {
  const resources = Array.from({ length: 100_001 }, (_, at) => ({ kind: 'vm' as const, id: `v${at}` }))
  const relations = resources.slice(1).map(({ id }, at) => ({
    from: ref('vm', `v${at}`),
    kind: 'depends_on' as const,
    to: ref('vm', id),
  }))
  expect(findDeclarationFaults({ resources, relations })).toEqual([])
})
