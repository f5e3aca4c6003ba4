import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type Kysely, sql } from 'kysely'
import { createApi } from '../../api/app.ts'
import { createToken } from '../../db/access/tokens.ts'
import { connect, type Db } from '../../db/connect.ts'
import { raiseFloor } from '../../migrations/floor.ts'
import { migrateTo, migrateToLatest } from '../../migrations/migrate.ts'
import { emptyDatabase } from '../support/broker.ts'
import { compileCache, freePort } from '../support/directory.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
let database: Awaited<ReturnType<typeof emptyDatabase>>
let owner: Db
beforeAll(async () => {
  database = await emptyDatabase()
  owner = connect(database.url, { owner: true, max: 2 })
})
afterAll(async () => {
  await owner.destroy()
  await database.drop()
})

const readiness = async () => {
  const db = connect(database.url, { max: 2 })
  const answer = await createApi({ db }).app.request('/readyz')
  const { checks } = (await answer.json()) as { checks: { migrations: { detail?: string } } }
  await db.destroy()
  return { status: answer.status, detail: checks.migrations.detail }
}

test('a plan that was stored before plans had waves and proofs can be read after the upgrade', async () => {
  await migrateTo(database.url, '0014-size')
  const steps = [1, 2].map((step) => ({ step, action: 'migrate', vm: `vm-${step}`, from: 'host-1', to: 'host-2' }))
  const problem = {
    intent: 'drain',
    hostIds: ['host-1'],
    vmIds: null,
    useRackConstraints: false,
    vms: [],
    hosts: [{ name: 'host-1', ramMib: 1_024, cpuMc: 1_000, rack: null, state: 'draining' }],
  }
  await sql`
    insert into proposal (id, intent, host_ids, state, migrations, steps, problem, plan_digest, state_fingerprint)
    values ('prp_old', 'drain', '["host-1"]', 'planned', 2, ${JSON.stringify(steps)}, ${JSON.stringify(problem)}, 'd', 'f')
  `.execute(owner)
  await migrateTo(database.url, '0022-heartbeats')
  const db = connect(database.url, { max: 2 })
  // As the schema of that day has people.
  await sql`insert into operator (id, name, role) values ('opr_a', 'a', 'admin')`.execute(owner)
  const token = await createToken(db, { name: 'a', role: 'admin', operatorId: 'opr_a' })
  const headers = { authorization: `Bearer ${token}` }
  const answer = await createApi({ db }).app.request('/api/v1/placement/proposals/prp_old', { headers })
  expect([answer.status, await answer.json()]).toMatchObject([
    200,
    { planDigest: 'd', steps: [{ needs: [] }, { needs: [1] }] },
  ])
  await db.destroy()
})

test('a build that finds an old schema prints the command to run', async () => {
  await migrateTo(database.url, '0022-heartbeats')
  expect(await readiness()).toEqual({
    status: 503,
    detail: expect.stringMatching(/apply the migrations with "nightshift migrate".*not applied: 0023-patience/),
  })
})

/** What a build of tomorrow does, which this one does not know. */
async function migrateTomorrow(name: string, build: string): Promise<void> {
  await sql`insert into kysely_migration (name, timestamp) values (${name}, '2027-01-01T00:00:00Z')`.execute(owner)
  await sql`insert into schema_build (migration, build) values (${name}, ${build})`.execute(owner)
}

test('an older build continues, and starts again, on a newer schema that requires no more than it knows', async () => {
  await migrateToLatest(database.url)
  const { rows } = await sql<{ build: string }>`select distinct build from schema_build`.execute(owner)
  expect(rows).toEqual([{ build: version }])
  expect(await readiness()).toEqual({ status: 200, detail: undefined })
  await migrateTomorrow('9000-of-tomorrow', '7.1.0')
  expect(await migrateToLatest(database.url)).toEqual({ applied: [] })
  expect(await readiness()).toEqual({ status: 200, detail: undefined })
})

test('an older build on a newer schema that requires more names the needed build, and changes nothing', async () => {
  await migrateTomorrow('9001-of-tomorrow', '7.2.0')
  await raiseFloor(owner as unknown as Kysely<unknown>, '9001-of-tomorrow')
  await expect(migrateToLatest(database.url)).rejects.toThrow(
    /does not know 9000-of-tomorrow, 9001-of-tomorrow. Start build 7\.2\.0/,
  )
  expect(await readiness()).toEqual({ status: 503, detail: expect.stringMatching(/Start build 7\.2\.0/) })
})

test.each([
  ['api/main.ts', 'the API does not start'],
  ['worker/main.ts', 'the worker does not start'],
])('%s refuses such a schema in one line', async (entry, words) => {
  const ports = { PORT: String(await freePort()), WORKER_PORT: String(await freePort()) }
  const { status, stdout } = spawnSync(process.execPath, [join(import.meta.dirname, '../..', entry)], {
    env: { PATH: process.env.PATH, DATABASE_URL: database.url, ...ports, NODE_COMPILE_CACHE: compileCache },
    encoding: 'utf8',
  })
  expect([status, stdout]).toEqual([1, expect.stringContaining(words)])
  expect(stdout).toContain('Start build 7.2.0')
})
