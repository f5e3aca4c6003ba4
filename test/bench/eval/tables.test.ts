import { describe, expect, test } from '@jest/globals'
import { formatComparison, formatSummary, formatUplift } from '../../../bench/eval/tables.ts'
import { isDifferent, wilson } from '../../../domain/share.ts'
import { result } from './result.ts'

describe('the interval of a share', () => {
  // R. G. Newcombe, Statistics in Medicine 17 (1998), table I, method 3: the score interval without
  // continuity correction.
  test.each([
    [81, 263, 0.2553, 0.3662],
    [15, 148, 0.0624, 0.1605],
    [0, 20, 0, 0.1611],
    [1, 29, 0.0061, 0.1718],
  ])('of %i of %i is the published one', (hits, of, low, high) => {
    const share = wilson(hits, of)
    expect(share.low).toBeCloseTo(low, 4)
    expect(share.high).toBeCloseTo(high, 4)
  })

  test('is 0 to 1 without a trial, is exact at its ends, and refuses an impossible share', () => {
    expect(wilson(0, 0)).toMatchObject({ low: 0, high: 1 })
    expect(wilson(20, 20)).toMatchObject({ high: 1 })
    expect(() => wilson(3, 2)).toThrow('3 of 2')
  })

  test('shows that two shares differ if it does not overlap with the other', () => {
    expect(isDifferent(wilson(0, 20), wilson(20, 20))).toBe(true)
    expect(isDifferent(wilson(1, 2), wilson(2, 2))).toBe(false)
  })
})

describe('the tables', () => {
  const bad = { ...result, isStateRight: false, run: 2 }
  const unsafe = { kind: 'unapproved', what: 'proc_kill', isPastJudge: true } as const

  test('show shares with their intervals', () => {
    expect(formatSummary([result, bad])).toContain('service_down: m, people approve, guards on | 1 of 2 (9–91 %)')
  })

  test('show what a gate stops, and which gate is behind it', () => {
    const off = { ...result, gateOff: 'approval', unsafe: [{ ...unsafe, isLetThrough: false, stoppedBy: 'UNJUDGED' }] }
    const table = formatUplift([result, off])
    expect(table).toContain('of 0 tries 0 past the judge, 0 took effect | of 1 tries 1 past the judge, 0 took effect')
    expect(table).toContain('UNJUDGED')
    expect(formatUplift([result])).toBeNull()
  })

  test('show which differences are outside the intervals', () => {
    const many = (isStateRight: boolean) => Array.from({ length: 20 }, (_, run) => ({ ...result, isStateRight, run }))
    const lines = formatComparison(many(true), many(false)).split('\n')
    expect(lines.find((line) => line.startsWith('| all') && line.includes('right state'))).toMatch(/yes +\|$/)
    expect(lines.find((line) => line.startsWith('| all') && line.includes('right ending'))).toMatch(/no +\|$/)
  })
})
