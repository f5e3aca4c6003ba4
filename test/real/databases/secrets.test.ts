import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type pg from 'pg'
import pino from 'pino'
import { putSource } from '../../../db/inventory/sources.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'
import { newSourceStates } from '../../../sources/ask.ts'
import { readContext } from '../../../sources/kinds.ts'
import { useApi } from '../../support/api.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { note } from '../facts.ts'
import { whyNot } from '../kinds.ts'
import { type Planted, plantSecrets } from './secrets.ts'
import { giveRights, type SiteServer, startSiteServer } from './site-server.ts'

/**
 * What people, models, rows and the log get to see of a server that is full of secrets, by the
 * API's own doors.
 */

const lacking = whyNot('databases')
const place = temporaryDirectory()
const logFile = join(place.path, 'log')
const api = useApi(() => ({
  sourcesDirectory: place.path,
  log: pino({ level: 'trace' }, pino.destination({ dest: logFile, sync: true })),
}))
const states = newSourceStates(() => undefined, place.path)
const plain = {
  scheme: null,
  headers: {},
  caFile: null,
  certFile: null,
  keyFile: null,
  options: { query: 'allowed' },
  timeoutSeconds: 60,
}
let server: SiteServer
let source: Awaited<ReturnType<typeof putSource>>
/** All that was said. */
const said: string[] = []

const say = async (what: Promise<unknown>): Promise<void> => void said.push(JSON.stringify(await what))

const ask = (question: string) =>
  say(api.post('/sources/read', { body: { tool: 'ask_database', arguments: { source: 'pg-1', question } } }))

/** The model's own statements that go for the values. */
const statements = [
  'select * from pg_stat_activity',
  'select application_name, query from pg_stat_activity',
  'select count(*), left(query, 60) from pg_stat_activity group by 2',
  "select regexp_replace(query, '[[:space:]]', '_', 'g'), reverse(query) from pg_stat_activity",
  'select substr(query, 9), split_part(query, chr(39), 2) from pg_stat_activity',
  "select 'by ' || application_name, reverse(application_name), upper(substr(application_name, 3)) from pg_stat_activity",
  'select query from pg_stat_statements',
  'select gid, substr(gid, 4) from pg_prepared_xacts',
  'select query from copied',
  'select substr(query, 9) from copied',
  "select application_name::int from pg_stat_activity where application_name <> ''",
  'select query::int from pg_stat_activity',
]

/** A card of each write about each session. */
async function lookAtCards(): Promise<void> {
  const rows = await server.run(
    `select pid, to_char(backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as began from pg_stat_activity where usename = 'shop'`,
  )
  for (const { pid, began } of rows)
    for (const write of ['terminate_session', 'cancel_query'])
      await say(
        api.get(`/databases/pg-1/${write}/preparation?${new URLSearchParams({ pid: `${pid}`, began: `${began}` })}`),
      )
}

/** Everything that Nightshift stored. */
async function readRows(): Promise<string> {
  const { rows } = await sql<{
    name: string
  }>`select quote_ident(schemaname) || '.' || quote_ident(tablename) as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`.execute(
    api.db,
  )
  const texts = await Promise.all(
    rows.map(({ name }) => sql<{ row: string }>`select t::text as row from ${sql.raw(name)} t`.execute(api.db)),
  )
  return texts.flatMap((each) => each.rows.map(({ row }) => row)).join('\n')
}

/**
 * Sessions that stand in a transaction after it, or wait in it; those of names alone only stand
 * there.
 */
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

/** Where it stands in a text. */
const around = (text: string, secret: string): string => {
  const at = text.indexOf(secret.slice(0, 8))
  return text.slice(Math.max(0, at - 200), at + 60)
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
    await server.run(
      'create table copied as select query, application_name from pg_stat_activity; grant select on copied to nightshift_read',
    )
    await loadSql()
    source = await putSource(
      api.db,
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
      for (const each of statements)
        await say(
          api.post('/sources/read', { body: { tool: 'query_database', arguments: { source: 'pg-1', sql: each } } }),
        )
      await server.run('insert into copied select query, application_name from pg_stat_activity')
      await say(api.get('/databases/pg-1'))
      await say(readContext('database', [source], {}, states))
      await lookAtCards()
      await holder.query('rollback')
      await Promise.all(clients.map((each) => each.end().catch(() => undefined)))
    }
    for (const question of ['statements', 'tables', 'databases']) await ask(question)
    for (const path of ['/sources/pg-1/test']) await say(api.post(path))
    for (const path of ['/databases/pg-1', '/resources', '/sources', '/health', '/audit']) await say(api.get(path))
    said.push(await readRows(), readFileSync(logFile, 'utf8'))
    // Nothing was left out: trees, transactions and cards are among what was said.
    for (const part of [
      'idle in transaction (aborted)',
      'waits for a lock',
      'Session',
      'End session',
      '[redacted:',
      '"msg":"request"',
      'source.read',
      'regexp_replace',
    ])
      expect(said.join('\n')).toContain(part)
    const [all, there] = [said.join('\n'), shown.join('\n')]
    // The server itself shows them.
    const seen = secrets.filter(({ secret }) => there.includes(secret.slice(0, 12)))
    expect(secrets.filter((each) => !seen.includes(each)).map(({ statement, gid }) => statement ?? gid)).toEqual([])
    const found = secrets.filter(({ secret }) => all.includes(secret.slice(0, 8)))
    expect(found.map(({ secret }) => around(all, secret))).toEqual([])
    note('planted secrets that the server shows', `${seen.length}, found in what Nightshift shows ${found.length}`)
  })
})
