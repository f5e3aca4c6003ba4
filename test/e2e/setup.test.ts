import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { Connection } from '@temporalio/client'
import { runbookServer } from '../../lab/runbook/server.ts'
import { emptyDatabase, registerNamespace, temporalAddress } from '../support/broker.ts'
import { compileCache, eventually, freePort, temporaryDirectory } from '../support/directory.ts'
import { runCli } from '../support/run-cli.ts'

const root = join(import.meta.dirname, '..', '..')
const place = temporaryDirectory()
const file = join(place.path, 'nightshift.env')
const model = runbookServer(0)
const programs: ChildProcess[] = []
let database: Awaited<ReturnType<typeof emptyDatabase>>

beforeAll(async () => {
  await new Promise<void>((done) => model.listen(0, '127.0.0.1', done))
  database = await emptyDatabase()
})
afterAll(async () => {
  for (const program of programs) program.kill('SIGKILL')
  model.close()
  model.closeAllConnections()
  await database.drop()
  place.remove()
})

/** A program of the site as its unit starts it: the files of settings, and nothing else of ours. */
function startProgram(entry: 'start/prepare.ts' | 'api/main.ts' | 'worker/main.ts', ...files: string[]): ChildProcess {
  const read = files.map((each) => `. ${each}`).join('; ')
  const line = `set -a; ${read}; exec ${process.execPath} --disable-warning=ExperimentalWarning ${root}/${entry}`
  const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCache, LOG_LEVEL: 'error' }
  const program = spawn('sh', ['-c', line], { env, stdio: ['ignore', 'ignore', 'inherit'] })
  programs.push(program)
  return program
}

test('the settings of setup start a site, and its test alert is investigated there and closed as no fault', async () => {
  const [address, port, workerPort] = [await temporalAddress(), await freePort(), await freePort()]
  const namespace = `setup-${randomBytes(4).toString('hex')}`
  const connection = await Connection.connect({ address })
  await registerNamespace(connection, namespace)
  await connection.close()
  const url = `http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`
  const answers = [
    ...['--base-url', url, '--model', 'runbook-rules', '--database-url', database.url],
    ...['--temporal-address', address, '--temporal-namespace', namespace],
    ...['--public-url', `http://127.0.0.1:${port}`, '--port', String(port)],
  ]
  const more = { WORKER_PORT: String(workerPort), QUEUE_INTERVAL_SECONDS: '2' }
  const extra = Object.entries(more).map(([name, value]) => `${name}=${value}`)
  const first = await runCli(
    ['setup', '--settings', file, '--answers', '-', ...answers, '--json'],
    {},
    extra.join('\n'),
  )
  const states = (stdout: string) =>
    Object.fromEntries(
      (JSON.parse(stdout) as { rows: { step: string; state: string }[] }).rows.map(({ step, state }) => [step, state]),
    )
  expect([first.code, states(first.stdout)]).toEqual([
    0,
    {
      model: 'works',
      PostgreSQL: 'works',
      Temporal: 'made',
      address: 'works',
      settings: 'written',
      schema: 'made',
      'test alert': 'not yet',
    },
  ])

  // The unit's ExecStartPre makes the tokens known.
  await once(startProgram('start/prepare.ts', file), 'exit')
  startProgram('api/main.ts', file, join(place.path, 'api.env'))
  startProgram('worker/main.ts', file)
  const last = await eventually('the site to answer and to investigate', async () => {
    const ready = await fetch(`http://127.0.0.1:${workerPort}/readyz`).catch(() => null)
    if (!ready?.ok) return null
    return await runCli(['setup', '--settings', file, '--json'])
  })
  const { rows } = JSON.parse(last.stdout) as { rows: { step: string; state: string; detail: string }[] }
  expect([last.code, states(last.stdout)]).toMatchObject([
    0,
    { Temporal: 'there', settings: 'there', 'test alert': 'works' },
  ])
  expect(rows.at(-1)?.detail).toMatch(
    /was taken by the agent; the model answered \d+ times.*setup closed it as no fault/,
  )
})
