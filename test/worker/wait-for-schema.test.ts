import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, expect, test } from '@jest/globals'
import { migrateTo, migrateToLatest } from '../../migrations/migrate.ts'
import { emptyDatabase, temporalAddress } from '../support/broker.ts'
import { compileCache, eventually, freePort } from '../support/directory.ts'

const before = '0059-device-connections'
const ended: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end()
})

/** A worker as a process of its own, on a database whose schema is that of the release before. */
async function startEarly() {
  const database = await emptyDatabase()
  ended.push(() => database.drop())
  await migrateTo(database.url, before)
  const port = await freePort()
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', 'worker/main.ts'], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: compileCache,
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: await temporalAddress(),
      WORKER_PORT: String(port),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  ended.push(async () => {
    child.kill('SIGKILL')
    await exited
  })
  let printed = ''
  child.stdout.on('data', (bytes) => {
    printed += bytes
  })
  const status = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`).catch(() => null))?.status
  await eventually('the worker to say what it waits for', () => printed.includes('does not start work yet'))
  return { child, exited, status, database, printed: () => printed }
}

test('a worker that starts before the migrations runs, takes no task, says why, and continues by itself once they are applied', async () => {
  const { status, database, printed } = await startEarly()
  expect([await status('/livez'), await status('/readyz')]).toEqual([200, 503])
  expect(printed()).toMatch(/apply the migrations with \\"nightshift migrate\\".*not applied: 0060-retention/)
  expect(printed()).not.toContain('the worker is ready')
  await migrateToLatest(database.url)
  await eventually('the worker to be ready', async () => (await status('/readyz')) === 200)
  expect(printed().match(/does not start work yet/g)).toHaveLength(1)
})

test('a worker that is stopped during its wait for the migrations ends at once with 0', async () => {
  const { child, exited } = await startEarly()
  child.kill('SIGTERM')
  expect(await exited).toEqual([0, null])
})
