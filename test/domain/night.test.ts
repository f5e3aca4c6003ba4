import { expect, test } from '@jest/globals'
import { lastTimeOf } from '../../domain/hours.ts'
import { addWorkingDays, lastNight, lastOf, nightAt, parseHandOverTimes, parseNight } from '../../domain/night.ts'

test.each([
  ['22:00-07:00', 'has no time zone after its hours: 22:00-07:00 Europe/Oslo'],
  ['22:00-07:00 +02:00', 'has no time zone after its hours'],
  ['22-7 Europe/Oslo', 'must be hours and a time zone'],
  ['22:00-22:00 UTC', 'ends when it begins'],
  ['22:00-07:00 Europe/Oslo MO', 'must be hours and a time zone'],
])('the night "%s" is refused: %s', (text, why) => {
  expect(parseNight(text)).toMatchObject({ ok: false, reason: expect.stringContaining(why) })
})

test.each([
  ['06:00', 'has no time zone after its times: write 06:00 14:00 22:00 Europe/Oslo'],
  ['6:00 Europe/Oslo', '"6:00" is not a time of day: write it as 06:00'],
  ['Europe/Oslo', 'must be 1 to 6 times'],
  ['06:00 07:30 UTC', 'has two times within three hours, at 06:00: leave one of them out'],
  ['23:30 00:30 UTC', 'has two times within three hours, at 23:30'],
  ['06:00 06:00 UTC', 'has two times within three hours'],
])('the times "%s" of a hand-over are refused: %s', (text, why) => {
  expect(parseHandOverTimes(text)).toMatchObject({ ok: false, reason: expect.stringContaining(why) })
})

test('an empty list of times means no hand-over, and commas and blanks are equivalent', () => {
  expect(parseHandOverTimes(' ')).toEqual({ ok: true, value: null })
  const value = { times: ['06:00', '14:00'], zone: 'Europe/Oslo' }
  expect(parseHandOverTimes('14:00, 06:00 Europe/Oslo')).toEqual({ ok: true, value })
})

const oslo = { from: '22:00', to: '07:00', zone: 'Europe/Oslo' }

test('a night begins on the evening before and ends in the morning, by the clock of its zone', () => {
  expect(nightAt(oslo, '2026-11-29T02:00:00Z')).toEqual({ since: '2026-11-28T21:00:00.000Z' })
  expect(nightAt(oslo, '2026-11-29T12:00:00Z')).toBeNull()
  const night = { since: '2026-11-28T21:00:00.000Z', until: '2026-11-29T06:00:00.000Z' }
  expect(lastNight(oslo, '2026-11-29T06:00:00Z')).toEqual(night)
  expect(lastNight(oslo, '2026-11-30T05:59:59Z')).toEqual(night)
})

test.each([
  [
    'the night of the spring change is an hour shorter',
    '2026-03-29T08:00:00Z',
    '2026-03-28T21:00:00.000Z',
    '2026-03-29T05:00:00.000Z',
  ],
  [
    'the night of the autumn change is an hour longer',
    '2026-10-25T08:00:00Z',
    '2026-10-24T20:00:00.000Z',
    '2026-10-25T06:00:00.000Z',
  ],
])('%s', (_name, at, since, until) => {
  expect(lastNight(oslo, at)).toEqual({ since, until })
})

test('a time that a clock change skips still has a moment, and never a future one', () => {
  const skipped = lastTimeOf('02:30', 'Europe/Oslo', '2026-03-29T06:00:00Z')
  expect(['2026-03-29T00:30:00.000Z', '2026-03-29T01:30:00.000Z']).toContain(skipped)
  expect(lastTimeOf('02:30', 'Europe/Oslo', '2026-03-29T01:00:00Z') <= '2026-03-29T01:00:00.000Z').toBe(true)
})

test('of several times the newest past one counts', () => {
  const times = { times: ['06:00', '14:00', '22:00'], zone: 'UTC' }
  expect(lastOf(times, '2026-11-29T15:00:00Z')).toBe('2026-11-29T14:00:00.000Z')
  expect(lastOf(times, '2026-11-29T05:00:00Z')).toBe('2026-11-28T22:00:00.000Z')
})

test('working days skip the weekend', () => {
  expect(addWorkingDays('2026-11-27', 1)).toBe('2026-11-30')
  expect(addWorkingDays('2026-11-28', 3)).toBe('2026-12-02')
  expect(addWorkingDays('2026-11-25', 5)).toBe('2026-12-02')
})

test('two hand-overs that a clock change brings closer together stay two', () => {
  expect(parseHandOverTimes('01:00 03:00 Europe/Oslo')).toMatchObject({ ok: false })
  const { value } = parseHandOverTimes('00:30 03:30 Europe/Oslo') as { value: Parameters<typeof lastOf>[0] }
  const [first, second] = ['2026-03-29T00:00:00Z', '2026-03-29T02:00:00Z'].map((at) => Date.parse(lastOf(value, at)))
  // db/outbox/shift-cards.ts takes what is within 90 minutes for one.
  expect(Number(second) - Number(first)).toBeGreaterThan(90 * 60_000)
})
