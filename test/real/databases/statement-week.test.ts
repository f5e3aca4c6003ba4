import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import pg from 'pg'
import pino from 'pino'
import { startDatabaseSamples } from '../../../api/sample-databases.ts'
import { putSource, sourceByName } from '../../../db/inventory/sources.ts'
import { listSnapshots } from '../../../db/inventory/statement-snapshots.ts'
import { listRights } from '../../../domain/database-rights.ts'
import { newSourceStates } from '../../../sources/ask.ts'
import { planRead, readSource } from '../../../sources/kinds.ts'
import { useDatabase } from '../../support/database.ts'
import { eventually, freePort, temporaryDirectory } from '../../support/directory.ts'
import { whyNot } from '../kinds.ts'
import { type RealServer, startPostgresql } from './servers.ts'

/**
 * Statements now against a week before: a real server that counts them, and the week by moving its
 * snapshots into the past.
 */

const lacking = whyNot('databases')
const place = temporaryDirectory()
const states = newSourceStates(() => undefined, place.path)
const database = useDatabase()
let server: RealServer
let admin: pg.Client

beforeAll(async () => {
  if (lacking) return
  chmodSync(place.path, 0o755)
  const port = await freePort()
  server = await startPostgresql(place.path, [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    'shared_preload_libraries=pg_stat_statements',
  ])
  admin = new pg.Client({ connectionString: `postgresql://site@127.0.0.1:${port}/postgres` })
  await admin.connect()
  await admin.query('create extension pg_stat_statements')
  await admin.query('create table orders (id int, note text)')
  await admin.query("insert into orders select n, 'note' from generate_series(1, 50000) n")
  await admin.query('create index orders_id on orders (id); analyze orders')
  for (const right of listRights('PostgreSQL', 'read')) await admin.query(right.replace('choose-one', 'pass'))
  const credential = join(place.path, 'login')
  writeFileSync(credential, 'nightshift_read:pass\n')
  chmodSync(credential, 0o600)
  const rest = { writeCredential: null, caFile: null, scheme: null, headers: {}, certFile: null, keyFile: null }
  const url = `postgresql://127.0.0.1:${port}/postgres`
  const input = { kind: 'postgresql', url, credential: `file:${credential}`, ...rest, options: { tls: 'off' } }
  await putSource(database.db, 'shop-db', { ...input, timeoutSeconds: 10 } as never, 'anna')
})
afterAll(async () => {
  await admin?.end()
  await server?.stop()
  place.remove()
})

/** One round of samples, and its snapshot so many days ago. */
async function snapshotOf(daysAgo: number): Promise<void> {
  const { db, owner } = database
  const had = (await listSnapshots(db, 'shop-db')).length
  const deps = { db, sources: states, log: pino({ level: 'silent' }), closing: new AbortController().signal }
  const stop = startDatabaseSamples(deps, 60_000)
  await eventually('a snapshot', async () => (await listSnapshots(db, 'shop-db')).length > had)
  stop()
  await sql`
    update statement_snapshot set taken_at = taken_at - make_interval(days => ${daysAgo}::int), day = day - ${daysAgo}::int
    where taken_at > now() - interval '1 hour'`.execute(owner)
}

async function called(times: number): Promise<void> {
  for (let n = 0; n < times; n += 1) await admin.query(`select note from orders where id = ${n} -- of Karl`)
}

async function asked(meanwhile: () => Promise<void>) {
  const source = (await sourceByName(database.db, 'shop-db'))!
  const planned = planRead([source], 'ask_database', { question: 'statements' })
  if (!planned.ok) throw new Error(planned.reason)
  const pastStatements = () => listSnapshots(database.db, 'shop-db')
  const reading = readSource(planned, states, { nowMs: Date.now(), incidentBeganMs: null, pastStatements })
  let isOver = false
  const over = reading.finally(() => {
    isOver = true
  })
  while (!isOver) await meanwhile()
  const { summary, whole } = await over
  expect(Buffer.byteLength(JSON.stringify(summary))).toBeLessThanOrEqual(2_000)
  expect(whole + JSON.stringify(summary)).not.toMatch(/Karl/)
  type Cost = { mean_ms: number; blocks_a_call: number; calls_an_hour?: number }
  const shown = summary.statements as { statement: string; now: Cost; before: Cost | string }[]
  const one = shown.find(({ statement }) => statement.startsWith('select note from orders'))
  return { summary, one, said: planned.tool.say(summary, planned.args) }
}

const each = lacking ? describe.skip : describe

each('a server that counts its statements', () => {
  test('the answer compares the most expensive statements with a week before, names the period, and compares nothing over a reset', async () => {
    expect((await asked(() => called(20))).summary.comparedWith).toMatch(/^nothing yet/)
    await snapshotOf(7)
    const first = await asked(() => called(20))
    expect(first.summary.comparedWith).toMatch(/^20\d\d-\d\d-\d\d, a week before: with all before it$/)

    await called(240)
    await snapshotOf(6)
    await admin.query('drop index orders_id')
    const lost = await asked(() => called(5))
    expect(lost.summary.comparedWith).toMatch(/^20\d\d-\d\d-\d\d, a week before$/)
    const { now, before } = lost.one as { now: Record<string, number>; before: Record<string, number> }
    // By the index a few blocks, without it the whole table.
    expect(before.blocks_a_call).toBeLessThan(10)
    expect(now.blocks_a_call).toBeGreaterThan(100)
    expect(now.mean_ms).toBeGreaterThan(before.mean_ms!)
    expect(before.calls_an_hour).toBeGreaterThanOrEqual(10)
    expect(lost.said).toMatch(/ ms each now, [\d.]+ ms before$/)

    await admin.query('select pg_stat_statements_reset()')
    const reset = await asked(() => called(5))
    expect(reset.summary.comparedWith).toMatch(/^nothing: the counters were reset at 20/)
    expect(reset.one?.now.mean_ms).toBeGreaterThanOrEqual(0)
  })

  test('stored snapshots have statements without their values, in 20 kB', async () => {
    const rows = await database.db.selectFrom('statementSnapshot').select('counts').execute()
    expect(rows.length).toBeGreaterThan(1)
    for (const { counts } of rows) {
      expect(Buffer.byteLength(counts)).toBeLessThanOrEqual(20_000)
      expect(counts).toContain('select note from orders where id = ?')
      expect(counts).not.toMatch(/Karl/)
    }
  })
})
