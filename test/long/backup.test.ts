import { appendFileSync, chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { connect } from '../../db/connect.ts'
import { recordAudit } from '../../db/log/audit.ts'
import { migrateToLatest } from '../../migrations/migrate.ts'
import { backUp, readBackup } from '../../start/backup.ts'
import { restoreBackup } from '../../start/restore.ts'
import { openedIncident } from '../support/database.ts'
import { debianPostgres } from '../support/debian-postgres.ts'

let server: Awaited<ReturnType<typeof debianPostgres>>
let dir = ''
const url = (name: string) => server.url(name)
const ask = (name: string, text: string) => server.ask(name, text)

beforeAll(async () => {
  server = await debianPostgres()
  dir = server.dir
  await ask('postgres', 'create database nightshift')
  await migrateToLatest(url('nightshift'))
  const db = connect(url('nightshift'), { max: 2 })
  for (let n = 0; n < 5; n += 1) await openedIncident(db)
  await recordAudit(db, { who: 'admin', what: 'security.noted', subject: 'x', detail: 'a row of the audit' })
  await db.destroy()
}, 60_000)
afterAll(() => server?.stop())

const emptyDatabase = async (name: string) => void (await ask('postgres', `create database ${name}`))

test('a backup is restored whole into an empty database, as of its moment, and agrees with its logs', async () => {
  const { path, manifest } = await backUp(url('nightshift'), join(dir, 'backups'))
  expect(manifest).toMatchObject({ incidents: 5, audit: { rows: 1 } })
  expect(readdirSync(join(dir, 'backups'))).toEqual([expect.stringMatching(/^nightshift-\d{8}T\d{6}Z$/)])
  // What comes after the backup is not in it.
  const db = connect(url('nightshift'), { max: 1 })
  await openedIncident(db)
  await db.destroy()
  await emptyDatabase('restored')
  const { found, isHeadThere } = await restoreBackup(url('restored'), path)
  expect(found.differences).toEqual([])
  expect(isHeadThere).toBe(true)
  expect(found.checked).toMatchObject({ incidents: 5, alerts: 5 })
  expect((await ask('restored', 'select count(*)::int as count from incident')).rows).toEqual([{ count: 5 }])
  // The role of the services has there what it had, and no more.
  const services = connect(url('restored'), { max: 1 })
  await expect(sql`delete from incident_event`.execute(services)).rejects.toMatchObject({ code: '42501' })
  await services.destroy()
  await expect(restoreBackup(url('restored'), path)).rejects.toThrow('The database restored is not empty.')
}, 120_000)

test('an archive that is changed, cut, no backup, of another major version or newer is refused, and nothing is changed', async () => {
  const { path, manifest } = await backUp(url('nightshift'), join(dir, 'others'))
  await emptyDatabase('untouched')
  const said = join(path, 'manifest.json')
  const dump = join(path, 'database.dump')
  const refused = async (why: string) => {
    await expect(restoreBackup(url('untouched'), path)).rejects.toThrow(why)
    const { rows } = await ask(
      'untouched',
      "select count(*)::int as count from pg_class where relnamespace = 'public'::regnamespace",
    )
    expect(rows).toEqual([{ count: 0 }])
  }
  const write = (change: object) => writeFileSync(said, JSON.stringify({ ...manifest, ...change }))
  write({ nightshift: '7.0.0' })
  await refused('The backup is from Nightshift 7.0.0')
  write({ migrations: [...manifest.migrations, '9999-later'] })
  await refused('does not know 9999-later')
  write({ postgresql: 99 })
  await refused('The backup is from PostgreSQL 99')
  writeFileSync(said, '{"format": 1')
  await refused('is not valid JSON')
  writeFileSync(said, '{}')
  await refused('cannot read')
  write({})
  const whole = readFileSync(dump)
  appendFileSync(dump, 'x')
  await refused('differs from its manifest')
  writeFileSync(dump, whole.subarray(0, whole.length - 100))
  await refused('differs from its manifest')
  rmSync(said)
  await refused('is not a backup')
  writeFileSync(dump, whole)
  write({})
  expect((await readBackup(path)).manifest.incidents).toBe(6)
}, 120_000)

test('a database without Nightshift is not backed up', async () => {
  await emptyDatabase('strange')
  await expect(backUp(url('strange'), join(dir, 'none'))).rejects.toThrow('has no data of Nightshift')
}, 60_000)

test('the login of the services, which reads no sequence and makes no table, is refused with the remedy', async () => {
  await ask('postgres', "create role services login password 'secret' in role nightshift_app")
  await emptyDatabase('wanted')
  const asServices = (name: string) => url(name).replace('//nightshift:', '//services:')
  const { path } = await backUp(url('nightshift'), join(dir, 'owned'))
  const sentence =
    'The login services does not own this database: give DATABASE_URL the login that the migrations run as.'
  await expect(backUp(asServices('nightshift'), join(dir, 'refused'))).rejects.toThrow(sentence)
  await expect(restoreBackup(asServices('wanted'), path)).rejects.toThrow(sentence)
}, 60_000)

test('no argument of a program contains the password, wherever the address has it', async () => {
  const [programs, said, before] = [join(dir, 'programs'), join(dir, 'said'), process.env.PATH]
  mkdirSync(programs)
  const shown = join(programs, 'pg_dump')
  writeFileSync(shown, `#!/bin/sh\necho "$@" >>${said}\nPATH=\${PATH#*:} exec pg_dump "$@"\n`)
  chmodSync(shown, 0o755)
  const apart = url('nightshift').replace(':secret@', '@')
  process.env.PATH = `${programs}:${before}`
  try {
    await backUp(`${apart}?password=secret`, join(dir, 'apart'))
  } finally {
    process.env.PATH = before
  }
  expect(readFileSync(said, 'utf8')).toContain('--dbname postgresql://nightshift@127.0.0.1')
  expect(readFileSync(said, 'utf8')).not.toContain('secret')
}, 60_000)
