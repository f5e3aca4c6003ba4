import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { loadSql } from '../../../safety/sql/inspect.ts'
import { newSourceStates } from '../../../sources/ask.ts'
import { planRead, probeSource, readSource } from '../../../sources/kinds.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { type SiteDatabase, siteDatabase } from '../../support/site-database.ts'

const files = temporaryDirectory()
const states = newSourceStates(() => undefined, files.path)
let shop: SiteDatabase

beforeAll(async () => {
  await loadSql()
  shop = await siteDatabase(files.path)
  await shop.run(`create table users (id int, email text, password_hash text);
    insert into users values (1, 'a@example.com', 'planted-secret'); update orders set note = 'same';
    create function lower(orders) returns text language sql as 'select 1::text';
    create view acting as select public.lower(o) as n from orders o;
    grant select on all tables in schema public to public; analyze`)
})
afterAll(async () => {
  await shop?.drop()
  files.remove()
})

const source = (options: object, credential = shop.credential) =>
  ({
    name: 'shop-db',
    kind: 'postgresql',
    url: shop.url,
    credential,
    writeCredential: null,
    scheme: null,
    headers: {},
    caFile: null,
    certFile: null,
    keyFile: null,
    options,
    timeoutSeconds: 5,
    createdBy: 'anna',
    createdAt: '',
  }) as Parameters<typeof probeSource>[0]

async function query(sql: string, from = source({ query: 'allowed' })): Promise<string> {
  const planned = planRead([from], 'query_database', { sql })
  if (!planned.ok) return planned.reason
  return await readSource(planned, states, { nowMs: Date.now(), incidentBeganMs: null }).then(
    ({ summary }) => JSON.stringify(summary),
    (error: Error) => error.message,
  )
}

test('a source is asked no statement until an admin allows it, and the refusal says who may', async () => {
  expect(await query('select 1', source({}))).toBe(
    'shop-db answers ask_database alone; an admin may allow statements for it: nightshift sources add shop-db … --option query=allowed',
  )
  expect(await query('select count(*) from orders')).toBe('{"columns":["count"],"rows":[[50]]}')
  // Of two, the one that allows it is meant.
  const both = [{ ...source({}), name: 'other' }, source({ query: 'allowed' })]
  expect(planRead(both, 'query_database', { sql: 'select 1' })).toMatchObject({ ok: true, source: { name: 'shop-db' } })
})

test.each([
  ['delete from orders', 'DeleteStmt: only SELECT, SHOW and EXPLAIN are asked here'],
  ['select 1; select 2', 'more than one statement'],
  ['select lower(o) from orders o', 'is a function of this site'],
  ['select lower(note) from orders', 'write pg_catalog.name(…)'],
  ['select o.lower from orders o', 'is a function of this site'],
  ['select * from acting', 'acting calls lower(orders), which is code of this site'],
  ['select password_hash from users', 'column password_hash of users is called like a credential'],
  ['select row_to_json(u) from users u', 'name the others instead of a star or a row: id, email'],
  ['select pg_sleep(100)', 'function pg_sleep'],
  ['select count(*) from generate_series(1, 1000000000)', 'as generate_series(1, 1000)'],
])('%s is not asked', async (sql, why) => {
  expect(await query(sql)).toContain(why)
})

test('an answer that was cut is a part, which shows no absence', async () => {
  const planned = planRead([source({ query: 'allowed' })], 'query_database', {
    sql: 'select a.id from orders a join generate_series(1, 10) g on true',
  })
  if (!planned.ok) throw new Error(planned.reason)
  expect(await readSource(planned, states, { nowMs: Date.now(), incidentBeganMs: null })).toMatchObject({
    isCut: true,
    isPartial: true,
  })
})

test('rows are a hundred at most, columns that are called like credentials are hidden, and statements of others have no values', async () => {
  const many = await query('select a.id from orders a join orders b on true', source({ query: 'allowed' }))
  expect(many).toContain('compare a column of each with =')
  expect(await query('select a.id from orders a join generate_series(1, 10) g on true')).toContain('more than 100 rows')
  expect(await query('select * from users')).toBe(
    '{"columns":["id","email","password_hash"],"rows":[[1,"a@example.com","[hidden]"]]}',
  )
  expect(await query('select count(*) from users where password_hash is null')).toContain('[[0]]')
  const session = await shop.open('shop')
  await session.query("select 'planted-secret'")
  const seen = await query("select query from pg_stat_activity where application_name = 'shop'")
  expect(seen).toBe('{"columns":["query"],"rows":[["select ?"]]}')
  expect(await query("select split_part(query, '''', 2) from pg_stat_activity")).toContain('may show the values')
})

test('what the server expects to be too much does not run', async () => {
  const sql = 'select count(*) from orders a join orders b on a.note = b.note, generate_series(1, 100000) n'
  expect(await query(sql)).toMatch(/the server expects .* is the most: narrow it/)
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
  expect(await probeSource(writing, states)).toMatch(/this role may write \(it is a member of pg_signal_backend\)/)
  expect(await query('select 1', writing)).toContain('use the grants of "nightshift sources rights postgresql"')
  expect(states.warnings.get('shop-db')).toContain('this role may write')
})
