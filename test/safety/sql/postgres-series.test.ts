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
])('a series without plain ends, or with more rows than a read needs, is not bounded: %s', (args) => {
  expect(isRead(series(args))).toBe(false)
})

test('settings are read by type or by words of their names, and none that may contain a password', () => {
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

test('a text that grows by a text for each of its characters is no bounded read', () => {
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

const again = (step: (inner: string) => string, times: number, first: string): string =>
  times === 0 ? first : step(again(step, times - 1, first))
const padded = "(select lpad('x', 10000) as x)"

test.each([
  ['quotes within quotes', `select length(${again((x) => `quote_literal(${x})`, 27, "''''")})`],
  ['signs of bytes', `select length(${again((x) => `encode(${x}::bytea, 'hex')`, 26, "'xxxx'")})`],
  ['a query of a query', `select length(x) from ${again((x) => `(select x || x as x from ${x} a)`, 15, padded)} b`],
  [
    'columns of a table',
    `select length(x) from ${again((x) => `(select concat(x, x) as x from ${x} a)`, 5, '(select note as x from orders)')} b`,
  ],
  ['lists', `select length(x) from ${again((x) => `(select array[x, x]::text as x from ${x} a)`, 7, padded)} b`],
  [
    'rows',
    `select length(x) from ${again((x) => `(select (a.*)::text as x from (select x, x as y from ${x} a) a)`, 7, '(select note as x from orders)')} b`,
  ],
  [
    'rows by their name',
    `select length(x) from ${again((x) => `(select a::text as x from (select x, x as y from ${x} a) a)`, 7, '(select note as x from orders)')} b`,
  ],
  [
    'JSON',
    `select length(x) from ${again((x) => `(select jsonb_path_query_first(json_build_array(x, x)::jsonb, '$')::text as x from ${x} a)`, 7, padded)} b`,
  ],
  [
    'parts of WITH',
    `with a0(x) as (select lpad('x', 10000))${Array.from({ length: 9 }, (_, n) => `, a${n + 1}(x) as materialized (select x || x from a${n})`).join('')} select length(x) from a9`,
  ],
  [
    'a list of values',
    `select length(x) from ${again((x) => `(select column1 as x from (values ((select x || x from ${x} a))) v)`, 7, '(select note as x from orders)')} b`,
  ],
  ['conditions', `select 1 from orders where length(${again((x) => `quote_ident(${x})`, 9, 'note')}) > 1`],
  ['a constant of many rows', "select length(array_agg(lpad('x', 10000))::text) from generate_series(1, 50000)"],
  ['what is planned', `explain select length(${again((x) => `quote_literal(${x})`, 27, "''''")})`],
])('a text that grows at each step is refused: %s', (_, sql) => {
  expect(inspectSql('postgres', sql)).toMatchObject({
    readOnly: false,
    reason: expect.stringMatching(/^a text (?:that holds|of more than)/),
  })
})

test('rows that a text of the statement is split into are counted', () => {
  const split = `regexp_split_to_table('${'x'.repeat(400)}', '')`
  expect(inspectSql('postgres', `select count(*) from ${split} a, ${split} b`).reason).toBe('more than 100000 rows')
  expect(
    inspectSql('postgres', "select * from unnest(array['orders', 'users']) a, unnest(array[1, 2, 3]) b").readOnly,
  ).toBe(true)
})

test.each([
  "select name || ' ' || name as name from a union all select name || name from b union all select concat(name, ' (', id, ')') from c",
  "select string_agg(format('%s=%s', name, setting), ', ') from pg_settings where name = 'work_mem'",
  'select json_build_object(1, a, 2, b, 3, c, 4, json_agg(json_build_object(1, d))) from t group by a, b, c',
  "with recursive tree(pid, path) as (select pid, pid::text from a union all select a.pid, t.path || ' > ' || a.pid from a join tree t on t.pid = a.parent) select * from tree",
  'select a.*, round(100.0 * (x + y) / (x + y + z), 1) from a',
])('a text that an investigation puts together is not refused: %s', (sql) => {
  expect(inspectSql('postgres', sql)).toMatchObject({ readOnly: true })
})

test('forty nested queries are judged, and only read', () => {
  const nested = again((x) => `(select 1 where 1 = ${x} and length(lower(${'x'.repeat(3)})) > ${1})`, 40, '1')
  expect(inspectSql('postgres', `select ${nested}`)).toMatchObject({ readOnly: true })
})

test.each([
  'quote_literal(t)',
  "replace(t, 'x', 'xx')",
  "encode(t::bytea, 'hex')",
  "array_to_string(array[t, t], '')",
  'row(t, t)::text',
])('a recursion whose next text is made of the one before is bounded: %s', (step) => {
  const sql = `with recursive r(n, t) as (select 1, 'x'::text union all select n + 1, ${step} from r where n < 40) select max(length(t)) from r`
  expect(inspectSql('postgres', sql)).toMatchObject({
    readOnly: false,
    reason: expect.stringContaining('a recursion whose texts grow by themselves'),
  })
})

test('a recursion that adds to its text at each step is not refused', () => {
  const sql =
    "with recursive r(n, t) as (select 1, '1' union all select n + 1, lower(t || ',') from r where n < 40) select max(t) from r"
  expect(inspectSql('postgres', sql)).toMatchObject({ readOnly: true })
})
