import { spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { createApi } from '../../../api/app.ts'
import { connect, type Db, isTransient } from '../../../db/connect.ts'
import { migrateToLatest } from '../../../migrations/migrate.ts'
import { unprivilegedAccount } from '../../../start/account.ts'
import { type Postgres, startPostgres } from '../../../start/postgres.ts'
import { eventually, freePort, temporaryDirectory } from '../../support/directory.ts'
import { findProgram, whyNot } from '../kinds.ts'

const lacking = whyNot('databases')
const place = temporaryDirectory()
const stops: (() => unknown)[] = []
let postgres: Postgres
afterAll(async () => {
  for (const stop of stops.reverse()) await stop()
  place.remove()
})

/**
 * PgBouncer before this server, as somebody sets it up who read that `options` has to be ignored,
 * or as Debian installs it.
 */
async function startPooler(mode: 'session' | 'transaction', ignored: string): Promise<string> {
  const account = process.getuid?.() === 0 ? unprivilegedAccount() : undefined
  const { username, password, port: serverPort } = new URL(postgres.url)
  const directory = join(place.path, `pooler-${stops.length}`)
  mkdirSync(directory)
  const port = await freePort()
  writeFileSync(join(directory, 'users'), `"${username}" "${password}"\n`)
  writeFileSync(
    join(directory, 'ini'),
    `[databases]
* = host=127.0.0.1 port=${serverPort} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${join(directory, 'users')}
pool_mode = ${mode}
ignore_startup_parameters = ${ignored}
`,
  )
  chmodSync(place.path, 0o755)
  if (account) for (const name of ['', 'users', 'ini']) chownSync(join(directory, name), account.uid, account.gid)
  const pooler = spawn(findProgram('pgbouncer')!, [join(directory, 'ini')], { stdio: 'ignore', ...account })
  stops.push(() => pooler.kill('SIGKILL'))
  const url = new URL(postgres.url)
  url.port = String(port)
  await eventually('PgBouncer to answer', async () => {
    const db = connect(url.href, { max: 1 })
    const answer = await sql`select 1`.execute(db).then(
      () => true,
      (error) => /pool_mode/.test(String(error)),
    )
    await db.destroy()
    return answer
  })
  return url.href
}

const open = (url: string): Db => {
  const db = connect(url, { max: 5 })
  stops.push(() => db.destroy())
  return db
}

const when = lacking ? describe.skip : describe

when(`the own database behind a real PgBouncer${lacking ? ` (${lacking})` : ''}`, () => {
  beforeAll(async () => {
    postgres = await startPostgres({ dir: join(place.path, 'own'), durable: false, maxConnections: 60 })
    stops.push(() => postgres.stop())
    await migrateToLatest(postgres.url)
    // What role and clock fall back to where a connection does not say its own.
    const owner = connect(postgres.url, { owner: true, max: 1 })
    await sql`alter database nightshift set timezone = 'Asia/Kolkata'`.execute(owner)
    await owner.destroy()
  })

  test.each([
    ['that refuses what it does not know', ''],
    ['that drops what opens a connection', 'options, extra_float_digits'],
  ])('by session, %s: role and clock are ours', async (_, ignored) => {
    const db = open(await startPooler('session', ignored))
    const { rows } = await sql`select current_user as who, current_setting('timezone') as zone`.execute(db)
    expect(rows).toEqual([{ who: 'nightshift_app', zone: 'UTC' }])
    await expect(sql`delete from audit`.execute(db)).rejects.toThrow(/permission denied/)
  })

  test('by transaction: it is refused in one sentence that names the setting, for a query and by readyz', async () => {
    const url = await startPooler('transaction', 'options, extra_float_digits')
    const refused = await sql`select 1`.execute(open(url)).then(() => null, Error)
    expect(String(refused)).toMatch(/pool_mode = session/)
    const error = await sql`select 1`.execute(open(url)).catch((each: unknown) => each)
    expect(isTransient(error)).toBe(true)
    const { app } = createApi({ db: open(url), closing: new AbortController().signal })
    const ready = await app.request('/readyz')
    expect([ready.status, await ready.text()]).toEqual([503, expect.stringMatching(/pool_mode = session/)])
  })

  test('by session: five slow statements at once are left alone', async () => {
    const db = open(await startPooler('session', 'extra_float_digits, application_name'))
    const slow = Array.from({ length: 5 }, () => sql`select pg_sleep(4)`.execute(db))
    expect((await Promise.all(slow)).map(({ rows }) => rows.length)).toEqual([1, 1, 1, 1, 1])
  })
})
