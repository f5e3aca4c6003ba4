import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { openSession } from '../../../clients/databases/sessions.ts'
import { putSource } from '../../../db/inventory/sources.ts'
import type { DatabaseWrite } from '../../../domain/database-write.ts'
import type { Source } from '../../../domain/source.ts'
import { mysqlWriter } from '../../../effects/databases/mysql.ts'
import { newSourceStates } from '../../../sources/ask.ts'
import { readLogin } from '../../../sources/credentials.ts'
import { planRead, probeSource, readContext, readDatabaseState, readSource } from '../../../sources/kinds.ts'
import { approvedWrite } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { eventually, freePort, temporaryDirectory } from '../../support/directory.ts'
import { note } from '../facts.ts'
import { whyNot } from '../kinds.ts'
import { findMysql, type SiteMysql, startMariadb } from './site-mysql.ts'

const lacking = whyNot('databases')
const when = lacking ? describe.skip : describe
const files = temporaryDirectory()
const api = useApi(() => ({ sourcesDirectory: files.path }))
const states = newSourceStates(() => undefined, files.path)
afterAll(() => files.remove())

const plain = { scheme: null, headers: {}, caFile: null, certFile: null, keyFile: null, options: {}, timeoutSeconds: 5 }
const put = (name: string, { url, credential, writeCredential }: SiteMysql) =>
  putSource(api.db, name, { kind: 'mysql', url, ...plain, credential, writeCredential }, 'anna')
const sourceOf = (name: string, { url, credential, writeCredential }: SiteMysql): Source => ({
  name,
  kind: 'mysql',
  url,
  ...plain,
  credential,
  writeCredential,
  createdBy: 'anna',
  createdAt: '2026-11-21T01:46:02.000Z',
})

async function ask(source: Source, question: string) {
  const planned = planRead([source], 'ask_database', { question })
  if (!planned.ok) throw new Error(planned.reason)
  const reading = await readSource(planned, states, { nowMs: Date.now(), incidentBeganMs: null })
  return { ...reading, said: planned.tool.say(reading.summary, { question }) }
}

type About = { pid: number; began: string } | Record<string, never>
const queryOf = (about: About) =>
  new URLSearchParams(Object.entries(about).map(([n, v]): [string, string] => [n, `${v}`]))
const prepare = (name: string, write: DatabaseWrite, about: About) =>
  api.get(`/databases/${name}/${write}/preparation${Object.keys(about).length > 0 ? `?${queryOf(about)}` : ''}`)
const fingerprint = async (name: string, write: DatabaseWrite, about: About): Promise<string> => {
  const answer = await prepare(name, write, about)
  expect([answer.status, answer.body.detail]).toEqual([200, undefined])
  return String(answer.body.stateFingerprint)
}
async function send(name: string, write: DatabaseWrite, about: About, ifMatch: string) {
  const by = await approvedWrite(api, write, { database: name, ...about })
  return await api.post(`/databases/${name}/${write}`, {
    ...by,
    body: { ...about, reason: 'it blocks the shop' },
    headers: { 'if-match': ifMatch },
  })
}

const products: [product: string, start: () => Promise<SiteMysql>][] = [
  ['MariaDB', () => startMariadb(files.path, 1)],
  ...(process.env.MYSQL_SERVER
    ? [['MySQL', () => findMysql(files.path, process.env.MYSQL_SERVER as string)] as [string, () => Promise<SiteMysql>]]
    : []),
]

when.each(products)(`a real %s as a source${lacking ? ` (${lacking})` : ''}`, (product, start) => {
  let site: SiteMysql
  const name = `shop-${product.toLowerCase()}`
  const source = () => sourceOf(name, site)
  beforeAll(async () => {
    site = await start()
    await put(name, site)
  })
  afterAll(async () => await site?.stop())

  const secret = 'planted-4111'

  /**
   * How many wait. InnoDB renews its lists after 0.1 s in which nobody looked: who looks more often
   * sees the same for ever.
   */
  const waitingNow = async () => {
    await sleep(150)
    return (await readDatabaseState(source(), states))?.waiting
  }

  /** One session that others wait for, and when the server says that it began. */
  async function block(others: number) {
    const blocker = await site.open()
    await blocker.connection.query('begin')
    await blocker.connection.query(`update orders set note = '${secret}' where id = 1`)
    const waiting = await Promise.all(Array.from({ length: others }, () => site.open()))
    const updates = waiting.map(({ connection }) =>
      connection.query(`update orders set note = '${secret}' where id = 1`).catch(() => undefined),
    )
    await eventually('all to wait', async () => (await waitingNow()) === others)
    const [first] = (await readDatabaseState(source(), states))?.blocking ?? []
    return { ...blocker, updates, about: { pid: blocker.pid, began: String(first?.root?.began) } }
  }

  test('answers the probe, and each of the seven questions within 2 kB without a value of a statement', async () => {
    const { connection, updates } = await block(2)
    note(`${product} answers`, await probeSource(source(), states))
    for (const question of [
      'blocking',
      'connections',
      'replication',
      'transactions',
      'statements',
      'tables',
      'databases',
    ]) {
      const { summary, whole, said } = await ask(source(), question)
      expect([question, Buffer.byteLength(JSON.stringify(summary)) <= 2_000, said.length > 10]).toEqual([
        question,
        true,
        true,
      ])
      expect(`${JSON.stringify(summary)}${whole}${said}`).not.toContain(secret)
    }
    await connection.query('rollback')
    await Promise.all(updates)
  })

  test('shows which session blocks which in the context within 1 kB, and on the page', async () => {
    const { connection, pid, updates } = await block(2)
    expect((await ask(source(), 'blocking')).summary).toMatchObject({ sessionsWaiting: 2, roots: [{ pid, blocks: 2 }] })
    const [told] = await readContext('database', [source()], {}, states)
    const text = JSON.stringify(told)
    expect(text).toContain(`2 sessions waiting for locks below session ${pid}`)
    expect([Buffer.byteLength(text) <= 1_100, text.includes(secret)]).toEqual([true, false])
    expect(await readDatabaseState(source(), states)).toMatchObject({
      waiting: 2,
      blocking: [{ root: { pid }, blocks: 2 }],
    })
    await connection.query('rollback')
    await Promise.all(updates)
  })

  test('shows a session that waits for the definition of a table, with the holder if the server lists it', async () => {
    const reader = await site.open()
    await reader.connection.query('begin')
    await reader.connection.query('select * from orders limit 1')
    const migration = await site.open()
    const altered = migration.connection.query('alter table orders comment = "x"').catch(() => undefined)
    await eventually('the migration to wait', async () => (await waitingNow()) === 1)
    const { summary } = await ask(source(), 'blocking')
    if (product === 'MySQL') expect(summary).toMatchObject({ roots: [{ pid: reader.pid, blocks: 1 }] })
    else expect(summary).toMatchObject({ roots: [], holderNotListed: [expect.stringContaining('alter table orders')] })
    await reader.connection.query('rollback')
    await altered
  })

  test('terminates a blocking session once, and does not touch one that did something else since', async () => {
    const { connection, pid, about, updates } = await block(1)
    const stale = await fingerprint(name, 'terminate_session', about)
    await connection.query('commit')
    await Promise.all(updates)
    // What InnoDB lists of transactions is read from a copy that may be old: the next one would
    // compare equal there.
    await connection.query('begin')
    await connection.query(`update orders set note = '${secret}' where id = 2`)
    expect((await send(name, 'terminate_session', about, stale)).body).toMatchObject({ code: 'STATE_CHANGED' })
    expect((await connection.query('select 1'))[0]).toHaveLength(1)
    const fresh = await fingerprint(name, 'terminate_session', about)
    expect((await send(name, 'terminate_session', about, fresh)).status).toBe(200)
    await eventually('the session to end', async () => {
      const { body } = await api.get(`/databases/${name}/terminate_session/observation?${queryOf(about)}`)
      return body.holds === true && body.observed === `session ${pid} has ended`
    })
    expect((await send(name, 'terminate_session', about, fresh)).body).toMatchObject({ code: 'STATE_CHANGED' })
  })

  test('cancels a query and keeps its session, and does not cancel a later query', async () => {
    const { connection, pid } = await site.open()
    const { about: beganOf, connection: other, updates } = await block(1)
    await other.query('rollback')
    await Promise.all(updates)
    const about = { pid, began: beganOf.began }
    // Two rows, so that a cancelled sleep is an error at each product.
    const run = async () => {
      const asked = connection.query('select sleep(30) from orders limit 2').then(
        () => 'ended',
        (error: Error) => error.message,
      )
      await eventually('the query to run', async () => (await prepare(name, 'cancel_query', about)).status === 200)
      return { asked }
    }
    const first = await run()
    const old = await fingerprint(name, 'cancel_query', about)
    expect((await send(name, 'cancel_query', about, old)).status).toBe(200)
    await first.asked
    const second = await run()
    expect((await send(name, 'cancel_query', about, old)).body).toMatchObject({ code: 'STATE_CHANGED' })
    expect((await send(name, 'cancel_query', about, await fingerprint(name, 'cancel_query', about))).status).toBe(200)
    await second.asked
    expect((await connection.query('select 1'))[0]).toHaveLength(1)
    expect((await prepare(name, 'cancel_query', about)).body).toMatchObject({ code: 'NOTHING_TO_CHANGE' })
  })

  test("never touches a superuser, Nightshift's own session, a slot and a primary", async () => {
    const { about, connection, updates } = await block(1)
    const [root] = await site.run('select connection_id() as pid')
    const superuser = { pid: Number(root?.pid), began: about.began }
    expect((await prepare(name, 'terminate_session', superuser)).body).toMatchObject({ code: 'NOT_TOUCHED' })
    const [reader] = await site.run(
      `select id as pid from information_schema.processlist where user = '${site.credential.replace(/^.*\//, '')}'`,
    )
    const ours = { pid: Number(reader?.pid), began: about.began }
    expect((await prepare(name, 'terminate_session', ours)).body).toMatchObject({
      code: 'NOT_TOUCHED',
      detail: expect.stringContaining('the session belongs to Nightshift'),
    })
    expect((await prepare(name, 'start_replica', {})).body).toMatchObject({ code: 'NOTHING_TO_CHANGE' })
    expect((await api.get(`/databases/${name}/drop_replication_slot/preparation?slot=x`)).body).toMatchObject({
      code: 'NOTHING_TO_CHANGE',
    })
    await connection.query('rollback')
    await Promise.all(updates)
  })
})

when(`a replica of MariaDB${lacking ? ` (${lacking})` : ''}`, () => {
  let primary: SiteMysql
  let replica: SiteMysql
  beforeAll(async () => {
    primary = await startMariadb(files.path, 11)
    replica = await startMariadb(files.path, 12)
    await primary.run(`create user replicator identified by 'repl-12345'`)
    await primary.run('grant replication slave on *.* to replicator')
    await replica.run(
      `change master to master_host = '127.0.0.1', master_port = ${primary.port}, master_user = 'replicator', master_password = 'repl-12345', master_use_gtid = slave_pos, master_connect_retry = 1`,
    )
    await replica.run('start slave')
    await put('replica', replica)
    await isRunning()
  })
  afterEach(async () => {
    await replica.run('delete from shop.orders where id = 4111')
    await replica.run('start slave')
    await isRunning()
  })
  afterAll(async () => {
    await replica?.stop()
    await primary?.stop()
  })

  const channel = async () =>
    ((await ask(sourceOf('replica', replica), 'replication')).summary.channels as Record<string, unknown>[])[0]
  const isRunning = () =>
    eventually('the replica to run', async () => {
      const { receiver, applier } = (await channel()) ?? {}
      return receiver === 'Yes' && applier === 'Yes'
    })

  test('starts a stopped replica and sees it run, and does not touch a running one', async () => {
    expect((await prepare('replica', 'start_replica', {})).body).toMatchObject({ code: 'NOTHING_TO_CHANGE' })
    await replica.run('stop slave')
    expect(await readDatabaseState(sourceOf('replica', replica), states)).toMatchObject({
      role: 'replica',
      replication: [{ isIll: true, text: expect.stringContaining('its applier is stopped, without an error') }],
    })
    const decided = await fingerprint('replica', 'start_replica', {})
    expect((await send('replica', 'start_replica', {}, decided)).status).toBe(200)
    await isRunning()
    expect((await api.get('/databases/replica/start_replica/observation')).body).toMatchObject({ holds: true })
  })

  test('does not start a replica that was restarted since or is another server, and its proof is unknown', async () => {
    await replica.run('stop slave')
    const session = await openSession(
      readLogin({ ...sourceOf('replica', replica), credential: replica.writeCredential }, files.path),
    )
    const found = await mysqlWriter.find(session, { write: 'start_replica' }, null)
    const before = { ...found, compared: { ...found.compared, began: 'after 2020-01-01T00:00:00Z' } }
    expect(await mysqlWriter.send(session, { write: 'start_replica' }, before)).toBe(false)
    expect(await mysqlWriter.observe(session, { write: 'start_replica' }, before.compared)).toMatchObject({
      holds: null,
      observed: expect.stringContaining('the server of the write started at 2020-01-01 00:00:00 UTC'),
    })
    const gone = { write: 'terminate_session' as const, pid: 4111, began: before.compared.began }
    expect(await mysqlWriter.observe(session, gone, null)).toMatchObject({ holds: null })
    session.end()
  })

  test('refuses a replica that met its own row with the error and its table, and no value of the row', async () => {
    await replica.run(`insert into shop.orders values (4111, 'by hand')`)
    await primary.run('set sql_log_bin = 1')
    await primary.run(`insert into shop.orders values (4111, 'from the primary')`)
    await eventually('the applier to stop', async () => (await channel())?.applier === 'No')
    expect(await channel()).toMatchObject({
      applierError: 'error 1062 (a row with that key exists already) on table shop.orders',
    })
    const { body } = await prepare('replica', 'start_replica', {})
    expect(body).toMatchObject({ code: 'NOT_CURED_BY_START' })
    const state = JSON.stringify([body, await readDatabaseState(sourceOf('replica', replica), states)])
    expect(state).not.toMatch(/4111|by hand|from the primary/)
  })
})

const galera = '/usr/lib/galera/libgalera_smm.so'
const whenGalera = lacking || !existsSync(galera) ? describe.skip : describe

whenGalera('a real server of Galera', () => {
  let node: SiteMysql
  beforeAll(async () => {
    const base = await freePort()
    node = await startMariadb(files.path, 21, [
      '--wsrep-on=ON',
      `--wsrep-provider=${galera}`,
      '--wsrep-cluster-address=gcomm://',
      '--wsrep-node-address=127.0.0.1',
      '--innodb-autoinc-lock-mode=2',
      `--wsrep-provider-options=base_host=127.0.0.1;base_port=${base};gmcast.listen_addr=tcp://127.0.0.1:${base}`,
    ])
    await put('node', node)
  })
  afterAll(async () => await node?.stop())

  test('is named as the owner on the card of a write', async () => {
    const { connection, pid } = await node.open()
    await connection.query('begin')
    await connection.query(`update orders set note = 'x' where id = 1`)
    const [{ began } = {}] = await node.run(
      `select concat('after ', date_format(timestampadd(second, -variable_value, utc_timestamp()), '%Y-%m-%dT%H:%i:%sZ')) as began from information_schema.global_status where variable_name = 'Uptime'`,
    )
    const { body } = await prepare('node', 'terminate_session', { pid, began: String(began) })
    expect(JSON.stringify(body)).toContain('Galera manages this server (a cluster of 1, Primary)')
  })
})
