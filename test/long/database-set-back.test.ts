import { afterEach, expect, test } from '@jest/globals'
import pg from 'pg'
import { ended, expectNothingTwice } from '../support/after-restore.ts'
import { freshDatabase } from '../support/servers.ts'
import { startSpine } from '../support/spine.ts'

// The database comes back as it was earlier, and Temporal knows better. The other way round: `temporal-set-back.test.ts`.
const parts = ['lab', 'runbook', 'api', 'worker'] as const
const environment = { WATCHDOG_INTERVAL_SECONDS: '1' }
let stops: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const stop of stops.reverse()) await stop()
  stops = []
})

/** Replaces a database by a copy of another; nobody may be connected to either. */
async function copyDatabase(url: string, from: string, to: string): Promise<void> {
  const client = new pg.Client({ connectionString: url.replace(/[^/]*$/, 'postgres') })
  await client.connect()
  try {
    await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [from])
    await client.query(`drop database if exists ${to} with (force)`)
    await client.query(`create database ${to} template ${from}`)
  } finally {
    await client.end()
  }
}

test('a database that is restored from before a repair: each incident goes on, and nothing is done twice', async () => {
  const database = await freshDatabase()
  const name = database.url.slice(database.url.lastIndexOf('/') + 1)
  const backup = `${name}_backup`
  const spine = await startSpine({ parts: [...parts], databaseUrl: database.url, environment })
  stops.push(
    () => database.drop(),
    () => spine.stop(),
  )
  await spine.lab.break('replication_lag', 'db-osl-1')
  const claimed = await spine.incident('replication_lag', 'investigating')
  await spine.kill('worker')
  await spine.lab.break('service_down', 'web-osl-1')
  const queued = await spine.incident('service_down', 'open')
  await spine.kill('api')
  await copyDatabase(database.url, name, backup)

  await Promise.all([spine.start('api'), spine.start('worker')])
  await spine.incident('replication_lag', 'resolved', 120_000)
  await spine.incident('service_down', 'resolved', 120_000)
  await Promise.all([spine.kill('api'), spine.kill('worker')])
  await copyDatabase(database.url, backup, name)
  await Promise.all([spine.start('api'), spine.start('worker')])

  // The one that was claimed lost its run, the other one the number of its first attempt.
  expect(await ended(spine, claimed.id)).toMatchObject({ attempt: 3 })
  expect(await ended(spine, queued.id)).toMatchObject({ attempt: 2 })
  const codes = [...(await spine.events(claimed.id)), ...(await spine.events(queued.id))].flatMap(
    ({ kind, metadata }) => (kind === 'noted' ? [(metadata as { code: string }).code] : []),
  )
  expect(codes).toEqual(expect.arrayContaining(['run_lost', 'attempt_skipped']))
  await expectNothingTwice(spine)
}, 400_000)
