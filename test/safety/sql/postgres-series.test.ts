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

test('a text that grows by what stands once for each of its characters is no bounded read', () => {
  for (const sql of [
    "select replace(rpad('x', 9000, 'x'), 'x', rpad('y', 9000, 'y'))",
    'select replace(big, note, big) from wide',
    "select regexp_replace(big, 'x', big, 'g') from wide",
    "select replace(replace(note, 'a', 'bbbbbbbbbb'), 'b', 'cccccccccc') from orders",
    "select string_agg(note, rpad(',', 9000)) from orders",
    "select 'x'::char(10000000)",
    'select 1::bit(80000000)',
    "with recursive r(n, t) as (select 1, 'x' union all select n + 1, t || t from r where n < 60) select length(t) from r",
    "with recursive r(n, t) as (select 1, 'x' union all select r.n + 1, concat(r.t, r.t) from r where r.n < 60) select n from r",
  ])
    expect([sql, isRead(sql)]).toEqual([sql, false])
  for (const sql of [
    "select replace(replace(query, chr(10), ' '), '  ', ' ') from pg_stat_activity limit 5",
    "select regexp_replace(query, '[0-9]+', '?', 'g') from pg_stat_activity limit 5",
    "select string_agg(datname, ', ') from pg_database",
    "select 'x'::char(10), array_to_string(reloptions, ',') from pg_class limit 1",
    "with recursive tree as (select id, name::text as path from nodes where parent_id is null union all select n.id, t.path || '/' || n.name from nodes n join tree t on t.id = n.parent_id) select path from tree limit 50",
  ])
    expect([sql, isRead(sql)]).toEqual([sql, true])
})
