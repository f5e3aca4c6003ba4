import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { connect } from '../../db/connect.ts'
import { migrateToLatest } from '../../migrations/migrate.ts'
import { type Postgres, startPostgres } from '../../start/postgres.ts'
import { releasePort } from '../../start/process.ts'
import { moveClock } from '../support/database.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type Spine, startSpine } from '../support/spine.ts'
import { ownTemporal } from '../support/temporal-proxy.ts'

// Servers of the tests' own: they are killed, and the spine lives through all of it.
const directories = { postgres: temporaryDirectory(), temporal: temporaryDirectory() }
let postgres: Postgres
let temporal: Awaited<ReturnType<typeof ownTemporal>>
let spine: Spine

beforeAll(async () => {
  postgres = await startPostgres({ dir: directories.postgres.path })
  await migrateToLatest(postgres.url)
  temporal = await ownTemporal(directories.temporal.path)
  spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'worker'],
    databaseUrl: postgres.url,
    temporalAddress: temporal.current.address,
  })
})
afterAll(async () => {
  await spine?.stop()
  await temporal?.stop()
  await postgres?.stop()
  for (const directory of Object.values(directories)) directory.remove()
})
afterEach(() => spine.turnThePage())

async function postgresAgain(): Promise<void> {
  const { port } = postgres
  releasePort(port)
  postgres = await startPostgres({ dir: directories.postgres.path, port })
  expect(postgres.port).toBe(port)
}

async function expectRepairedOnce(type: 'replication_lag' | 'service_down', target: string) {
  const incident = await spine.incident(type, 'resolved')
  expect((await spine.effects()).filter((effect) => effect.request.includes('converge'))).toMatchObject([{ runs: 1 }])
  expect(await spine.get(`/incidents/${incident.id}/verify`)).toMatchObject({ ok: true })
  expect(await spine.lab.oracle(type, target)).toMatchObject({ healthy: true })
}

test('if PostgreSQL is killed during an investigation, the investigation continues where its rows end', async () => {
  await spine.lab.break('replication_lag', 'db-osl-1')
  await spine.incident('replication_lag', 'investigating')
  process.kill(postgres.process.pid, 'SIGKILL')
  // Its children notice a moment after their parent died; from then on nothing is answered as if it
  // were stored.
  await spine.until('a refusal', async () => /503/.test(String(await spine.incidents().catch(String))))
  await postgresAgain()
  await expectRepairedOnce('replication_lag', 'db-osl-1')
})

test('if Temporal is killed during an investigation, the investigation continues from its file', async () => {
  await spine.lab.break('replication_lag', 'db-ams-1')
  await spine.incident('replication_lag', 'investigating')
  process.kill(temporal.current.process.pid, 'SIGKILL')
  const { address } = temporal.current
  await temporal.again()
  expect(temporal.current.address).toBe(address)
  await expectRepairedOnce('replication_lag', 'db-ams-1')
})

test('of two workers and two API servers one pair is killed at work, and the other pair loses nothing', async () => {
  await spine.start('api2')
  await spine.start('worker2', { CORE_API_URL: spine.url2 })
  await spine.lab.break('service_down', 'web-osl-1')
  await spine.incident('service_down', 'investigating')
  await Promise.all([spine.kill('worker'), spine.kill('api')])
  spine.talkTo(spine.url2)
  await expectRepairedOnce('service_down', 'web-osl-1')
  // The other pair alone has no receiver for the lab's alerts.
  await spine.start('api')
  await spine.start('worker')
  await spine.kill('worker2')
})

test('an approval left for three days, over a deploy of the worker and restarts of Temporal and PostgreSQL, decides once', async () => {
  await sql`insert into platform_config (key, value) values ('approval.expiry.execute_migration', '604800')`.execute(
    spine.db,
  )
  await spine.lab.break('host_down', 'host-osl-1')
  const asked = await spine.pendingApproval()

  await spine.kill('worker', 'SIGTERM')
  await temporal.stop()
  await postgres.stop()
  await postgresAgain()
  const owner = connect(postgres.url, { owner: true })
  await moveClock(owner, '3 days')
  await owner.destroy()
  await temporal.again()
  await spine.start('worker')

  const { approver } = spine.tokens
  const token = await spine.until('a decision token', async () => {
    const minted = await spine.post(`/approvals/${asked.id}/token`, { decision: 'approve' }, { token: approver })
    return minted.body.token
  })
  const decide = () =>
    spine.post(`/approvals/${asked.id}/decision`, { decision: 'approve', token }, { token: approver })
  const answers = await Promise.all([decide(), decide(), decide()])
  expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(0)

  const incident = await spine.incident('host_down', 'escalated')
  const events = await spine.events(incident.id)
  expect(events.filter(({ kind }) => kind === 'approval_decided')).toHaveLength(1)
  const moves = (await spine.effects()).filter((effect) => effect.request.includes('/vms/'))
  expect(moves.length).toBeGreaterThan(0)
  expect(moves.every((effect) => effect.runs === 1)).toBe(true)
  expect(await spine.lab.oracle('host_down', 'host-osl-1')).toMatchObject({ healthy: true })
  expect(await spine.get(`/incidents/${incident.id}/verify`)).toMatchObject({ ok: true })
})
