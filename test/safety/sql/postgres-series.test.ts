import { beforeAll, expect, test } from '@jest/globals'
import { inspectSql, loadSql } from '../../../safety/sql/inspect.ts'

beforeAll(loadSql)

const isRead = (sql: string): boolean => inspectSql('postgres', sql).readOnly
const series = (args: string): string => `select count(*) from generate_series(${args}) g`

test.each([
  "now() - interval '7 days', now(), interval '1 day'",
  "date_trunc('hour', now()) - interval '1 day', now(), '1 hour'::interval",
  "current_date - interval '30 days', current_date, interval '1 day'",
  "'2026-11-01'::date, '2026-11-30'::date, interval '1 day'",
])('a series of times with plain ends is bounded: %s', (args) => {
  expect(isRead(series(args))).toBe(true)
})

test.each([
  "now(), now() + interval '100000 years', interval '1 second'",
  "now() - interval '10 years', now(), interval '1 second'",
  "'2026-11-01'::date, now(), interval '1 second'",
  "now() - interval '1 day', now(), interval '0 seconds'",
  "now() - interval '1 day', now(), (select interval '1 second')",
  "(select min(created_at) from orders), now(), interval '1 second'",
])('one without them, or of more rows than a look needs, is not: %s', (args) => {
  expect(isRead(series(args))).toBe(false)
})

test('settings are read by type or by words of their names, and none that may hold a password', () => {
  const settings = (condition: string) => isRead(`select name, setting from pg_settings where ${condition}`)
  for (const condition of ["name ~ '^(enable_|random_page_cost|jit)'", "vartype in ('bool', 'integer')"])
    expect([condition, settings(condition)]).toEqual([condition, true])
  for (const condition of [
    "name ~ 'conn|jit'",
    "name ~ '.*'",
    "name ~ 'a'",
    "vartype = 'string'",
    "vartype <> 'bool'",
    'pending_restart',
  ])
    expect([condition, settings(condition)]).toEqual([condition, false])
})
