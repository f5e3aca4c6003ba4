import { expect, test } from '@jest/globals'
import { holdSecondsOf, parsePageHold } from '../../domain/page-hold.ts'
import { parseSetting, settingOf } from '../../domain/setting.ts'

const about = (severity: 'critical' | 'warning', kind?: 'host' | 'vm', id = '') => ({
  severity,
  resource: kind ? { kind, id } : null,
})

function secondsOf(text: string, incident: ReturnType<typeof about>): number {
  const parsed = parsePageHold(text)
  if (!parsed.ok) throw new Error(parsed.reason)
  return holdSecondsOf(parsed.value, incident)
}

test.each([
  ['300', about('critical'), 300],
  ['0', about('critical'), 0],
  ['host:db-* = 0; critical = 120; 60', about('critical', 'host', 'db-7'), 0],
  ['host:db-* = 0; critical = 120; 60', about('critical', 'vm', 'db-7'), 120],
  ['host:db-* = 0; critical = 120; 60', about('warning'), 60],
  ['host:web-*-a = 30', about('critical', 'host', 'web-osl-1-a'), 30],
  // What no rule names waits for nothing.
  ['host:web-*-a = 30', about('critical', 'host', 'web-osl-1-b'), 0],
  ['host:web-*-a = 30', about('critical'), 0],
])('page.hold %j: %j waits %i s', (text, incident, seconds) => {
  expect(secondsOf(text, incident)).toBe(seconds)
})

test.each([
  ['301', 'is not a rule'],
  ['-1', 'is not a rule'],
  ['5m', 'is not a rule'],
  ['', 'must be 1 to 50 rules'],
  ['host = 30', 'is not a rule'],
  ['host:db* = never', 'is not a rule'],
  ['warning = 60', 'never matches: only critical incidents page when they open'],
  ['pod:db-* = 60', '"pod:db-* = 60" has an unknown kind of resource; known are region, shard'],
  ['60; critical = 0', '"critical = 0" is never reached: the rule before it matches everything'],
])('page.hold %j is refused: %s', (text, why) => {
  const parsed = parseSetting('page.hold', text)
  expect(parsed).toMatchObject({ ok: false })
  expect(parsed.ok ? '' : parsed.reason).toContain(why)
})

test('the hold can be set by type of incident', () => {
  expect(settingOf('page.hold.disk_pressure')?.key).toBe('page.hold.*')
})
