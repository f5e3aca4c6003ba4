import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { manifest } from '../../../domain/mesh.ts'
import { findConfinement } from '../../../mesh/agent/confine.ts'
import { argvVerdict, asRead } from '../../../mesh/agent/guard.ts'
import { runProgram } from '../../../mesh/agent/run.ts'
import { eventually, patienceMs, temporaryDirectory } from '../../support/directory.ts'
import { aManifest, keys } from '../../support/running-agent.ts'

/** What ends an unasked read of a database, where its own text says nothing of an end. */

const { limits } = manifest.parse(aManifest(keys(), { limits: { memory_mib: 256 } }))
const confinement = await findConfinement()
afterAll(() => confinement.close())
let place: ReturnType<typeof temporaryDirectory>
beforeAll(() => {
  place = temporaryDirectory()
  chmodSync(place.path, 0o755)
})
afterAll(() => place.remove())

const runner = (signal: AbortSignal) => ({ limits, confinement, marker: `req_${'b'.repeat(24)}`, signal })

/** As the device runs what it proves to be a read; anything else would not be one. */
function read(argv: string[], signal: AbortSignal = AbortSignal.timeout(patienceMs), instead = argv) {
  const verdict = argvVerdict(argv, '/')
  expect([argv, verdict.verdict, verdict.reason]).toEqual([argv, 'run', verdict.reason])
  return runProgram(instead, { cwd: '/', ...asRead(verdict) }, runner(signal))
}

test('a client of MySQL finds settings in its sandbox that limit its session on the server and make it read-only', async () => {
  const shown = ['/bin/sh', '-c', 'cat "$MYSQL_HOME/my.cnf"']
  const { stdout } = await read(['mysql', '-e', 'select 1'], undefined, shown)
  for (const bound of ['lock_wait_timeout=5', 'max_execution_time=30000', 'max_statement_time=30'])
    expect(stdout).toContain(bound)
  expect(stdout).toMatch(/transaction_read_only=1.*tx_read_only=1/)
})

test.each([
  ['settings of its own', ['mysql', '--defaults-file=/tmp/x', '-e', 'select 1']],
  ['no settings', ['mysql', '--no-defaults', '-e', 'select 1']],
  ['another beginning', ['mysql', '--init-command=set max_statement_time=0', '-e', 'select 1']],
  ['another bound', ['mysql', '-e', 'set max_statement_time=0; select 1']],
  ['another bound for one statement', ['mysql', '-e', 'set statement max_statement_time=0 for select 1']],
  ['another bound in a hint', ['mysql', '-e', 'select /*+ max_execution_time(0) */ 1']],
  ['another home of settings', ['env', 'MYSQL_HOME=/tmp', 'mysql', '-e', 'select 1']],
  ['none of our environment', ['env', '-i', 'mysql', '-e', 'select 1']],
  ['a container, whose files are its own', ['docker', 'exec', 'db', 'mysql', '-e', 'select 1']],
])('a client of MySQL with %s asks', (_, argv) => {
  expect([argv, argvVerdict(argv, '/').verdict]).toEqual([argv, 'ask'])
})

;(existsSync('/usr/sbin/mariadbd') && process.getuid?.() === 0 ? describe : describe.skip)('a real MariaDB', () => {
  let server: ChildProcess
  const socket = () => join(place.path, 'sock')
  beforeAll(async () => {
    const data = join(place.path, 'data')
    const as = ['--no-defaults', `--datadir=${data}`, '--user=root']
    execFileSync('mariadb-install-db', [...as, '--auth-root-authentication-method=normal'], { stdio: 'ignore' })
    server = spawn('/usr/sbin/mariadbd', [...as, `--socket=${socket()}`, '--skip-networking'], { stdio: 'ignore' })
    await eventually('the server', () => existsSync(socket()))
  })
  afterAll(async () => {
    const ended = new Promise((resolve) => server.once('exit', resolve))
    server.kill('SIGKILL')
    await ended
  })

  test('ends a statement itself and accepts no write, because the session of an unasked read says so', async () => {
    const asked = 'select @@max_statement_time, @@lock_wait_timeout, @@tx_read_only'
    const said = await read(['mariadb', '-N', '-B', '-e', asked], undefined, [
      'mariadb',
      `--socket=${socket()}`,
      '-u',
      'root',
      '-N',
      '-B',
      '-e',
      asked,
    ])
    expect(said).toMatchObject({ stdout: '30.000000\t5\t1\n', stderr: '' })
    const write = ['mariadb', `--socket=${socket()}`, '-u', 'root', '-e', 'create table test.x (n int)']
    const { stderr } = await read(['mariadb', '-e', 'select 1'], undefined, write)
    expect(stderr).toMatch(/READ ONLY transaction/)
  })
})

;(existsSync('/usr/bin/sqlite3') ? describe : describe.skip)('sqlite3', () => {
  const file = () => join(place.path, 'app.db')
  beforeAll(() => {
    const numbers = 'with recursive t(n) as (select 1 union all select n + 1 from t where n < 2000) select n from t'
    execFileSync('sqlite3', [
      file(),
      `create table a as ${numbers}; create table w as select n, hex(zeroblob(200)) as t from a`,
    ])
    chmodSync(file(), 0o644)
  })

  test('ends with the time limit of the call, however large its join is', async () => {
    const late = new AbortController()
    const long = ['sqlite3', '-readonly', file(), 'select count(*) from a, a b, a c, a d']
    const going = read(['sqlite3', '-readonly', file(), 'select count(*) from a'], late.signal, long)
    // While its sandbox is made ready: a deadline that comes then counts, too.
    late.abort(new DOMException('the deadline has passed', 'TimeoutError'))
    expect(await going).toMatchObject({ exitCode: null, stoppedBy: 'deadline' })
  })

  test('ends if its temporary data exceeds 32 MiB', async () => {
    // Each row is wide, so that a sort of four million has to be put aside.
    const wide = 'select w.t || a.n from w, a order by w.n * a.n % 7919, a.n, w.n'
    const ended = await read(['sqlite3', '-readonly', file(), 'select 1'], undefined, [
      'sqlite3',
      '-readonly',
      file(),
      wide,
    ])
    expect([ended.exitCode === 0, ended.stdout]).toEqual([false, ''])
  })
})
