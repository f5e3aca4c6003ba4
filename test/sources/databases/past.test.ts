import { expect, test } from '@jest/globals'
import {
  packCounts,
  type StatementCount,
  type StatementSnapshot,
  unpackCounts,
} from '../../../domain/statement-snapshot.ts'
import { findPast } from '../../../sources/databases/past.ts'

const dayMs = 86_400_000
const nowMs = Date.parse('2026-11-27T12:00:00Z')
const ago = (days: number) => new Date(nowMs - days * dayMs).toISOString()

const count = (key: string, calls: number, ms: number, touched = 0): StatementCount => ({
  key,
  calls,
  ms,
  rows: calls,
  touched,
  statement: null,
})

const snapshot = (
  days: number,
  counts: StatementCount[],
  more: Partial<StatementSnapshot> = {},
): StatementSnapshot => ({
  server: '71',
  version: '17.2',
  countedSince: ago(40),
  isWhole: true,
  takenAt: ago(days),
  counts,
  ...more,
})

/** A week of snapshots; the day that began seven days ago had 2,400 calls of 2 ms. */
const week = [8, 7, 6, 5, 4, 3, 2, 1, 0].map((days) => {
  const passed = 8 - days
  return snapshot(days, [count('a', 1_000 + 2_400 * passed, 10_000 + 4_800 * passed, 24_000 * passed)])
})
const now = snapshot(0, [count('a', 30_000, 900_000)])

test('a week before is the day between two snapshots: per call and per hour', () => {
  const { against, of } = findPast(now, week, nowMs)
  expect(against).toBe('2026-11-20, a week before')
  expect(of?.('a')).toEqual({ meanMs: 2, touchedACall: 10, callsAnHour: 100 })
})

test.each([
  ['none', [], 'no earlier snapshot: the first snapshot of the counters is taken within minutes', undefined],
  [
    'one, of two days ago',
    [snapshot(2, [count('a', 912, 1_824)])],
    '2026-11-25, the oldest snapshot: with all before it',
    { meanMs: 2, touchedACall: 0, callsAnHour: 1 },
  ],
  [
    'one, of a server that does not tell since when it counts',
    [snapshot(2, [count('a', 912, 1_824)], { countedSince: null })],
    '2026-11-25, the oldest snapshot: with all before it',
    { meanMs: 2, touchedACall: 0 },
  ],
  [
    'two, in the first week',
    [snapshot(1, [count('a', 340, 1_240)]), snapshot(2, [count('a', 100, 1_000)])],
    '2026-11-25, the oldest snapshot',
    { meanMs: 1, touchedACall: 0, callsAnHour: 10 },
  ],
  [
    'a gap of two days after the oldest',
    [snapshot(7, [count('a', 100, 100)]), snapshot(5, [count('a', 580, 1_060)])],
    '2026-11-20, a week before',
    { meanMs: 2, touchedACall: 0, callsAnHour: 10 },
  ],
  [
    'a statement that was not called on that day',
    [snapshot(7, [count('a', 100, 300)]), snapshot(6, [count('a', 100, 300)])],
    '2026-11-20, a week before',
    { meanMs: 3, touchedACall: 0, callsAnHour: 0 },
  ],
  [
    'a statement that came up on that day',
    [snapshot(7, [count('b', 1, 1)]), snapshot(6, [count('b', 1, 1), count('a', 240, 480)])],
    '2026-11-20, a week before',
    { meanMs: 2, touchedACall: 0, callsAnHour: 10 },
  ],
  [
    'a statement that was not among those of the first',
    [snapshot(7, [count('b', 1, 1)], { isWhole: false }), snapshot(6, [count('b', 1, 1), count('a', 240, 480)])],
    '2026-11-20, a week before',
    { meanMs: 2, touchedACall: 0 },
  ],
  ['no such statement', [snapshot(7, []), snapshot(6, [])], '2026-11-20, a week before', 'not called'],
  [
    'no such statement among those that were kept',
    [snapshot(7, [], { isWhole: false }), snapshot(6, [], { isWhole: false })],
    '2026-11-20, a week before',
    'not kept',
  ],
  [
    'a statement that the server dropped, and counts from nothing',
    [
      snapshot(7, [count('a', 900, 900), count('b', 1, 1), count('c', 1, 1)]),
      snapshot(6, [count('a', 24, 48), count('b', 2, 2), count('c', 2, 2)]),
    ],
    '2026-11-20, a week before',
    { meanMs: 2, touchedACall: 0 },
  ],
] as const)('compared with %s', (_, snapshots, against, cost) => {
  const past = findPast(now, snapshots, nowMs)
  expect([past.against, past.of?.('a')]).toEqual([against, cost])
})

test.each([
  ['another server', { server: '72' }, 'nothing: another server has answered since 2026-11-26'],
  ['another version', { version: '18.1' }, 'nothing: version 17.2 became 18.1 after 2026-11-26'],
  ['a reset', { countedSince: ago(0.5) }, 'nothing: the counters were reset at 2026-11-27 00:00 UTC'],
  [
    'a reset of which the server tells nothing',
    { countedSince: null, counts: [count('a', 5, 5)] },
    'nothing: the counters were reset after 2026-11-26 12:00 UTC',
  ],
])('counters that differ from those of the snapshot are compared with nothing: %s', (_, change, against) => {
  const past = findPast({ ...now, ...change }, [snapshot(1, [count('a', 900, 900)])], nowMs)
  expect(past).toEqual({ against, of: null })
})

test('after a reset the snapshots since then count, and the answer says since when', () => {
  const countedSince = ago(3.25)
  const since = [3, 2].map((days) => snapshot(days, [count('a', 240 * (4 - days), 240 * (4 - days))], { countedSince }))
  const past = findPast({ ...now, countedSince }, [snapshot(8, [count('a', 9e9, 9e9)]), ...since], nowMs)
  expect(past.against).toBe('2026-11-24, the oldest snapshot since the counters were reset at 2026-11-24 06:00 UTC')
  expect(past.of?.('a')).toEqual({ meanMs: 1, touchedACall: 0, callsAnHour: 10 })
})

test('no compared value is negative, whatever a server counts', () => {
  const figures = [0, 1, 7, 1e12]
  for (const calls of figures)
    for (const ms of figures)
      for (const touched of figures) {
        const both = [
          snapshot(7, [count('a', 7, 7, 7), count('b', 1, 1)]),
          snapshot(6, [count('a', calls, ms, touched), count('b', 1, 1)]),
        ]
        const cost = findPast(now, both, nowMs).of?.('a')
        const values = typeof cost === 'object' ? Object.values(cost) : []
        expect([calls, ms, touched, values.every((value) => value >= 0 && Number.isFinite(value))]).toEqual([
          calls,
          ms,
          touched,
          true,
        ])
      }
})

test('a snapshot takes at most 20 kB: the cheapest statements are left out, and the most expensive keep their texts', () => {
  const many = Array.from({ length: 1_000 }, (_, n) => ({
    ...count(`16384 16385 ${n}`, n, n),
    statement: 'é'.repeat(200),
  }))
  const { text, isWhole } = packCounts(snapshot(0, many))
  expect([Buffer.byteLength(text) <= 20_000, isWhole]).toEqual([true, false])
  const kept = unpackCounts(text)
  expect(kept.length).toBeGreaterThan(200)
  expect(kept[0]).toMatchObject({ key: '16384 16385 999', calls: 999, statement: 'é'.repeat(200) })
  expect(kept.filter(({ statement }) => statement !== null)).toHaveLength(20)
  expect(unpackCounts(packCounts(now).text)).toEqual(now.counts)
})
