import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type pg from 'pg'
import { putSource } from '../../../db/inventory/sources.ts'
import { eventsOf } from '../../../db/log/events.ts'
import type { DatabaseWrite } from '../../../domain/database-write.ts'
import { approvedWrite } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { type SiteDatabase, siteDatabase } from '../../support/site-database.ts'

const files = temporaryDirectory()
const api = useApi(() => ({ sourcesDirectory: files.path }))
let shop: SiteDatabase

beforeAll(async () => {
  shop = await siteDatabase(files.path)
  const { url, credential, writeCredential } = shop
  const plain = { scheme: null, headers: {}, caFile: null, certFile: null, keyFile: null, options: {} }
  const source = { kind: 'postgresql', url, ...plain, timeoutSeconds: 5 }
  await putSource(api.db, 'shop-db', { ...source, credential, writeCredential }, 'anna')
  await putSource(api.db, 'read-alone', { ...source, credential, writeCredential: null }, 'anna')
  // A login with the rights of a look and no others.
  await putSource(api.db, 'too-little', { ...source, credential, writeCredential: credential }, 'anna')
})
afterAll(async () => {
  await shop?.drop()
  files.remove()
})

type About = { pid: number; began: string } | { slot: string } | Record<string, never>
type Preparation = {
  stateFingerprint: string
  asks: { risk: string }
  dryRun: { summary: string; details: { rehearsal: { told: string[] } } }
}

const queryOf = (about: About) =>
  new URLSearchParams(Object.entries(about).map(([name, value]) => [name, String(value)] as [string, string]))
const prepare = (write: DatabaseWrite, about: About, name = 'shop-db') =>
  api.get(`/databases/${name}/${write}/preparation?${queryOf(about)}`)
async function prepared(write: DatabaseWrite, about: About): Promise<Preparation> {
  const answer = await prepare(write, about)
  expect([answer.status, answer.body.detail]).toEqual([200, undefined])
  return answer.body as unknown as Preparation
}

/** The write as an approved run sends it. */
async function send(write: DatabaseWrite, about: About, ifMatch: string, name = 'shop-db') {
  const by = await approvedWrite(api, write, { database: name, ...about })
  const headers = { 'if-match': ifMatch }
  return await api.post(`/databases/${name}/${write}`, {
    ...by,
    body: { ...about, reason: 'it blocks the shop' },
    headers,
  })
}

const observe = async (write: DatabaseWrite, about: About) =>
  (await api.get(`/databases/shop-db/${write}/observation?${queryOf(about)}`)).body

/** A session that sits in a transaction. */
async function idleSession(
  application = 'billing',
): Promise<{ client: pg.Client; about: { pid: number; began: string } }> {
  const client = await shop.open(application)
  await client.query('begin')
  await client.query('select 1')
  return { client, about: await identify(client) }
}

async function identify(client: pg.Client): Promise<{ pid: number; began: string }> {
  const pid = (client as unknown as { processID: number }).processID
  const [row] = await shop.run(
    `select to_char(backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as began from pg_stat_activity where pid = $1`,
    [pid],
  )
  return { pid, began: String(row?.began) }
}

const isThere = async (pid: number) =>
  (await shop.run('select 1 from pg_stat_activity where pid = $1', [pid])).length > 0

test('a session that is idle in a transaction is terminated once, and code checks that it is gone', async () => {
  const { about } = await idleSession()
  const { stateFingerprint, asks, dryRun } = await prepared('terminate_session', about)
  expect([asks.risk, dryRun.summary]).toEqual([
    'medium',
    expect.stringMatching(/^End session \d+ of shop_\w+@\w+, billing/),
  ])
  expect(dryRun.details.rehearsal.told[0]).toMatch(/, since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/)
  expect(await observe('terminate_session', about)).toEqual({
    holds: false,
    observed: `session ${about.pid} is still there, idle in transaction`,
  })
  expect((await send('terminate_session', about, stateFingerprint)).body).toMatchObject({
    changed: [dryRun.summary.replace(/ on shop-db$/, '')],
  })
  expect(await isThere(about.pid)).toBe(false)
  expect(await observe('terminate_session', about)).toEqual({ holds: true, observed: `session ${about.pid} has ended` })
})

test('a session that ended, runs another statement, or has a reused number is not touched', async () => {
  const { client, about } = await idleSession()
  const { stateFingerprint } = await prepared('terminate_session', about)
  await client.query('commit')
  const changed = await send('terminate_session', about, stateFingerprint)
  expect([changed.status, changed.body.code, changed.body.detail]).toEqual([
    412,
    'STATE_CHANGED',
    expect.stringContaining('Nothing was done'),
  ])
  const other = { ...about, began: '2026-01-01T00:00:00.000000Z' }
  expect((await prepare('terminate_session', other)).body).toMatchObject({ code: 'NOTHING_TO_CHANGE' })
  expect((await send('terminate_session', other, stateFingerprint)).body).toMatchObject({ code: 'STATE_CHANGED' })
  expect(await isThere(about.pid)).toBe(true)
  await client.end()
  expect((await send('terminate_session', about, stateFingerprint)).body).toMatchObject({ code: 'STATE_CHANGED' })
})

test('sessions of a superuser, of Nightshift and of the server itself are never touched', async () => {
  const [own] = await shop.run(
    `select pid, to_char(backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as began from pg_stat_activity where pid = pg_backend_pid()`,
  )
  const [walwriter] = await shop.run(
    `select pid, to_char(backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as began from pg_stat_activity where backend_type = 'walwriter'`,
  )
  for (const each of [own, walwriter]) {
    const about = { pid: Number(each?.pid), began: String(each?.began) }
    expect((await prepare('terminate_session', about)).body).toMatchObject({ code: 'NOT_TOUCHED' })
    expect((await send('terminate_session', about, 'x')).status).toBe(409)
    expect(await isThere(about.pid)).toBe(true)
  }
})

test('a decision about one server is not applied to another server to which the source points now', async () => {
  const plain = {
    scheme: null,
    headers: {},
    caFile: null,
    certFile: null,
    keyFile: null,
    options: {},
    timeoutSeconds: 5,
  }
  const point = (url: string) => {
    const { credential, writeCredential } = shop
    const source = { kind: 'postgresql', url, ...plain, credential, writeCredential }
    return putSource(api.db, 'moves', source, 'anna', { known: [credential, writeCredential], isTrusted: true })
  }
  await point(shop.url)
  const { about } = await idleSession()
  const answer = await prepare('terminate_session', about, 'moves')
  const { stateFingerprint } = answer.body as unknown as Preparation
  const { hostname } = new URL(shop.url)
  // The same server by its other name: all that a session shows is the same.
  await point(shop.url.replace(hostname, hostname === 'localhost' ? '127.0.0.1' : 'localhost'))
  const moved = await send('terminate_session', about, stateFingerprint, 'moves')
  expect([moved.status, moved.body.code, await isThere(about.pid)]).toEqual([412, 'STATE_CHANGED', true])
})

test('a query is cancelled and its session stays, and a query that began later is not cancelled', async () => {
  const client = await shop.open('report')
  const about = await identify(client)
  const ask = async () => {
    const asked = client.query('select pg_sleep(60)').then(
      () => 'ended',
      (error) => error.message,
    )
    await eventually('the query to run', async () => {
      const [row] = await shop.run('select state from pg_stat_activity where pid = $1', [about.pid])
      return row?.state === 'active'
    })
    return { ended: asked }
  }
  const first = await ask()
  const { stateFingerprint } = await prepared('cancel_query', about)
  expect((await send('cancel_query', about, stateFingerprint)).status).toBe(200)
  expect(await first.ended).toContain('canceling statement due to user request')
  const second = await ask()
  expect((await send('cancel_query', about, stateFingerprint)).body).toMatchObject({ code: 'STATE_CHANGED' })
  expect((await send('cancel_query', about, (await prepared('cancel_query', about)).stateFingerprint)).status).toBe(200)
  await second.ended
  expect((await prepare('cancel_query', about)).body).toMatchObject({ code: 'NOTHING_TO_CHANGE' })
})

test('an unused replication slot is dropped by two people, and the login may do nothing else with slots', async () => {
  const slot = `left_behind_${process.pid}`
  await shop.run('select pg_create_physical_replication_slot($1, true)', [slot])
  const { stateFingerprint, asks, dryRun } = await prepared('drop_replication_slot', { slot })
  expect([asks.risk, dryRun.details.rehearsal.told[1]]).toEqual([
    'critical',
    expect.stringMatching(/^the slot keeps .* of WAL from /),
  ])
  expect((await send('drop_replication_slot', { slot }, stateFingerprint)).status).toBe(200)
  expect(await shop.run('select 1 from pg_replication_slots where slot_name = $1', [slot])).toEqual([])
  expect((await prepare('drop_replication_slot', { slot })).body).toMatchObject({ code: 'NOTHING_TO_CHANGE' })
})

test('a primary has no replay to start', async () => {
  expect((await prepare('start_replica', {})).body).toMatchObject({ code: 'NOTHING_TO_CHANGE' })
})

test('without the second credential or without a right, the refusal names the step of an administrator', async () => {
  const { about } = await idleSession()
  expect((await prepare('terminate_session', about, 'read-alone')).body).toMatchObject({
    code: 'NO_WRITE_CREDENTIAL',
    detail: expect.stringContaining('nightshift sources rights read-alone --write'),
  })
  const { stateFingerprint } = (await prepare('terminate_session', about, 'too-little')).body as unknown as Preparation
  const refused = await send('terminate_session', about, stateFingerprint, 'too-little')
  expect(refused.body.detail).toContain('GRANT pg_read_all_stats, pg_signal_backend TO nightshift_write')
  expect(await isThere(about.pid)).toBe(true)
})

test('a slot of a server without the function for the rights is not dropped, and the refusal prints the statement that makes the function', async () => {
  await shop.run('alter schema nightshift rename to put_away')
  await shop.run(`select pg_create_physical_replication_slot('left_behind', true)`)
  try {
    const { stateFingerprint } = await prepared('drop_replication_slot', { slot: 'left_behind' })
    const refused = await send('drop_replication_slot', { slot: 'left_behind' }, stateFingerprint)
    expect(refused.body.detail).toContain('GRANT EXECUTE ON FUNCTION nightshift.drop_inactive_slot(name, text)')
    expect(refused.body.detail).toContain('the function that "nightshift sources rights shop-db --write" prints')
  } finally {
    await shop.run('alter schema put_away rename to nightshift')
    await shop.run(`select pg_drop_replication_slot('left_behind')`)
  }
})

test('a person who terminates a session requests it through an incident that names them', async () => {
  const { about } = await idleSession()
  const { stateFingerprint } = await prepared('terminate_session', about)
  const answer = await api.post('/databases/shop-db/terminate_session', {
    as: api.tokens.operator,
    body: { ...about, reason: 'it blocks the shop' },
    headers: { 'if-match': stateFingerprint },
  })
  expect(answer.body).toMatchObject({ status: 'under_way', incidentId: expect.stringMatching(/^inc_/) })
  const [row] = await eventsOf(api.db, String(answer.body.incidentId))
  expect(row).toMatchObject({
    kind: 'change_requested',
    actor: 'user:operator',
    metadata: { tool: 'terminate_session' },
  })
  expect(await isThere(about.pid)).toBe(true)
})

test.each<[DatabaseWrite, string]>([
  ['terminate_session', ''],
  ['terminate_session', 'pid=0&began=2026-11-21T01:46:02Z'],
  ['drop_replication_slot', 'slot=No%20Name'],
  ['start_replica', 'pid=7'],
  ['cancel_query', 'slot=x'],
])('what %s does not support is refused by name: %s', async (write, query) => {
  const looked = await api.get(`/databases/shop-db/${write}/preparation?${query}`)
  expect(looked.status).toBe(write === 'start_replica' ? 409 : 422)
  const body = { ...Object.fromEntries(new URLSearchParams(query)), reason: 'it blocks the shop' }
  const answer = await api.post(`/databases/shop-db/${write}`, { body, headers: { 'if-match': 'x' } })
  expect([answer.status, answer.body.code]).toEqual([422, 'INVALID'])
})
