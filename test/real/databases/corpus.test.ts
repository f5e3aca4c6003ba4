import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { argvVerdict, asRead } from '../../../mesh/agent/guard.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { note } from '../facts.ts'
import { findProgram, whyNot } from '../kinds.ts'
import { type RealServer, startMariadb, startPostgresql } from './servers.ts'
import { listPassing, places } from './statements.ts'

/**
 * Each statement that passes is run, once as a role that may only read and in the session that a
 * device gives it, and once as the owner of all in a session that may write. What is stored before
 * and after is the same.
 */
const lacking = whyNot('databases')
const when = lacking ? describe.skip : describe
const place = temporaryDirectory()
afterAll(() => place.remove())
beforeAll(async () => {
  chmodSync(place.path, 0o755)
  await loadSql()
})

const tables = places.tables.split(' ')
const columns = places.columns.split(' ')

/** Runs statements one after the other in one session; what each failed with, by its number. */
function runAll(
  program: string,
  words: string[],
  statements: string[],
  echo: (at: number) => string,
  env: object = {},
) {
  const input = statements.map((text, at) => `${echo(at)}\n${text.replace(/;\s*$/, '')}\n;\n`).join('')
  const { stdout, stderr, status } = spawnSync(findProgram(program)!, words, {
    input,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    env: { PATH: process.env.PATH, ...env },
  })
  const ran = [...stdout.matchAll(/^@(\d+)$/gm)].length
  return { status, ran, errors: stderr.split('\n').filter((line) => /^ERROR/.test(line)), stderr }
}

/** What a device would set for such a read. */
const sessionOf = (argv: string[]): Record<string, string> => {
  const verdict = argvVerdict(argv, '/')
  expect([argv, verdict.verdict]).toEqual([argv, 'run'])
  return Object.fromEntries(Object.entries(asRead(verdict).env ?? {}).map(([name, value]) => [name, String(value)]))
}

when(`PostgreSQL${lacking ? ` (${lacking})` : ''}`, () => {
  let server: RealServer
  beforeAll(async () => {
    server = await startPostgresql(place.path)
    const make = [
      ...tables.map(
        (name) => `create table ${name} (${columns.map((column) => `${column} int default 1`).join(', ')})`,
      ),
      ...tables.map((name) => `insert into ${name} default values`),
      'create sequence s',
      'create schema app',
      "create function app.refresh() returns int language sql as 'insert into t default values; select 1'",
      'create view v as select * from t',
      'create role reader login',
      'grant pg_monitor to reader',
      'grant select on all tables in schema public to reader',
    ]
    execFileSync(findProgram('psql')!, [...server.at, '-q', '-v', 'ON_ERROR_STOP=1', '-f', '-'], {
      input: `${make.join(';\n')};`,
    })
  })
  afterAll(async () => await server?.stop())

  const dump = () =>
    execFileSync(findProgram('pg_dumpall')!, server.at.slice(0, 4), { encoding: 'utf8' }).replace(
      /^\\(?:un)?restrict .*$/gm,
      '',
    )

  test('is the same after each statement that passes', () => {
    const { passing, all } = listPassing('postgres', /\bpsql\b/)
    const before = dump()
    expect(before).toContain('COPY public.orders')
    const echo = (at: number) => `\\echo @${at}`
    const words = ['-X', '-A', '-t', '-P', 'pager=off']
    const reader = server.at.map((word) => (word === 'site' ? 'reader' : word))
    const session = sessionOf(['psql', '-X', '-c', 'select 1'])
    const least = runAll('psql', [...reader, ...words], passing, echo, session)
    const owner = runAll('psql', [...server.at, ...words], passing, echo)
    expect([least.ran, owner.ran]).toEqual([passing.length, passing.length])
    expect(dump()).toBe(before)
    // The dump tells a write: the owner's session may.
    runAll('psql', [...server.at, ...words], ["select nextval('s')"], echo)
    expect(dump()).not.toBe(before)
    expect(least.stderr).not.toMatch(/timeout|read-only transaction/)
    note('PostgreSQL statements that pass and ran', `${passing.length} of ${all}`)
    note('of them answered with rows as the least role', `${passing.length - least.errors.length}`)
  })
})

when('MariaDB', () => {
  let server: RealServer
  beforeAll(async () => {
    server = await startMariadb(place.path)
    const make = [
      'create database app',
      'use app',
      ...tables.map(
        (name) => `create table ${name} (${columns.map((column) => `${column} int default 1`).join(', ')})`,
      ),
      ...tables.map((name) => `insert into ${name} () values ()`),
      "create user reader@localhost identified by ''",
      'grant process, replication client on *.* to reader@localhost',
      'grant select, show view on app.* to reader@localhost',
    ]
    execFileSync(findProgram('mariadb')!, server.at, { input: `${make.join(';\n')};` })
  })
  afterAll(async () => await server?.stop())

  const dump = () =>
    execFileSync(
      findProgram('mariadb-dump')!,
      [
        ...server.at,
        '--skip-dump-date',
        '--routines',
        '--events',
        '--databases',
        'app',
        'mysql',
        '--ignore-table=mysql.innodb_table_stats',
        '--ignore-table=mysql.innodb_index_stats',
      ],
      { encoding: 'utf8', maxBuffer: 1 << 28 },
    )

  test('is the same after each statement that passes', () => {
    const { passing, all } = listPassing('mysql', /\b(?:mysql|mariadb)\b/)
    const before = dump()
    expect(before).toContain('INSERT INTO `orders`')
    const echo = (at: number) => `select '@${at}';`
    const words = ['-N', '-B', '--force', '-D', 'app']
    const reader = server.at.map((word) => (word === 'root' ? 'reader' : word))
    const session = sessionOf(['mariadb', '-N', '-B', '-e', 'select 1'])
    const least = runAll('mariadb', [...reader, ...words], passing, echo, session)
    const owner = runAll('mariadb', [...server.at, ...words], passing, echo)
    expect([least.ran, owner.ran]).toEqual([passing.length, passing.length])
    expect(dump()).toBe(before)
    runAll('mariadb', [...server.at, ...words], ['insert into t () values ()'], echo)
    expect(dump()).not.toBe(before)
    expect(least.stderr).not.toMatch(/READ ONLY|exceeded/)
    note('MariaDB statements that pass and ran', `${passing.length} of ${all}`)
    note('of them answered with rows as the least role', `${passing.length - least.errors.length}`)
  })
})
