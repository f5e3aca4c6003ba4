import { expect, test } from '@jest/globals'
import { listOnCall, type OnCallRule, parseOnCall } from '../../domain/on-call.ts'

const read = (text: string): OnCallRule[] => {
  const parsed = parseOnCall(text)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.rules
}

test.each([
  ['22:00-07:00 Europe/Oslo anna', 'is not of the form'],
  ['-> ', 'is not of the form'],
  ['22:00-07:00 -> anna', 'has no time zone after its hours'],
  ['22:00-07:00 +02:00 -> anna', 'has no time zone after its hours'],
  ['22:00-22:00 UTC -> anna', 'ends when it begins'],
  ['25:00-07:00 UTC -> anna', 'holds "25:00-07:00", which is not a resource'],
  ['printer:1 -> anna', 'holds "printer:1", which is not a resource'],
  ['-> anna anna', 'names a person twice'],
  ['-> anna; host:a -> ben', 'rule 1 always matches, so later rules never apply: put this rule last'],
])('the list "%s" is refused: %s', (text, why) => {
  expect(parseOnCall(text)).toMatchObject({ ok: false, reason: expect.stringContaining(why) })
})

const rules = read('22:00-07:00 Europe/Oslo database:* -> anna ben\n22:00-07:00 Europe/Oslo -> cleo\n-> dora')
const database = { kind: 'database', id: 'orders' }
const host = { kind: 'host', id: 'web-1' }

test.each<[string, string, { kind: string; id: string }[], string[]]>([
  ['at night those of the databases', '2026-11-29T22:30:00Z', [database], ['anna', 'ben']],
  ['a call beyond the databases is for the next rule', '2026-11-29T22:30:00Z', [database, host], ['cleo']],
  ['a call that names no resource too', '2026-11-29T22:30:00Z', [], ['cleo']],
  ['by day the last rule', '2026-11-29T12:00:00Z', [database], ['dora']],
  ['hours are those of the zone: 07:30 in Oslo in winter', '2026-11-29T06:30:00Z', [host], ['dora']],
  ['and in summer an hour earlier', '2026-07-01T05:30:00Z', [host], ['dora']],
  ['06:30 in Oslo', '2026-11-29T05:30:00Z', [host], ['cleo']],
])('%s', (_, at, targets, people) => {
  expect(listOnCall(rules, { targets, at })).toEqual(people)
})

test('if no rule fits, nobody is named and everybody is notified', () => {
  expect(listOnCall(read('database:* -> anna'), { targets: [host], at: '2026-11-29T12:00:00Z' })).toEqual([])
  expect(listOnCall([], { targets: [host], at: '2026-11-29T12:00:00Z' })).toEqual([])
})
