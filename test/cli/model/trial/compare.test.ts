import { expect, test } from '@jest/globals'
import { addUp, minComparable, type TrialResult } from '../../../../cli/model/trial/compare.ts'

const result = (more: Partial<TrialResult> = {}): TrialResult => ({
  incidentId: 'inc_1',
  type: 'replication_lag',
  title: 'lag',
  endingSeq: 40,
  outcome: 'comparable',
  why: null,
  log: { end: 'resolved repaired', writes: ['converge_shard'], turns: 4, tokens: 4_000, isAssumed: false },
  trial: { end: 'resolved repaired', writes: ['converge_shard {}'], turns: 5, tokens: 6_000, isAssumed: false },
  isSameEnding: true,
  isSameWrites: true,
  quoted: { shared: 1, of: 2 },
  ...more,
})
const many = (count: number, more: Partial<TrialResult> = {}) => Array.from({ length: count }, () => result(more))

test('with fewer than thirty comparable incidents there is no verdict, however similar they are', () => {
  expect(addUp(many(minComparable - 1)).verdict).toBeNull()
  expect(addUp([...many(minComparable - 1), ...many(20, { outcome: 'not_comparable', why: 'x' })]).verdict).toBeNull()
  expect(addUp(many(minComparable)).verdict).toBe('alike')
})

test.each([
  ['alike', 50, 0],
  ['undecided', 26, 6],
  ['different', 15, 20],
])('a trial is %s with %i alike and %i that end otherwise', (verdict, alike, other) => {
  expect(addUp([...many(alike), ...many(other, { isSameEnding: false })]).verdict).toBe(verdict)
})

test('the same ending after another write is not alike', () => {
  expect(addUp(many(40, { isSameWrites: false }))).toMatchObject({
    sameEnding: 40,
    sameWrites: 0,
    alike: 0,
    verdict: 'different',
  })
})

test('turns, tokens and quotes are those of the comparable incidents alone', () => {
  const totals = addUp([
    ...many(2),
    result({ outcome: 'unanswered', why: 'slow' }),
    result({ outcome: 'not_comparable', why: 'x' }),
  ])
  expect(totals).toMatchObject({
    comparable: 2,
    unanswered: 1,
    notComparable: 1,
    turns: { log: 8, trial: 10 },
    tokens: { log: 8_000, trial: 12_000 },
    quoted: { shared: 2, of: 4 },
  })
})

test('tokens that a server did not report are shown as a minimum, for its side alone', () => {
  const assumed = result({ trial: { ...result().trial, isAssumed: true } })
  expect(addUp([...many(2), assumed]).assumed).toEqual({ log: false, trial: true })
  expect(addUp(many(2)).assumed).toEqual({ log: false, trial: false })
})
