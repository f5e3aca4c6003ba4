import { spawn } from 'node:child_process'
import { chmodSync, chownSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { connect, type Db } from '../../db/connect.ts'
import { unprivilegedAccount } from '../../start/account.ts'
import { bringSchemaUp, checkOwnerLogin, checkServicesLogin } from '../../start/database-check.ts'
import { emptyDatabase, freshDatabase } from '../support/broker.ts'
import { eventually, freePort, temporaryDirectory } from '../support/directory.ts'

type Made = Awaited<ReturnType<typeof freshDatabase>>

let empty: Made
let fresh: Made
let admin: Db
const name = `setup_${process.pid}`

/** The same database as another login. */
function as(url: string, login: string): string {
  const changed = new URL(url)
  Object.assign(changed, { username: login, password: 'given' })
  return changed.href
}

beforeAll(async () => {
  ;[empty, fresh] = await Promise.all([emptyDatabase(), freshDatabase()])
  admin = connect(empty.url, { owner: true, max: 1 })
  // As docs/how-to/production.md has it, and a login that was given nothing.
  await sql
    .raw(`create role ${name}_owner login password 'given'; create role ${name}_other login password 'given';
    create role ${name}_services login password 'given' in role nightshift_app;
    grant nightshift_app to ${name}_owner`)
    .execute(admin)
  const database = new URL(empty.url).pathname.slice(1)
  await sql
    .raw(`alter database ${database} owner to ${name}_owner; grant all on schema public to ${name}_owner`)
    .execute(admin)
})
afterAll(async () => {
  await admin.destroy()
  await Promise.all([empty.drop(), fresh.drop()])
  const left = connect((await freshDatabase()).url, { owner: true, max: 1 })
  for (const login of ['owner', 'other', 'services'])
    await sql.raw(`drop role if exists ${name}_${login}`).execute(left)
  await left.destroy()
})

test('with two logins as on the page the schema is migrated by its owner, and then exists', async () => {
  const [services, owner] = [as(empty.url, `${name}_services`), as(empty.url, `${name}_owner`)]
  const before = await checkServicesLogin(services)
  expect(before).toMatchObject({ ok: true, missing: expect.any(Number), warning: null })
  expect(before.ok && before.missing).toBeGreaterThan(50)
  expect(await checkOwnerLogin(owner, services)).toMatchObject({ ok: true })
  expect((await bringSchemaUp(owner)).length).toBe(before.ok && before.missing)
  expect(await checkServicesLogin(services)).toMatchObject({
    ok: true,
    missing: 0,
    detail: expect.stringContaining('the schema is up to date'),
  })
  expect(await bringSchemaUp(owner)).toEqual([])
})

test('a login that owns the tables is accepted with a warning', async () => {
  expect(await checkServicesLogin(as(empty.url, `${name}_owner`))).toMatchObject({
    ok: true,
    warning: expect.stringContaining(`${name}_owner owns the database`),
  })
})

test('a database with tables of another program is refused, and tables of an extension are ignored', async () => {
  const other = await emptyDatabase()
  const owner = connect(other.url, { owner: true, max: 1 })
  try {
    await sql`create extension if not exists pg_trgm`.execute(owner)
    expect(await checkServicesLogin(other.url)).toMatchObject({ ok: true })
    await sql`create table orders (id int)`.execute(owner)
    expect(await checkServicesLogin(other.url)).toMatchObject({
      ok: false,
      what: expect.stringMatching(/^The database test_\w+ has tables of another program \(orders\)$/),
      remedy: expect.stringContaining('CREATE DATABASE nightshift OWNER'),
    })
  } finally {
    await owner.destroy()
    await other.drop()
  }
})

test('a login and a database that may not exist yet are marked as such', async () => {
  expect(await checkServicesLogin(as(fresh.url, 'postgres'))).toMatchObject({ ok: false, isAbsent: true })
  expect(await checkServicesLogin(fresh.url.replace(/[^/]*$/, 'nobody_made'))).toMatchObject({ isAbsent: true })
  expect(await checkServicesLogin(fresh.url.replace(/:\d+\//, ':1/'))).toMatchObject({ ok: false, isAbsent: false })
})

const wrongs: [what: string, url: () => string, said: RegExp, remedy: RegExp][] = [
  ['a wrong password', () => as(fresh.url, 'postgres'), /refuses the login/, /Correct the user or the password/],
  [
    'a login that was given nothing',
    () => as(fresh.url, `${name}_other`),
    /may not use the role nightshift_app/,
    new RegExp(`GRANT nightshift_app TO ${name}_other;`),
  ],
  [
    'a database that is not there',
    () => fresh.url.replace(/[^/]*$/, 'nobody_made'),
    /has no database nobody_made/,
    /CREATE DATABASE nobody_made OWNER/,
  ],
  [
    'a port where nothing listens',
    () => fresh.url.replace(/:\d+\//, ':1/'),
    /Nothing answers at 127\.0\.0\.1:1/,
    /Start PostgreSQL/,
  ],
  [
    'TLS that the server does not speak',
    () => `${fresh.url}?sslmode=require`,
    /asks for TLS, and the PostgreSQL server does not offer it/,
    /sslmode/,
  ],
  ['what is no URL', () => 'localhost/nightshift', /not a PostgreSQL URL/, /postgresql:\/\/login:password@host/],
]
test.each(wrongs)('%s is reported with its remedy, and without the password', async (_, url, said, remedy) => {
  const found = await checkServicesLogin(url())
  expect(found).toMatchObject({ ok: false, what: expect.stringMatching(said), remedy: expect.stringMatching(remedy) })
  expect(JSON.stringify(found)).not.toContain(new URL(fresh.url).password)
})

test('a login that does not own the database is refused with the owner, and both URLs have to name one database', async () => {
  const services = as(empty.url, `${name}_services`)
  expect(await checkOwnerLogin(as(empty.url, `${name}_other`), services)).toMatchObject({
    ok: false,
    what: expect.stringContaining(`is owned by ${name}_owner, and ${name}_other may not change its schema`),
    remedy: expect.stringContaining(`OWNER TO ${name}_other;`),
  })
  expect(await checkOwnerLogin(fresh.url, services)).toMatchObject({
    ok: false,
    remedy: 'Name the same database in both URLs.',
  })
})

test('a server that is too old is refused with its own version', async () => {
  const old = await emptyDatabase()
  const db = connect(old.url, { owner: true, max: 1 })
  try {
    // The server answers with this function where our statement asks for its version.
    await sql
      .raw(`create schema old; create function old.current_setting(text) returns text language sql as
      $$ select case when $1 = 'server_version_num' then '140011' when $1 = 'server_version' then '14.11' else pg_catalog.current_setting($1) end $$;
      alter database ${new URL(old.url).pathname.slice(1)} set search_path = old, pg_catalog, public`)
      .execute(db)
    expect(await checkServicesLogin(old.url)).toMatchObject({
      ok: false,
      what: 'The server runs PostgreSQL 14.11, and Nightshift needs 15 or later',
    })
  } finally {
    await db.destroy()
    await old.drop()
  }
})

test('a database that accepts no writes is refused', async () => {
  const readOnly = await emptyDatabase()
  const db = connect(readOnly.url, { owner: true, max: 1 })
  try {
    await sql
      .raw(`alter database ${new URL(readOnly.url).pathname.slice(1)} set default_transaction_read_only = on`)
      .execute(db)
    expect(await checkServicesLogin(readOnly.url)).toMatchObject({ ok: false, what: 'The database accepts no writes' })
  } finally {
    await db.destroy()
    await readOnly.drop()
  }
})

const pgbouncer = '/usr/sbin/pgbouncer'
const whereItIs = existsSync(pgbouncer) ? test : test.skip

whereItIs('a real PgBouncer by transaction is refused, and the same by session is taken', async () => {
  const place = temporaryDirectory()
  const account = process.getuid?.() === 0 ? unprivilegedAccount() : undefined
  const { username, password, port: serverPort } = new URL(fresh.url)
  const [users, ini] = [join(place.path, 'users'), join(place.path, 'ini')]
  const poolers: ReturnType<typeof spawn>[] = []
  const through = async (mode: string): Promise<string> => {
    const port = await freePort()
    writeFileSync(users, `"${username}" "${password}"\n`)
    writeFileSync(
      ini,
      `[databases]\n* = host=127.0.0.1 port=${serverPort} password=${password}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\nauth_type = plain\nauth_file = ${users}\npool_mode = ${mode}\n`,
    )
    chmodSync(place.path, 0o755)
    if (account) for (const path of [place.path, users, ini]) chownSync(path, account.uid, account.gid)
    poolers.push(spawn(pgbouncer, [ini], { stdio: 'ignore', ...account }))
    const url = fresh.url.replace(/:\d+\//, `:${port}/`)
    await eventually('PgBouncer to answer', async () => {
      const found = await checkServicesLogin(url)
      return found.ok || !/Nothing answers/.test(found.what)
    })
    return url
  }
  try {
    expect(await checkServicesLogin(await through('transaction'))).toMatchObject({
      ok: false,
      what: expect.stringContaining('gives each transaction another session'),
      remedy: expect.stringContaining('pool_mode = session'),
    })
    expect(await checkServicesLogin(await through('session'))).toMatchObject({ ok: true })
  } finally {
    for (const pooler of poolers) pooler.kill('SIGKILL')
    place.remove()
  }
})
