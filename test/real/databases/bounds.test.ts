import { chmodSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { manifest } from '../../../domain/mesh.ts'
import { findConfinement } from '../../../mesh/agent/confine.ts'
import { argvVerdict, asRead } from '../../../mesh/agent/guard.ts'
import { runProgram } from '../../../mesh/agent/run.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { aManifest, keys } from '../../support/running-agent.ts'
import { note } from '../facts.ts'
import { findProgram, whyNot } from '../kinds.ts'
import { type RealServer, startMariadb, startPostgresql } from './servers.ts'

const lacking = whyNot('databases')
const { limits } = manifest.parse(aManifest(keys()))
const confinement = await findConfinement()
const place = temporaryDirectory()
afterAll(async () => {
  await confinement.close()
  place.remove()
})

/**
 * As a device runs what it proves to be a read: judged by what a model would write, and led to this
 * server.
 */
async function read(argv: string[], server: RealServer, instead = argv.at(-1)!) {
  const verdict = argvVerdict(argv, '/')
  expect([argv, verdict.verdict, verdict.reason]).toEqual([argv, 'run', verdict.reason])
  const [program = '', ...words] = argv
  const led = [findProgram(program)!, ...server.at, ...words.slice(0, -1), instead]
  const marker = `req_${'b'.repeat(24)}`
  const { signal } = new AbortController()
  return await runProgram(led, { cwd: '/', ...asRead(verdict) }, { limits, confinement, marker, signal })
}

const when = lacking ? describe.skip : describe

when(`a real PostgreSQL${lacking ? ` (${lacking})` : ''}`, () => {
  let server: RealServer
  beforeAll(async () => {
    chmodSync(place.path, 0o755)
    const began = performance.now()
    server = await startPostgresql(place.path)
    note('PostgreSQL ready in', `${((performance.now() - began) / 1000).toFixed(1)} s`)
  })
  afterAll(async () => await server?.stop())

  const psql = (statement: string) => ['psql', '-X', '-A', '-t', '-c', statement]

  test('limits the session of an unasked read and makes it read-only', async () => {
    const bounds = ['default_transaction_read_only', 'statement_timeout', 'lock_timeout']
    const statement = `select name || '=' || setting from pg_settings where name in ('${bounds.join("', '")}') order by name`
    expect(await read(psql(statement), server)).toMatchObject({
      stdout: 'default_transaction_read_only=on\nlock_timeout=5000\nstatement_timeout=30000\n',
      stderr: '',
    })
  })

  test('accepts no write in it, and answers the questions of an investigation', async () => {
    const { stderr } = await read(psql('select 1'), server, 'create table x (n int)')
    expect(stderr).toContain('cannot execute CREATE TABLE in a read-only transaction')
    const asked = 'select state, count(*) from pg_stat_activity group by state order by 1'
    expect(await read(psql(asked), server)).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('active|1') })
  })
})

when('a real MariaDB', () => {
  let server: RealServer
  beforeAll(async () => {
    chmodSync(place.path, 0o755)
    const began = performance.now()
    server = await startMariadb(place.path)
    note('MariaDB ready in', `${((performance.now() - began) / 1000).toFixed(1)} s`)
  })
  afterAll(async () => await server?.stop())

  const mariadb = (statement: string) => ['mariadb', '-N', '-B', '-e', statement]

  test('limits the session of an unasked read and makes it read-only', async () => {
    const asked = 'select @@max_statement_time, @@lock_wait_timeout, @@tx_read_only'
    expect(await read(mariadb(asked), server)).toMatchObject({ stdout: '30.000000\t5\t1\n', stderr: '' })
  })

  test('accepts no write in it, and answers the questions of an investigation', async () => {
    const { stderr } = await read(mariadb('select 1'), server, 'create table test.x (n int)')
    expect(stderr).toMatch(/READ ONLY transaction/)
    expect(await read(mariadb('show full processlist'), server)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('show full processlist'),
    })
  })
})
