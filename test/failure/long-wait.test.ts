import { afterEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { connect } from '../../db/connect.ts'
import { migrateToLatest } from '../../migrations/migrate.ts'
import { giveBack } from '../../start/port.ts'
import { type Postgres, startPostgres } from '../../start/postgres.ts'
import { moveClock } from '../support/database.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { ownTemporal } from '../support/own-temporal.ts'
import { startSpine } from '../support/spine.ts'

let stops: (() => Promise<unknown> | unknown)[] = []

afterEach(async () => {
  for (const stop of stops.reverse()) await stop()
  stops = []
})

test('an approval left for three days, over a deploy of the worker and restarts of Temporal and PostgreSQL, decides once', async () => {
  const directory = temporaryDirectory()
  stops.push(() => directory.remove())
  const databaseDirectory = temporaryDirectory()
  stops.push(() => databaseDirectory.remove())
  let postgres: Postgres = await startPostgres({ dir: databaseDirectory.path })
  stops.push(() => postgres.stop())
  await migrateToLatest(postgres.url)
  const temporal = await ownTemporal(directory.path)
  stops.push(() => temporal.stop())
  const spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'worker'],
    databaseUrl: postgres.url,
    temporalAddress: temporal.current.address,
  })
  stops.push(() => spine.stop())
  await sql`insert into platform_config (key, value) values ('approval.expiry.execute_migration', '604800')`.execute(
    spine.db,
  )
  await spine.lab.break('host_down', 'host-osl-1')
  const asked = await spine.pendingApproval()

  await spine.kill('worker', 'SIGTERM')
  const databasePort = postgres.port
  await temporal.stop()
  await postgres.stop()
  giveBack(databasePort)
  postgres = await startPostgres({ dir: databaseDirectory.path, port: databasePort })
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

  const incident = await spine.incident('host_down', 'escalated', 180_000)
  const events = await spine.events(incident.id)
  expect(events.filter(({ kind }) => kind === 'approval_decided')).toHaveLength(1)
  const moves = (await spine.lab.effects()).filter((effect) => effect.request.includes('/vms/'))
  expect(moves.length).toBeGreaterThan(0)
  expect(moves.every((effect) => effect.runs === 1)).toBe(true)
  expect(await spine.lab.oracle('host_down', 'host-osl-1')).toMatchObject({ healthy: true })
  expect(await spine.get(`/incidents/${incident.id}/verify`)).toMatchObject({ ok: true })
}, 300_000)
