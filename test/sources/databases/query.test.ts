import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { planRead, probeSource, readSource } from '../../../sources/kinds.ts'
import { openShop } from './shop.ts'

let shop: Awaited<ReturnType<typeof openShop>>
const query = (sql: string, from?: ReturnType<typeof shop.source>) => shop.query(sql, from)
const source = (options: object, credential?: string) => shop.source(options, credential)

beforeAll(async () => {
  shop = await openShop(`create table users (id int, email text, password_hash text);
    insert into users values (1, 'a@example.com', 'planted-secret'); update orders set note = 'same';
    create function lower(orders) returns text language sql as 'select 1::text';
    create view watched as select a.pid, a.query as does from pg_stat_activity a where a.application_name = 'shop';
    create function is_fine(text) returns boolean language sql as 'select true'; create domain checked as text check (is_fine(value));
    create table labelled (tags checked[]); create table guarded (n int); alter table guarded enable row level security;
    create table events (payload jsonb); insert into events values ('{"error": "timeout", "api_key": "planted-secret"}');
    create table ranked (n int); create function compare(ranked, int) returns boolean language sql as 'select true';
    create operator >= (leftarg = ranked, rightarg = int, function = compare); create operator = (leftarg = ranked, rightarg = int, function = compare);
    create view acting as select public.lower(o) as n from orders o;
    create policy behind on guarded using (exists (select from acting where acting.n = guarded.n::text));`)
})
afterAll(async () => await shop?.drop())

test('a source is asked no statement until an admin allows it, and the refusal says who may', async () => {
  expect(await query('select 1', source({}))).toBe(
    'shop-db answers only ask_database; an admin may allow statements: nightshift sources add shop-db … --option query=allowed',
  )
  expect(await query('select count(*) from orders')).toBe('{"columns":["count"],"rows":[[50]]}')
  // The one of two that allows it is meant.
  const both = [{ ...source({}), name: 'other' }, source({ query: 'allowed' })]
  expect(planRead(both, 'query_database', { sql: 'select 1' })).toMatchObject({ ok: true, source: { name: 'shop-db' } })
})

test.each([
  ['delete from orders', 'DeleteStmt: only SELECT, SHOW and EXPLAIN are allowed here'],
  ['select 1; select 2', 'more than one statement'],
  ['select lower(o) from orders o', 'is a function of this site'],
  ['select lower(note) from orders', 'write pg_catalog.name(…)'],
  ['select o.lower from orders o', 'is a function of this site'],
  ['select r between 1 and 2 from ranked r', '>=(ranked,integer) is an operator of this site'],
  ['select case r when 1 then 2 end from ranked r', '=(ranked,integer) is an operator of this site'],
  ['select 1 from ranked r where r in (select 1)', '=(ranked,integer) is an operator of this site'],
  ["select array_append(tags, 'x') from labelled", 'the domain checked calls is_fine(text)'],
  ['select n from guarded', 'acting calls lower(orders)'],
  ['select * from acting', 'acting calls lower(orders), which is code of this site'],
  ['select password_hash from users', 'column password_hash of users is named like a credential'],
  ['select row_to_json(u) from users u', 'name the others instead of a star or a row: id, email'],
  ['select pg_sleep(100)', 'function pg_sleep'],
  ['select count(*) from generate_series(1, 1000000000)', 'as generate_series(1, 1000)'],
])('%s is not asked', async (sql, why) => {
  expect(await query(sql)).toContain(why)
})

test('a cut answer is partial, and shows no absence', async () => {
  const planned = planRead([source({ query: 'allowed' })], 'query_database', {
    sql: 'select a.id from orders a join generate_series(1, 10) g on true',
  })
  if (!planned.ok) throw new Error(planned.reason)
  expect(await readSource(planned, shop.states, { nowMs: Date.now(), incidentBeganMs: null })).toMatchObject({
    isCut: true,
    isPartial: true,
  })
})

test('at most a hundred rows are returned, columns named like credentials are hidden, and statements of others have no values', async () => {
  const many = await query('select a.id from orders a join orders b on true', source({ query: 'allowed' }))
  expect(many).toContain('compare a column of each side with =')
  expect(await query('select a.id from orders a join generate_series(1, 10) g on true')).toContain('more than 100 rows')
  expect(await query('select * from users')).toBe(
    '{"columns":["id","email","password_hash"],"rows":[[1,"a@example.com","[hidden]"]]}',
  )
  expect(await query('select count(*) from users where password_hash is null')).toContain('[[0]]')
  const session = await shop.open('shop')
  await session.query("select 'planted-secret'")
  const seen = await query("select query from pg_stat_activity where application_name = 'shop'")
  expect(seen).toBe('{"columns":["query"],"rows":[["select ?"]]}')
})

test.each([
  "select '; -- ü' as x; -- done",
  "select '; -- ü' as x; /* done */ ;",
  "/* first */ select '; -- ü' as x -- done",
])('a comment behind a statement has no effect: %s', async (sql) => {
  expect(await query(sql)).toBe('{"columns":["x"],"rows":[["; -- ü"]]}')
})

const shows = (of: string) => `${of} where application_name = 'shop'`
test.each([
  'select QUERY from PG_STAT_ACTIVITY',
  'select query from U&"pg!005fstat_activity" uescape \'!\'',
  'select does as query from watched',
  'select left(query, 100) as query from pg_stat_activity',
  "select coalesce(upper(query), '') as query from (select * from pg_stat_activity) a",
  'with recursive tree(pid, path, query) as (select pid, array[pid], query from pg_stat_activity union all select a.pid, t.path || a.pid, a.query from pg_stat_activity a join tree t on t.pid = a.pid where not a.pid = any (t.path)) select pid, path::text, query from tree join (select application_name, pid as id from pg_stat_activity) s on s.id = tree.pid',
])('a statement of another session has no values: %s', async (sql) => {
  const session = await shop.open('shop')
  await session.query("select 'planted-secret'")
  const seen = await query(sql.includes('watched') ? sql : shows(sql))
  expect(seen).toMatch(/select \?/i)
  expect(seen).not.toMatch(/planted-secret/i)
  await session.end()
})

test('a statement that the server expects to be too expensive does not run', async () => {
  const sql = 'select count(*) from orders a join orders b on a.note = b.note, generate_series(1, 100000) n'
  expect(await query(sql)).toMatch(/the server expects .* over the limit of .*: filter by/)
})

test.each([
  "select payload['api_key'] from events",
  "select payload['api_' || 'key'] from events",
  "select payload -> ('api' || '_key') from events",
  "select payload ->> k from events, unnest(array['x']) k",
  'select key, value from events, jsonb_each_text(payload)',
  'select jsonb_each(payload) from events',
  "select jsonb_path_query(payload, '$.*') from events",
  "select jsonb_path_query(payload, ('$.api' || '_key')::jsonpath) from events",
  'select left(payload::text, 60) from events',
  'select substr(payload::text, 4) from events',
  'select array[payload] from events',
  'select array[payload::text] from events',
  'select array_agg(payload) from events',
  "select jsonb_build_object('a', payload)::text || 'x' from events",
])('a field that is named like a credential is not shown by %s', async (sql) => {
  const seen = await query(sql)
  expect(seen).toMatch(/hidden|write the name|name the fields|named like a credential|type jsonpath/)
  expect(seen).not.toContain('planted')
})

test('fields and elements by their names and places are shown', async () => {
  expect(await query("select payload ->> 'error' as e from events")).toContain('[["timeout"]]')
  expect(await query('select (array[7, 8])[g] as n from generate_series(1, 2) g')).toContain('[[7],[8]]')
})

test('a refused statement names the alternative, in words of statements', () => {
  const tool = planRead([source({ query: 'allowed' })], 'query_database', { sql: 'select 1' })
  if (!tool.ok) throw new Error(tool.reason)
  expect(tool.tool.judge({ sql: 'delete from orders' })).toMatchObject({
    ok: false,
    bounded: null,
    instead: 'Write one SELECT, SHOW or EXPLAIN without this part, or use ask_database.',
  })
})

test('EXPLAIN ANALYZE gets the form that runs nothing', () => {
  const tool = planRead([source({ query: 'allowed' })], 'query_database', { sql: 'select 1' })
  if (!tool.ok) throw new Error(tool.reason)
  for (const given of ['explain analyze select 1', 'EXPLAIN (ANALYZE, BUFFERS) select 1', 'select 1 for update'])
    expect(tool.tool.judge({ sql: given })).toMatchObject({
      ok: false,
      bounded: { sql: expect.stringMatching(/select 1$/) },
    })
})

test('a login that may write is asked no statement, and its probe says so', async () => {
  const writing = source({ query: 'allowed' }, shop.writeCredential)
  expect(await probeSource(writing, shop.states)).toMatch(
    /this login may write \(the login is a member of pg_signal_backend\)/,
  )
  expect(await query('select 1', writing)).toContain('use the grants of "nightshift sources rights postgresql"')
  expect(shop.states.warnings.get('shop-db')).toContain('this login may write')
})
