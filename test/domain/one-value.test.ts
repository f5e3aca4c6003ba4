import { expect, test } from '@jest/globals'
import { withNewValues } from '../../domain/one-value.ts'
import { keysOfGroups, keysOfThings, parseResourceKey } from '../../domain/registry.ts'
import { findSiteFaults } from '../../domain/site.ts'
import { withoutHanging } from '../support/endless.ts'

type Line = [from: string, kind: string, to: string]
const relate = (lines: Line[]) => lines.map(([from, kind, to]) => ({ from, kind, to }))
const faultsOf = (file: object, known: string[] = []) =>
  findSiteFaults(file, known.length > 0 ? new Set(known) : null).map(({ field, message }) => `${field}: ${message}`)

test('a file that gives a VM two hosts, a node two groups, or a namespace two clusters is refused with both claims', () => {
  expect(
    faultsOf({
      nodes: [{ id: 'app-1', group: 'web' }],
      relations: relate([
        ['vm:101', 'runs_on', 'host:pve-3'],
        ['node:app-1', 'belongs_to', 'shard:db'],
        ['vm:101', 'runs_on', 'host:pve-1'],
        ['namespace:n', 'belongs_to', 'cluster:a'],
        ['namespace:n', 'belongs_to', 'cluster:b'],
      ]),
    }),
  ).toEqual([
    'relations.1: node:app-1 belongs_to shard:db, and nodes.0 says shard:web: node:app-1 belongs_to one shard at most',
    'nodes.0: node:app-1 belongs_to shard:web, and relations.1 says shard:db: node:app-1 belongs_to one shard at most',
    'relations.2: vm:101 runs_on host:pve-1, and relations.0 says host:pve-3: vm:101 runs_on one host at most',
    'relations.0: vm:101 runs_on host:pve-3, and relations.2 says host:pve-1: vm:101 runs_on one host at most',
    'relations.4: namespace:n belongs_to cluster:b, and relations.3 says cluster:a: namespace:n belongs_to one cluster at most',
    'relations.3: namespace:n belongs_to cluster:a, and relations.4 says cluster:b: namespace:n belongs_to one cluster at most',
  ])
})

test('a service on several nodes, a database with replicas and a machine in two clusters are valid', () => {
  expect(
    faultsOf({
      relations: relate([
        ['service_unit:nginx', 'runs_on', 'node:a'],
        ['service_unit:nginx', 'runs_on', 'node:b'],
        ['database:d', 'runs_on', 'node:a'],
        ['database:d', 'runs_on', 'node:b'],
        ['host:h', 'belongs_to', 'cluster:ceph'],
        ['host:h', 'belongs_to', 'cluster:pve'],
        ['vm:v', 'runs_on', 'host:h'],
        ['vm:v', 'runs_on', 'host:h'],
        ['target:t1', 'same_as', 'node:a'],
        ['target:t2', 'same_as', 'node:a'],
      ]),
    }),
  ).toEqual([])
})

test('two nodes are never merged: directly, in both directions, through a VM and a host, or around a cycle', () => {
  const same = (...pairs: [string, string][]) =>
    faultsOf({ relations: relate(pairs.map(([a, b]) => [a, 'same_as', b])) })
  expect(same(['node:a', 'node:b'])).toEqual([
    'relations.0: node:a and node:b would be the same resource: node:a same_as node:b',
  ])
  expect(same(['vm:1', 'node:a'], ['node:b', 'vm:1'])).toHaveLength(2)
  expect(same(['vm:1', 'node:a'], ['vm:1', 'host:h'], ['host:h', 'node:b'])).toEqual([
    'relations.2: node:a and node:b would be the same resource: node:a same_as vm:1 same_as host:h same_as node:b',
  ])
  expect(same(['database:x', 'vm:1'], ['database:x', 'database:y'], ['database:y', 'vm:2'])).toEqual([
    'relations.2: vm:1 and vm:2 would be the same resource: vm:1 same_as database:x same_as database:y same_as vm:2',
  ])
  expect(same(['vm:1', 'node:a'], ['node:a', 'host:h'], ['host:h', 'vm:1'])).toEqual([])
})

test('a new value replaces the one before, from both ends of a name', () => {
  const parsed = (lines: Line[]) =>
    lines.map(([from, kind, to]) => ({
      from: parseResourceKey(from)!,
      kind: kind as 'same_as',
      to: parseResourceKey(to)!,
    }))
  const before = parsed([
    ['vm:1', 'runs_on', 'host:a'],
    ['vm:1', 'depends_on', 'vm:9'],
    ['vm:1', 'same_as', 'node:x'],
    ['target:t', 'same_as', 'node:x'],
  ])
  const given = parsed([
    ['vm:1', 'runs_on', 'host:b'],
    ['node:x', 'same_as', 'vm:2'],
  ])
  expect(withNewValues(before, given)).toEqual([
    ...parsed([
      ['vm:1', 'depends_on', 'vm:9'],
      ['target:t', 'same_as', 'node:x'],
    ]),
    ...given,
  ])
})

test('names that would merge two machines join nothing, and other names join as before', () => {
  const pairs = [
    { left: 'vm:1', right: 'node:a' },
    { left: 'device:d', right: 'node:a' },
    { left: 'device:d', right: 'node:b' },
    { left: 'vm:2', right: 'node:c' },
  ]
  expect(Object.fromEntries(keysOfThings(pairs))).toEqual({
    ...Object.fromEntries(['vm:1', 'node:a', 'node:b', 'device:d'].map((key) => [key, key])),
    ...{ 'vm:2': 'vm:2', 'node:c': 'vm:2' },
  })
})

test('chains of 100,000 names in any order, and resources with 100,000 dependencies, end', async () => {
  const count = 100_000
  const names = Array.from({ length: count }, (_, at) => `target:${String(count - at).padStart(6, '0')}`)
  const pairs = names.slice(1).map((name, at) => ({ left: name, right: names[at] as string }))
  const groups = await withoutHanging(() => keysOfGroups(pairs))
  expect(new Set(groups.values())).toEqual(new Set(['target:000001']))
  const chain = pairs.map(({ left, right }) => ({ from: left, kind: 'same_as', to: right }))
  const needs = names.map((name) => ({ from: 'vm:hub', kind: 'depends_on', to: name }))
  expect(findSiteFaults({ relations: [...chain, ...needs] }, null)).toEqual([])
})

test('names of 10 MB, 100,000 aliases and relations to oneself are short errors', () => {
  const long = 'x'.repeat(10_000_000)
  const faults = findSiteFaults(
    {
      resources: [
        { kind: 'vm', id: long },
        { kind: 'vm', id: 'a', name: long },
        { kind: 'vm', id: 'b', aliases: Array.from({ length: 100_000 }, (_, at) => `a${at}`) },
      ],
      relations: [
        { from: `vm:${long}`, kind: 'same_as', to: 'vm:a' },
        { from: 'vm:a', kind: 'same_as', to: 'vm:a' },
      ],
    },
    null,
  )
  expect(faults.map(({ field }) => field)).toEqual(
    expect.arrayContaining(['resources.0.id', 'resources.1.name', 'resources.2.aliases', 'relations.0.from']),
  )
  expect(faults.map(({ message }) => message)).toContain('vm:a same_as itself')
  expect(JSON.stringify(faults).length).toBeLessThan(5_000)
})
