import { describe, expect, test } from '@jest/globals'
import { isMassEnd } from '../../domain/mass-resolve.ts'
import { endsOccurrence, isNewOccurrence } from '../../domain/occurrence.ts'

const now = Date.parse('2026-11-22T03:00:00Z')

const ago = (seconds: number) => now - seconds * 1000

const hour = 3600

describe('a new occurrence', () => {
  const stored = {
    startsAtMs: ago(hour),
    isStartGiven: true,
    startSeen: 3,
    startReceivedAtMs: ago(hour - 30),
    lastSeenMs: ago(60),
  }
  const seen = (startsAtMs: number | null) => ({ startsAtMs, receivedAtMs: now })

  test.each([
    ['the same start again is a repeat', stored, seen(ago(hour)), false],
    ['a start after the last sight is one', stored, seen(ago(30)), true],
    ['a start before the last sight is none', stored, seen(ago(90)), false],
    ['a start that we filled in starts none', stored, seen(null), false],
    ['against a start that we filled in nothing is new', { ...stored, isStartGiven: false }, seen(ago(30)), false],
    [
      'a sender that stamps every body with the time of sending starts none',
      { ...stored, startSeen: 1, startsAtMs: ago(61), startReceivedAtMs: ago(60) },
      seen(ago(1)),
      false,
    ],
    [
      'one whose start stood still before does',
      { ...stored, startSeen: 2, startsAtMs: ago(121), startReceivedAtMs: ago(120) },
      seen(ago(1)),
      true,
    ],
  ])('%s', (_what, row, body, isNew) => {
    expect(isNewOccurrence(body, row)).toBe(isNew)
  })

  test.each([
    ['the end of this start', ago(hour), ago(10), true],
    ['an end of an older start', ago(2 * hour), ago(90 * 60), false],
    ['an end that is older than the occurrence', null, ago(2 * hour), false],
    ['an end before its own start', ago(hour), ago(2 * hour), false],
    ['an end without any time', null, null, true],
  ])('%s', (_what, startsAtMs, endsAtMs, ends) => {
    expect(endsOccurrence({ startsAtMs, endsAtMs, receivedAtMs: now }, stored)).toBe(ends)
  })

  test.each([
    [20, 20, false],
    [21, 21, true],
    [21, 42, false],
    [22, 43, true],
    [500, 5_000, false],
  ])('%i ends within a minute of %i firing are a crowd: %s', (endsInMinute, firingBefore, isCrowd) => {
    expect(isMassEnd({ endsInMinute, firingBefore })).toBe(isCrowd)
  })
})
