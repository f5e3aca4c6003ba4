import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type pg from 'pg'
import { putSource } from '../../../db/inventory/sources.ts'
import { prepareDatabaseWrite } from '../../../effects/databases/write.ts'
import { newSourceStates } from '../../../sources/ask.ts'
import {
  listResources,
  planRead,
  probeSource,
  readContext,
  readDatabaseState,
  readSource,
} from '../../../sources/kinds.ts'
import { useDatabase } from '../../support/database.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { note } from '../facts.ts'
import { whyNot } from '../kinds.ts'
import { type Planted, plantSecrets } from './secrets.ts'
import { giveRights, type SiteServer, startSiteServer } from './site-server.ts'

/** What people, models, rows and logs get to see of a server that is full of secrets. */

const lacking = whyNot('databases')
const place = temporaryDirectory()
const database = useDatabase()
const states = newSourceStates(() => undefined, place.path)
const plain = {
  scheme: null,
  headers: {},
  caFile: null,
  certFile: null,
  keyFile: null,
  options: {},
  timeoutSeconds: 60,
}
let server: SiteServer
let source: Awaited<ReturnType<typeof putSource>>
/** All that was said. */
const said: string[] = []

const say = async (what: Promise<unknown>): Promise<void> =>
  void said.push(
    JSON.stringify(await what.catch((error: Error) => [error.message, (error as { detail?: string }).detail])),
  )

async function ask(question: string): Promise<void> {
  const planned = planRead([source], 'ask_database', { question })
  if (!planned.ok) throw new Error(planned.reason)
  const read = await readSource(planned, states, { nowMs: Date.now(), incidentBeganMs: null })
  said.push(JSON.stringify([read, planned.tool.say(read.summary, planned.args)]))
}

/** A card of each write about each session. */
async function lookAtCards(): Promise<void> {
  const rows = await server.run(
    `select pid, to_char(backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as began from pg_stat_activity where usename = 'shop'`,
  )
  const deps = { db: database.db, locks: database.db, sources: { directory: place.path } }
  for (const row of rows) {
    const about = { pid: Number(row.pid), began: String(row.began) }
    for (const write of ['terminate_session', 'cancel_query'] as const)
      await say(prepareDatabaseWrite(deps, { name: 'pg-1', act: { write, ...about } }))
  }
}

/** Sessions that stand in a transaction after it, or wait in it; those of names alone only stand there. */
async function plant(each: Planted, at: number): Promise<pg.Client> {
  const client = await server.open(each.application ?? 'shop', { user: 'shop' })
  if (each.gid) {
    await client.query(`begin; insert into notes values ('x'); prepare transaction '${each.gid}'`)
    return client
  }
  await client.query('begin')
  const statement = each.statement ?? 'select 1'
  if (at % 2 === 0) await client.query(statement).catch(() => undefined)
  else {
    client.query(`lock table gate; ${statement}`).catch(() => undefined)
    const pid = (client as unknown as { processID: number }).processID
    // A statement that does not parse never waits.
    await eventually('it to wait', async () => {
      const [row] = await server.run('select state, wait_event_type from pg_stat_activity where pid = $1', [pid])
      return row?.wait_event_type === 'Lock' || row?.state === 'idle in transaction (aborted)'
    })
  }
  return client
}

const when = lacking ? describe.skip : describe

when(`a real PostgreSQL that is full of secrets${lacking ? ` (${lacking})` : ''}`, () => {
  beforeAll(async () => {
    const settings = [
      'max_connections=60',
      'max_prepared_transactions=20',
      'wal_level=logical',
      'shared_preload_libraries=pg_stat_statements',
    ]
    server = await startSiteServer(place.path, { settings })
    const { read, write } = await giveRights(server, place.path)
    await server.run('create table notes (body text)')
    await server.run('create table kept (body text primary key)')
    await server.run('create table gate ()')
    await server.run('grant all on notes, kept, gate to shop')
    await server.run('create extension pg_stat_statements')
    const url = `postgresql://127.0.0.1:${server.port}/postgres`
    source = await putSource(
      database.db,
      'pg-1',
      { kind: 'postgresql', url, ...plain, credential: read, writeCredential: write },
      'anna',
    )
  })
  afterAll(async () => {
    await server?.stop()
    place.remove()
  })

  test('shows none of 200 in questions, first turns, pages, cards and refusals', async () => {
    const secrets = plantSecrets()
    expect(secrets.length).toBe(200)
    const shown: string[] = []
    for (let from = 0; from < secrets.length; from += 20) {
      const holder = await server.open('holder', { user: 'shop' })
      await holder.query('begin; lock table gate')
      const clients = await Promise.all(secrets.slice(from, from + 20).map(plant))
      const rows = await server.run(
        `select query, application_name, (select string_agg(gid, ' ') from pg_prepared_xacts) as gids from pg_stat_activity`,
      )
      shown.push(JSON.stringify(rows))
      for (const question of ['blocking', 'connections', 'replication', 'transactions']) await ask(question)
      await say(readDatabaseState(source, states))
      await say(readContext('database', [source], {}, states))
      await lookAtCards()
      await holder.query('rollback')
      await Promise.all(clients.map((each) => each.end().catch(() => undefined)))
    }
    for (const question of ['statements', 'tables', 'databases']) await ask(question)
    await say(probeSource(source, states))
    await say(listResources(source, states))
    // Nothing was left out: trees, transactions and cards are among what was said.
    for (const part of ['idle in transaction (aborted)', 'waits for a lock', 'Session', 'End session', '[redacted:'])
      expect(said.join('\n')).toContain(part)
    const [all, there] = [said.join('\n'), shown.join('\n')]
    // The server itself shows them.
    const seen = secrets.filter(({ secret }) => there.includes(secret.slice(0, 12)))
    expect(secrets.filter((each) => !seen.includes(each)).map(({ statement, gid }) => statement ?? gid)).toEqual([])
    const found = secrets.filter(({ secret }) => all.includes(secret.slice(0, 8)))
    expect(found.map(({ statement, application, gid }) => statement ?? application ?? gid)).toEqual([])
    note('planted secrets that the server shows', `${seen.length}, found in what Nightshift shows ${found.length}`)
  })
})
