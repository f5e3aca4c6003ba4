import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import pg from 'pg'
import { type Api, createApi } from '../../api/app.ts'
import { createToken, ensureOperator } from '../../db/access/tokens.ts'
import { connect, connectionsGivenUp, type Db } from '../../db/connect.ts'
import { databaseTrouble } from '../../db/database-state.ts'
import { migrateToLatest } from '../../migrations/migrate.ts'
import { type Postgres, startPostgres } from '../../start/postgres.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { startForgetfulRelay } from '../support/forgetful-relay.ts'
import { freeze } from '../support/temporal-proxy.ts'

// A server of the test's own: it is frozen, filled and closed to writes.
let postgres: Postgres
let db: Db
let api: Api
let token: string
const closing = new AbortController()
const stops: (() => unknown)[] = []

beforeAll(async () => {
  const directory = temporaryDirectory()
  stops.push(() => directory.remove())
  postgres = await startPostgres({ dir: directory.path, durable: false, maxConnections: 30 })
  stops.push(() => postgres.stop())
  await migrateToLatest(postgres.url)
  open()
  token = await createToken(db, { name: 'a', role: 'admin', operatorId: await ensureOperator(db, 'a', 'admin') })
})
afterAll(async () => {
  closing.abort()
  await db.destroy()
  for (const stop of stops.reverse()) await stop()
})

function open(): void {
  db = connect(postgres.url, { max: 10 })
  api = createApi({ db, closing: closing.signal })
}

/** Its connections are made afresh: what a server says at their beginning, it says only then. */
async function reopen(): Promise<void> {
  await db.destroy()
  open()
}

type Operation = { method: string; path: string; body: unknown }

/** Every operation of the API, with the values of its own examples. */
async function operations(): Promise<Operation[]> {
  const document = (await (await api.app.request('/openapi.json')).json()) as {
    paths: Record<string, Record<string, { requestBody?: { content: Record<string, { example?: unknown }> } }>>
  }
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path: path.replace('{dialect}', 'generic').replace(/\{[^}]+\}/g, 'inc_01jd8zr7v4x9k2m5n8q1s3t6w0'),
      body: operation.requestBody?.content['application/json']?.example,
    })),
  )
}

const anAlert: Operation = {
  method: 'POST',
  path: '/api/v1/ingest/generic',
  body: { name: 'disk_pressure', severity: 'warning', title: 'full' },
}

type Said = { of: string; status: number; retryAfter: string | null }

const ask = (operation: Operation) => askOf(api, operation)

async function askOf({ app }: Api, { method, path, body }: Operation): Promise<Said> {
  const answer = await app.request(path, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'idempotency-key': `${method}${path}`,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  await answer.body?.cancel()
  return { of: `${method} ${path}`, status: answer.status, retryAfter: answer.headers.get('retry-after') }
}

const refused = (said: Said[]) => said.filter(({ status, retryAfter }) => status !== 503 || !retryAfter)

test('a frozen database is answered by 503 with Retry-After on every route, and requests work again when it resumes', async () => {
  const all = (await operations()).filter(({ path }) => path.startsWith('/api/v1'))
  expect(all.length).toBeGreaterThan(60)
  // Half of the connections exist, half would have to be made.
  await Promise.all(Array.from({ length: 5 }, () => sql`select pg_sleep(0.1)`.execute(db)))
  expect((await api.app.request('/readyz')).status).toBe(200)
  const thaw = freeze(postgres.process.pid)
  let answered: Said[] = []
  let ready: Response
  try {
    // Without limits of the client's own nothing of this ever settles.
    answered = await Promise.all(all.map(ask))
    ready = await api.app.request('/readyz')
  } finally {
    thaw()
  }
  expect(refused(answered)).toEqual([])
  // Another replica would have the same database: this one goes on answering, and says what is
  // away.
  expect(ready.status).toBe(200)
  expect(await ready.json()).toMatchObject({
    status: 'ok',
    checks: { database: { status: 'failed', required: false } },
  })
  expect(await ask({ method: 'GET', path: '/api/v1/incidents', body: undefined })).toMatchObject({ status: 200 })
})

test('a transaction in which the database froze is not committed by a later one', async () => {
  const own = connect(postgres.url, { max: 1 })
  const frozen = own.transaction().execute(async (trx) => {
    await sql`insert into digest (destination, sent_at) values ('half', now())`.execute(trx)
    const thaw = freeze(postgres.process.pid)
    try {
      await sql`select 1`.execute(trx)
    } finally {
      thaw()
    }
  })
  await expect(frozen).rejects.toThrow(/not queryable/)
  await own.transaction().execute((trx) => sql`select 1`.execute(trx))
  expect((await sql`select from digest where destination = 'half'`.execute(own)).rows).toEqual([])
  await own.destroy()
})

test('connections that were dropped silently are closed and counted, and every request is answered again', async () => {
  const relay = await startForgetfulRelay(Number(new URL(postgres.url).port))
  const url = new URL(postgres.url)
  url.port = String(relay.port)
  const own = connect(url.href, { max: 5 })
  const through = createApi({ db: own, closing: closing.signal })
  const another = { ...anAlert, body: { name: 'queue_depth', severity: 'warning', title: 'long' } }
  const list = { method: 'GET', path: '/api/v1/incidents', body: undefined }
  try {
    expect(await Promise.all(Array.from({ length: 5 }, () => askOf(through, another)))).toMatchObject(
      Array(5).fill({ status: 202 }),
    )
    relay.forget()
    const said = await Promise.all(Array.from({ length: 25 }, (_, n) => askOf(through, n % 2 ? list : another)))
    expect(refused(said).filter(({ status }) => status >= 300)).toEqual([])
    // Each of them is out of the pool: what is asked now is answered.
    const then = await Promise.all(Array.from({ length: 25 }, () => askOf(through, list)))
    expect(then.filter(({ status }) => status !== 200)).toEqual([])
    const { not_at_work: count } = connectionsGivenUp(own)
    expect(count).toBe(5)
    expect(await (await through.app.request('/metrics')).text()).toContain(
      'nightshift_database_connections_given_up_total{reason="not_at_work"} 5',
    )
  } finally {
    await own.destroy()
    await relay.stop()
  }
})

test('a slow statement of a working server is waited for', async () => {
  expect((await sql`select pg_sleep(5)`.execute(db)).rows).toHaveLength(1)
})

describe('a database that accepts no writes', () => {
  beforeAll(async () => {
    await withOwner('alter database nightshift set default_transaction_read_only = on')
    await reopen()
  })
  afterAll(async () => {
    await withOwner('set transaction read write; alter database nightshift set default_transaction_read_only = off')
    await reopen()
  })

  test('is answered by 503 wherever a row is to be stored, and by no 500', async () => {
    const all = await operations()
    const said = await Promise.all(all.map(ask))
    expect(said.filter(({ status }) => status === 500)).toEqual([])
    expect(await ask(anAlert)).toMatchObject({ status: 503, retryAfter: '5' })
  })

  test('is on Health with the statement that helps', async () => {
    const answer = await api.app.request('/api/v1/status', { headers: { authorization: `Bearer ${token}` } })
    const { parts } = (await answer.json()) as { parts: { name: string; status: string; detail: string }[] }
    expect(parts.find(({ name }) => name === 'database')).toMatchObject({
      status: 'failed',
      remedy: expect.stringContaining('ALTER DATABASE nightshift SET default_transaction_read_only = off'),
    })
  })
})

test('a database without a free connection is answered by 503 with Retry-After on every route', async () => {
  await reopen()
  const taken: pg.Client[] = []
  try {
    for (;;) {
      const client = new pg.Client({ connectionString: postgres.url })
      client.on('error', () => {})
      const isTaken = await client.connect().then(
        () => true,
        () => false,
      )
      if (!isTaken) break
      taken.push(client)
    }
    const all = (await operations()).filter(({ path }) => path.startsWith('/api/v1'))
    expect(refused(await Promise.all(all.map(ask)))).toEqual([])
  } finally {
    await Promise.all(taken.map((client) => client.end()))
  }
})

test.each([
  ['53100', 'a full disk'],
  ['58030', 'a disk that fails'],
])('an alert that meets %s, %s, is answered by 503', async (code) => {
  await withOwner(`create or replace function fail() returns trigger language plpgsql as
    $$ begin raise exception 'no' using errcode = '${code}'; end $$;
    create trigger fail before insert on alert for each row execute function fail()`)
  const said = await ask(anAlert)
  await withOwner('drop trigger fail on alert')
  expect(said).toMatchObject({ status: 503, retryAfter: '5' })
  expect(await databaseTrouble(db)).toMatchObject({
    what: expect.stringMatching(/^The database's disk is full or fails/),
  })
})

async function withOwner(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: postgres.url })
  await client.connect()
  await client.query(statement).finally(() => client.end())
}
