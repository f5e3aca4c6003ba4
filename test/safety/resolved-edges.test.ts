import { expect, test } from '@jest/globals'
import {
  emptyResolved,
  guestsReferencedOn,
  maxResolved,
  remember,
  resolvedForMs,
  resolveName,
  shiftTimes,
} from '../../safety/resolved.ts'

const vm = { kind: 'vm' as const, id: '141', name: 'web', aliases: [], host: 'delly' }
const named = (n: number) => ({ kind: 'shard' as const, id: `s${n}`, name: 'the same', aliases: [] })

test('the wait for a person ages neither reads nor meanings', () => {
  const resolved = emptyResolved(null)
  remember(resolved, vm, 1, 0, true)
  remember(resolved, { ...vm, id: '142' }, 2, 0, false)
  shiftTimes(resolved, 10 * resolvedForMs)
  expect(guestsReferencedOn(resolved, 'delly', 11 * resolvedForMs).map(({ ref }) => ref.id)).toEqual(['141'])
  expect(resolved.entries.get('vm:141')).toMatchObject({ atMs: 10 * resolvedForMs, explicitAtMs: 10 * resolvedForMs })
  expect(resolved.entries.get('vm:142')?.explicitAtMs).toBe(null)
})

test('a read of many resources keeps the host of each and when it was meant', () => {
  const resolved = emptyResolved(null)
  remember(resolved, vm, 1, 5, true)
  remember(resolved, { ...vm, host: undefined }, 2, 9, false)
  expect(resolved.entries.get('vm:141')).toMatchObject({ host: 'delly', atMs: 9, explicitAtMs: 5, seq: 2 })
})

test('a name of two resources means the other once the first is forgotten', () => {
  const resolved = emptyResolved(null)
  remember(resolved, named(1), 1, 0, false)
  remember(resolved, named(2), 2, 0, false)
  expect(resolveName(resolved, ['shard'], 'the same', 0).kind).toBe('ambiguous')
  for (let n = 3; n < maxResolved + 2; n += 1) remember(resolved, { ...named(n), name: `s${n}` }, n, 0, false)
  expect(resolveName(resolved, ['shard'], 'the same', 0)).toMatchObject({
    kind: 'known',
    entry: { ref: { id: 's2' } },
  })
})

test('a name that was never returned has no meaning', () => {
  expect(resolveName(emptyResolved(null), ['shard'], 'x', 0)).toEqual({ kind: 'unknown' })
})
