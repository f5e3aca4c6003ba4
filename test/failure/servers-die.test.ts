import { afterEach, expect, test } from '@jest/globals'
import { migrateToLatest } from '../../migrations/migrate.ts'
import { giveBack } from '../../start/port.ts'
import { type Postgres, startPostgres } from '../../start/postgres.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { ownTemporal } from '../support/own-temporal.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let stops: (() => Promise<unknown> | unknown)[] = []

afterEach(async () => {
  for (const stop of stops.reverse()) await stop()
  stops = []
})

async function expectRepairedOnce(spine: Spine) {
  const incident = await spine.incident('replication_lag', 'resolved', 180_000)
  expect((await spine.lab.effects()).filter((effect) => effect.request.includes('converge'))).toMatchObject([
    { runs: 1 },
  ])
  expect(await spine.get(`/incidents/${incident.id}/verify`)).toMatchObject({ ok: true })
  expect(await spine.lab.oracle('replication_lag', 'db-osl-1')).toMatchObject({ healthy: true })
}

test('PostgreSQL killed in the middle of an investigation: it goes on where its rows end', async () => {
  const directory = temporaryDirectory()
  stops.push(() => directory.remove())
  let postgres: Postgres = await startPostgres({ dir: directory.path })
  stops.push(() => postgres.stop())
  await migrateToLatest(postgres.url)
  const spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'], databaseUrl: postgres.url })
  stops.push(() => spine.stop())
  await spine.lab.break('replication_lag', 'db-osl-1')
  await spine.incident('replication_lag', 'investigating')
  process.kill(postgres.process.pid, 'SIGKILL')
  // Its children notice a moment after their parent died; from then on nothing is answered as if it were stored.
  await spine.until('a refusal', async () => /503/.test(String(await spine.incidents().catch(String))))
  const { port } = postgres
  giveBack(port)
  postgres = await startPostgres({ dir: directory.path, port })
  expect(postgres.port).toBe(port)
  await expectRepairedOnce(spine)
}, 300_000)

test('Temporal killed in the middle of an investigation: it goes on from its file', async () => {
  const directory = temporaryDirectory()
  stops.push(() => directory.remove())
  const temporal = await ownTemporal(directory.path)
  stops.push(() => temporal.stop())
  const spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'worker'],
    temporalAddress: temporal.current.address,
  })
  stops.push(() => spine.stop())
  await spine.lab.break('replication_lag', 'db-osl-1')
  await spine.incident('replication_lag', 'investigating')
  process.kill(temporal.current.process.pid, 'SIGKILL')
  const { address } = temporal.current
  await temporal.again()
  expect(temporal.current.address).toBe(address)
  await expectRepairedOnce(spine)
}, 300_000)

test('of two workers and two API servers one pair is killed at work, and the other pair loses nothing', async () => {
  const spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'api2', 'worker'] })
  stops.push(() => spine.stop())
  await spine.start('worker2', { CORE_API_URL: spine.url2 })
  await spine.lab.break('replication_lag', 'db-osl-1')
  await spine.incident('replication_lag', 'investigating')
  await Promise.all([spine.kill('worker'), spine.kill('api')])
  spine.talkTo(spine.url2)
  await expectRepairedOnce(spine)
}, 300_000)
