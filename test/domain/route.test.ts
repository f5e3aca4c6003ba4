import { expect, test } from '@jest/globals'
import type { Trigger } from '../../domain/notification.ts'
import { type DestinationKind, isRouted, type Route, type RoutedNews, route } from '../../domain/route.ts'

const told = { severity: 'critical', incidentType: 'disk_pressure', page: true } as const
const at = '2026-01-15T12:00:00Z'
type Case = Partial<RoutedNews & { kind: DestinationKind; why: Trigger; hasHeard: boolean; now: string }>
const goes = (
  change: Partial<Route>,
  { kind = 'email', why = 'critical', hasHeard = false, now = at, ...more }: Case = {},
) => isRouted({ kind, route: route.parse(change) }, why, { ...told, ...more }, { hasHeard, at: now })

test('a route without conditions takes everything except that a person took the incident', () => {
  const all: Trigger[] = ['critical', 'escalated', 'approval', 'resolved', 'watch', 'quiet', 'digest', 'notice']
  expect(all.filter((why) => goes({}, { why }))).toEqual(all)
  expect(goes({}, { why: 'taken' })).toBe(false)
  expect(goes({ triggers: ['taken'] }, { why: 'taken' })).toBe(true)
})

test('severities, types and triggers narrow a route', () => {
  expect(goes({ severities: ['warning'] })).toBe(false)
  expect(goes({ severities: ['critical', 'warning'] })).toBe(true)
  expect(goes({ triggers: ['resolved'] })).toBe(false)
})

test.each([
  ['disk_pressure', true],
  ['disk', false],
  ['disk_*', true],
  ['*_pressure', true],
  ['*', true],
  ['d*k_*ure', true],
  ['*sure*sure', false],
  ['disk_pressure*', true],
  ['*k*k*', false],
])('the type %s takes disk_pressure: %s', (glob, is) => {
  expect(goes({ types: ['other', glob] })).toBe(is)
})

test('a pattern of only stars takes no time', () => {
  expect(goes({ types: [`${'*a'.repeat(29)}*`] }, { incidentType: 'a'.repeat(28) })).toBe(false)
})

const night = { from: '22:00', to: '06:00', zone: 'Europe/Oslo' }

test.each([
  // Winter: an hour ahead of UTC.
  ['2026-01-15T20:59:00Z', false],
  ['2026-01-15T21:00:00Z', true],
  ['2026-01-15T23:30:00Z', true],
  ['2026-01-16T04:59:00Z', true],
  ['2026-01-16T05:00:00Z', false],
  // Summer: two hours.
  ['2026-07-15T20:00:00Z', true],
  ['2026-07-16T04:00:00Z', false],
  // The night in which clocks go back has its hour twice.
  ['2026-10-25T00:30:00Z', true],
  ['2026-10-25T01:30:00Z', true],
])('at %s the night of Oslo takes it: %s', (now, is) => {
  expect(goes({ hours: night }, { now })).toBe(is)
})

test('hours within a day begin with their first minute and end before their last', () => {
  const hours = { from: '08:00', to: '16:00', zone: 'UTC' }
  const within = ['07:59', '08:00', '15:59', '16:00'].map((time) => goes({ hours }, { now: `2026-01-15T${time}:30Z` }))
  expect(within).toEqual([false, true, true, false])
})

test('the end of a report is sent to everyone who got the report, at any hour and of any severity', () => {
  const narrow = { hours: night, severities: ['critical' as const] }
  expect(goes(narrow, { why: 'resolved', hasHeard: true, severity: 'info' })).toBe(true)
  expect(goes(narrow, { why: 'closed', hasHeard: true })).toBe(true)
  expect(goes(narrow, { why: 'resolved' })).toBe(false)
  expect(goes({}, { why: 'closed' })).toBe(false)
})

test('PagerDuty gets what pages, and the end of what it began, whatever its route says', () => {
  const kind = 'pagerduty'
  expect(goes({}, { kind })).toBe(true)
  expect(goes({}, { kind, why: 'escalated', page: false })).toBe(false)
  for (const why of ['watch', 'quiet', 'digest'] as const) expect(goes({}, { kind, why })).toBe(false)
  for (const why of ['resolved', 'closed', 'taken'] as const) {
    expect(goes({ triggers: ['critical'] }, { kind, why, hasHeard: true })).toBe(true)
    expect(goes({}, { kind, why })).toBe(false)
  }
})

test('a message that no route delivers goes to every destination, and to PagerDuty if it pages', () => {
  const narrow = { types: ['other'], triggers: ['digest' as const], hours: night }
  expect(goes(narrow, { why: 'undelivered' })).toBe(true)
  expect(goes(narrow, { kind: 'pagerduty', why: 'undelivered' })).toBe(true)
  expect(goes({}, { kind: 'pagerduty', why: 'undelivered', page: false })).toBe(false)
})

test.each([
  [{ hours: { from: '8:00', to: '16:00', zone: 'UTC' } }, 'must be hours and minutes, such as 22:00'],
  [{ hours: { from: '08:00', to: '08:00', zone: 'UTC' } }, 'leave hours out for the whole day'],
  [{ hours: { from: '08:00', to: '16:00', zone: 'Mars/Phobos' } }, 'as Europe/Oslo or UTC'],
  [{ hours: { from: '08:00', to: '16:00', zone: '+01:00' } }, 'as Europe/Oslo or UTC'],
  [{ types: ['Disk pressure'] }, 'as disk_pressure or disk_*'],
  [{ severities: [] }, 'must have at least one entry, such as critical'],
])('%j is refused with a valid value', (given, words) => {
  expect(route.safeParse(given).error?.issues[0]?.message).toContain(words)
})
