import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { newSourceStates } from '../../../sources/ask.ts'
import {
  listResources,
  planRead,
  probeSource,
  readContext,
  readDatabaseState,
  readSource,
} from '../../../sources/kinds.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { type SiteDatabase, siteDatabase } from '../../support/site-database.ts'

const files = temporaryDirectory()
const states = newSourceStates(() => undefined, files.path)
let shop: SiteDatabase

beforeAll(async () => {
  shop = await siteDatabase(files.path)
})
afterAll(async () => {
  await shop?.drop()
  files.remove()
})

const source = (more: object = {}) =>
  ({
    name: 'shop-db',
    kind: 'postgresql',
    url: shop.url,
    credential: shop.credential,
    writeCredential: null,
    scheme: null,
    headers: {},
    caFile: null,
    certFile: null,
    keyFile: null,
    options: {},
    timeoutSeconds: 5,
    createdBy: 'anna',
    createdAt: '',
    ...more,
  }) as Parameters<typeof probeSource>[0]

async function ask(question: string, more: object = {}) {
  const planned = planRead([source(more)], 'ask_database', { question })
  if (!planned.ok) throw new Error(planned.reason)
  const read = await readSource(planned, states, { nowMs: Date.now(), incidentBeganMs: null })
  return { ...read, said: planned.tool.say(read.summary, planned.args) }
}

test('a source answers with the version and the role of its server, and lists itself', async () => {
  expect(await probeSource(source(), states)).toMatch(
    /^the server answers: PostgreSQL \d+\.\d+, a primary, database test_\w+$/,
  )
  expect(await listResources(source(), states)).toMatchObject({
    database: { product: 'PostgreSQL', role: 'primary', replicatesFrom: null },
  })
})

test('each question is answered in 2 kB, by a login that may read no table', async () => {
  for (const question of [
    'blocking',
    'connections',
    'replication',
    'transactions',
    'statements',
    'tables',
    'databases',
  ]) {
    const { summary, said } = await ask(question)
    expect([question, Buffer.byteLength(JSON.stringify(summary)) <= 2_000, said.length > 10]).toEqual([
      question,
      true,
      true,
    ])
  }
  expect((await ask('statements')).summary.unavailable).toContain('CREATE EXTENSION pg_stat_statements')
})

test('sessions that wait for each other have no root, and are shown', async () => {
  await shop.run("alter system set deadlock_timeout = '30s'")
  await shop.run('select pg_reload_conf()')
  const [a, b] = [await shop.open('shop-a'), await shop.open('shop-b')]
  await a.query('begin; update orders set note = 1 where id = 1')
  await b.query('begin; update orders set note = 2 where id = 2')
  const waits = [a.query('update orders set note = 1 where id = 2'), b.query('update orders set note = 2 where id = 1')]
  waits.map((each) => each.catch(() => undefined))
  await eventually('both to wait', async () => {
    const [row] = await shop.run(
      "select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    )
    return row?.n === 2
  })
  const { summary } = await ask('blocking')
  expect(summary).toMatchObject({ sessionsWaiting: 2, roots: [{ blocks: 1 }] })
  expect(JSON.stringify(summary)).toMatch(/shop-a.*shop-b|shop-b.*shop-a/)
  await shop.run(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name in ('shop-a', 'shop-b') and datname = current_database()",
  )
  await Promise.allSettled(waits)
  await shop.run('alter system reset deadlock_timeout')
  await shop.run('select pg_reload_conf()')
})

test('the current work of a table is separated from its earlier work', async () => {
  const reader = await shop.open('shop-reader')
  let isOver = false
  const reads = (async () => {
    while (!isOver) await reader.query("select count(*) from orders where note = 'nobody'")
  })()
  const { summary } = await ask('tables')
  isOver = true
  await reads
  expect(summary).toMatchObject({
    readInWhole: [{ table: 'public.orders', rows: expect.any(Number), indexes: 'orders_pkey' }],
  })
})

test('problems are in the context within 1 kB, and the state of the page shows who blocks whom', async () => {
  const billing = await shop.open('billing')
  await billing.query("begin; update orders set note = 'planted-4111' where id = 7")
  const waiting = await shop.open('web-1')
  const update = waiting.query("update orders set note = 'planted-4111' where id = 7")
  await eventually('one to wait', async () => {
    const { blocking = [] } = (await readDatabaseState(source(), states)) ?? {}
    return blocking.some(({ root }) => root?.application === 'billing')
  })
  const [told] = await readContext('database', [source()], {}, states)
  const text = JSON.stringify(told)
  expect(text).toMatch(/\d+ sessions? waiting for locks below session \d+ \(began [^)]+\) of \w+@\w+, /)
  expect([Buffer.byteLength(text) <= 1_100, text.includes('4111')]).toEqual([true, false])
  // Other tests wait on the same server.
  const state = await readDatabaseState(source(), states)
  expect(state?.waiting).toBeGreaterThanOrEqual(1)
  expect(state?.blocking).toContainEqual(
    expect.objectContaining({ root: expect.objectContaining({ application: 'billing' }), blocks: 1 }),
  )
  await billing.query('rollback')
  await update
})

test.each<[string, object, string]>([
  ['another port', { url: 'postgresql://127.0.0.1:9/shop' }, 'cannot be reached'],
  ['no such database', {}, 'has no such database'],
  ['a server that does not offer TLS', { options: { tls: 'verified' } }, 'does not offer TLS'],
  ['an address of a cloud', { url: 'postgresql://169.254.169.254:5432/shop' }, 'may not connect'],
])('the error of %s is named', async (what, more, said) => {
  const url = what === 'no such database' ? { url: shop.url.replace(/[^/]*$/, 'nobody_has_it') } : {}
  await expect(
    probeSource(
      source({ ...more, ...url }),
      newSourceStates(() => undefined, files.path),
    ),
  ).rejects.toThrow(said)
})
