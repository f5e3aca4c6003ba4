import { describe, expect, test } from '@jest/globals'
import type { ResourceRef } from '../../domain/registry.ts'
import {
  emptyResolved,
  guestsReferencedOn,
  knownHosts,
  maxResolved,
  remember,
  resolvedForMs,
  resolveName,
  shiftTimes,
} from '../../safety/resolved.ts'

const shard = (id: string, name = id, aliases: string[] = []) => ({ kind: 'shard' as const, id, name, aliases })
const node = (id: string, name: string, ip: string) => ({ kind: 'node' as const, id, name, aliases: [ip] })
const vm = (id: string, host: string) => ({ kind: 'vm' as const, id, name: `web ${id}`, aliases: [], host })

function known(...things: Parameters<typeof remember>[1][]) {
  const resolved = emptyResolved(null)
  for (const [index, thing] of things.entries()) remember(resolved, thing, index + 1, 0, false)
  return resolved
}

describe('a name in a call', () => {
  const resolved = known(
    shard('db-osl-1', 'Oslo primary', ['db-primary']),
    shard('db-ams-1', 'Amsterdam primary', ['db-primary']),
    node('node-7', 'db7.osl.example', '10.0.0.7'),
  )
  test.each([
    ['an id is itself', ['shard'], 'db-osl-1', 'db-osl-1'],
    ['a name means its thing', ['shard'], 'Oslo primary', 'db-osl-1'],
    ['an address is an alias', ['node'], '10.0.0.7', 'node-7'],
    ['a name of another kind means nothing', ['node'], 'Oslo primary', 'unknown'],
    ['what was never looked up means nothing', ['shard'], 'db-osl-9', 'unknown'],
  ])('%s', (_title, kinds, name, expected) => {
    const meant = resolveName(resolved, kinds as never, name, 0)
    expect(meant.kind === 'known' ? meant.entry.ref.id : meant.kind).toBe(expected)
  })

  test('with two meanings is ambiguous, and both are named', () => {
    const meant = resolveName(resolved, ['shard'], 'db-primary', 0)
    expect(meant).toMatchObject({ kind: 'ambiguous' })
    expect(meant.kind === 'ambiguous' && meant.candidates.map(({ canonical }) => canonical)).toEqual([
      'shard:db-osl-1',
      'shard:db-ams-1',
    ])
  })

  test('is an id before it is an alias of the same spelling', () => {
    const sly = known(shard('db-1'), shard('db-2', 'db-1', ['db-1']))
    expect(resolveName(sly, ['shard'], 'db-1', 0)).toMatchObject({ kind: 'known', entry: { ref: { id: 'db-1' } } })
  })
})

test('a read is valid for 45 minutes, and the wait for a person does not age it', () => {
  const resolved = known(shard('db-osl-1'))
  expect(resolveName(resolved, ['shard'], 'db-osl-1', resolvedForMs).kind).toBe('known')
  expect(resolveName(resolved, ['shard'], 'db-osl-1', resolvedForMs + 1).kind).toBe('unknown')
  shiftTimes(resolved, 3 * 86_400_000)
  expect(resolveName(resolved, ['shard'], 'db-osl-1', 3 * 86_400_000 + resolvedForMs).kind).toBe('known')
})

test("500 resources are kept, the one that was read longest ago is removed first, and the incident's own never", () => {
  const own: ResourceRef = { kind: 'shard', id: 'own' }
  const resolved = emptyResolved(own)
  remember(resolved, shard('own'), 1, 0, true)
  remember(resolved, shard('second', 'second', ['an alias']), 2, 0, true)
  for (let n = 0; n < maxResolved - 1; n += 1) remember(resolved, shard(`s${n}`), n + 3, 0, false)
  expect(resolved.entries.size).toBe(maxResolved)
  expect(resolveName(resolved, ['shard'], 'own', 0).kind).toBe('known')
  expect(resolveName(resolved, ['shard'], 'second', 0).kind).toBe('unknown')
  expect(resolveName(resolved, ['shard'], 'an alias', 0).kind).toBe('unknown')
})

test('another read keeps a resource young, and its earlier names', () => {
  const resolved = emptyResolved(null)
  remember(resolved, shard('a', 'Anna'), 1, 0, false)
  for (let n = 0; n < maxResolved - 1; n += 1) remember(resolved, shard(`s${n}`), n + 2, 0, false)
  remember(resolved, shard('a', 'Anna B'), 900, 5, false)
  remember(resolved, shard('one more'), 901, 5, false)
  expect(resolveName(resolved, ['shard'], 'Anna', 5)).toMatchObject({ kind: 'known', entry: { seq: 900 } })
})

test('resources on different hosts are told apart by their host', () => {
  const resolved = known(vm('141', 'delly'), shard('db-osl-1'))
  expect([...resolved.entries.values()].map(({ canonical }) => canonical)).toEqual(['vm:delly:141', 'shard:db-osl-1'])
})

test('a guest counts as meant if a recent call named it alone, and not if a list contained it', () => {
  const resolved = known(vm('141', 'delly'), vm('142', 'delly'), vm('143', 'minipc'))
  expect(guestsReferencedOn(resolved, 'delly', 0)).toEqual([])
  remember(resolved, vm('141', 'delly'), 9, 0, true)
  remember(resolved, vm('143', 'minipc'), 10, 0, true)
  expect(guestsReferencedOn(resolved, 'delly', 0).map(({ ref }) => ref.id)).toEqual(['141'])
  // Bulk look-ups afterwards refresh it without meaning it again.
  remember(resolved, vm('141', 'delly'), 11, resolvedForMs + 1, false)
  expect(guestsReferencedOn(resolved, 'delly', resolvedForMs + 1)).toEqual([])
})

test('hosts that were read are known by every name, in lower case, and shards are no hosts', () => {
  const resolved = known(node('node-7', 'DB7.osl.example', '10.0.0.7'), shard('db-osl-1'))
  expect([...knownHosts(resolved, 0)].sort()).toEqual(['10.0.0.7', 'db7.osl.example', 'node-7'])
  expect(knownHosts(resolved, resolvedForMs + 1).size).toBe(0)
})
