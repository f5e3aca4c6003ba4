import { afterEach, expect, test } from '@jest/globals'
import { storeGrant } from '../../db/approvals/grants.ts'
import { connect } from '../../db/connect.ts'
import type { Approval } from '../../domain/approval.ts'
import type { StandingGrant } from '../../domain/grant.ts'
import type { StatusPart } from '../../domain/status.ts'
import { migrateToLatest } from '../../migrations/migrate.ts'
import { moveClock, storeSetting } from '../support/database.ts'
import { debianPostgres } from '../support/debian-postgres.ts'
import { runCli } from '../support/run-cli.ts'
import { shardPlatform } from '../support/shard-platform.ts'
import { type Spine, startSpine } from '../support/spine.ts'

const stops: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const stop of stops.reverse()) await stop()
  stops.length = 0
})

async function build() {
  const server = await debianPostgres()
  stops.push(() => server.stop())
  await server.ask('postgres', 'create database nightshift')
  await migrateToLatest(server.url('nightshift'))
  const platform = await shardPlatform(6, 50)
  stops.push(() => platform.stop())
  const spine = await startSpine({
    parts: ['runbook', 'api'],
    databaseUrl: server.url('nightshift'),
    environment: { PLATFORM_URL: platform.url, WATCHDOG_INTERVAL_SECONDS: '1' },
  })
  stops.push(() => spine.stop())
  const settings = {
    'approval.risk.converge_shard': 'high',
    'approval.expiry.converge_shard': '36000',
    'agent.leader_wait': '1',
  }
  for (const [key, value] of Object.entries(settings)) await storeSetting(spine.owner, key, value)
  await spine.until('the inventory', async () => {
    const { items } = await spine.get<{ items: unknown[] }>('/resources?q=db-&kind=shard&limit=1')
    return items.length > 0
  })
  return { server, platform, spine }
}

async function alert({ post, tokens }: Spine, n: number): Promise<void> {
  const labels = {
    alertname: 'replication_lag',
    incident_type: 'replication_lag',
    severity: 'warning',
    shard: `db-${n}`,
  }
  const startsAt = new Date(Date.now() - 7_200_000).toISOString()
  const alerts = [{ status: 'firing', labels, annotations: {}, fingerprint: `fp-${n}`, startsAt }]
  const answer = await post('/ingest/alertmanager', { version: '4', alerts }, { token: tokens.ingest })
  expect(answer.status).toBe(202)
}

/** The question that waits about a shard, and is not one of those. */
async function question(spine: Spine, n: number, before: string[] = []): Promise<Approval> {
  return await spine.until(`a question about db-${n}`, async () => {
    const { items } = await spine.get<{ items: Approval[] }>('/approvals?status=pending')
    return items.find(({ id, targets }) => !before.includes(id) && targets.some((each) => each.id === `db-${n}`))
  })
}

async function decide({ post, tokens }: Spine, id: string, said: object): Promise<void> {
  const as = { token: tokens.approver }
  const { status, body } = await post(`/approvals/${id}/token`, said, as)
  expect([status, body.detail]).toEqual([201, undefined])
  const answer = await post(`/approvals/${id}/decision`, { ...said, token: body.token }, as)
  expect([answer.status, answer.body.detail]).toEqual([200, undefined])
}

/** A grant of the one who approved, as a tool that may be granted would have got it. */
async function grant({ db }: Spine, approvalId: string): Promise<void> {
  const { id } = await db.selectFrom('operator').select('id').where('name', '=', 'approver').executeTakeFirstOrThrow()
  await db.transaction().execute(async (trx) => {
    const row = await trx.selectFrom('approval').selectAll().where('id', '=', approvalId).executeTakeFirstOrThrow()
    await storeGrant(trx, row, id, { uses: 3, hours: 8 })
  })
}

const over = (spine: Spine, id: string) =>
  spine.until(`the end of ${id}`, async () => {
    const incident = await spine.get<{ status: string; attempt: number }>(`/incidents/${id}`)
    return ['resolved', 'escalated'].includes(incident.status) && incident
  })

test('a database that is restored an hour behind repeats no later write, and people are asked again', async () => {
  const { server, platform, spine } = await build()
  const env = { DATABASE_URL: server.url('nightshift') }
  // The backup is made an hour ago, as far as the product knows.
  await moveClock(spine.owner, '-1 hour')
  await spine.start('worker')
  for (const n of [0, 1, 2, 3]) await alert(spine, n)
  const asked = [await question(spine, 0), await question(spine, 1), await question(spine, 2), await question(spine, 3)]
  const [first, written, denied, waiting] = asked as [Approval, Approval, Approval, Approval]
  await decide(spine, first.id, { decision: 'approve' })
  await grant(spine, first.id)
  expect(await over(spine, first.incidentId)).toMatchObject({ status: 'resolved' })
  const backup = await runCli(['backup', `${server.dir}/backups`, '--json'], env)
  expect([backup.code, backup.stderr]).toEqual([0, ''])
  const { path } = JSON.parse(backup.stdout) as { path: string }

  await moveClock(spine.owner, '0')
  await decide(spine, written.id, { decision: 'approve' })
  expect(await over(spine, written.incidentId)).toMatchObject({ status: 'resolved' })
  await decide(spine, denied.id, { decision: 'deny', reason: 'a backup runs' })
  expect(await over(spine, denied.incidentId)).toMatchObject({ status: 'escalated' })
  await alert(spine, 4)
  const { incidentId: lost } = await question(spine, 4)
  const begun = () => [...platform.begun.values()].map(({ shard }) => shard).sort()
  expect(begun()).toEqual(['db-0', 'db-1'])

  // By docs/how-to/backup.md, word for word.
  for (const part of ['worker', 'api'] as const) await spine.kill(part, 'SIGTERM')
  await server.ask(
    'postgres',
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'nightshift' and pid <> pg_backend_pid()",
  )
  await server.ask('postgres', 'ALTER DATABASE nightshift RENAME TO nightshift_before_restore')
  await server.ask('postgres', 'CREATE DATABASE nightshift OWNER nightshift')
  const restored = await runCli(['restore', path], env)
  expect([restored.code, restored.stdout]).toEqual([0, expect.stringContaining('Ended 1 standing grant')])
  const owner = connect(server.url('nightshift'), { owner: true, max: 1 })
  await moveClock(owner, '0')
  await owner.destroy()
  for (const part of ['api', 'worker'] as const) await spine.start(part)

  const { parts } = await spine.get<{ parts: StatusPart[] }>('/status')
  expect(parts.find(({ name }) => name === 'restore')).toMatchObject({
    status: 'failed',
    detail: expect.stringContaining('are missing from it'),
    remedy: expect.stringContaining('backup.md'),
  })
  const grants = await spine.get<{ items: StandingGrant[] }>('/grants')
  expect(grants.items.map(({ revokedAt }) => revokedAt !== null)).toEqual([true])

  // Incidents open then are looked at again: the shard repaired since is well, and nothing is
  // written there.
  const old = asked.map(({ id }) => id)
  await decide(spine, (await question(spine, 2, old)).id, { decision: 'deny', reason: 'a backup runs' })
  // Its run waits in Temporal as it did: the question is the same one.
  await decide(spine, waiting.id, { decision: 'approve' })
  const ends = [await over(spine, written.incidentId), await over(spine, denied.incidentId)]
  ends.push(await over(spine, waiting.incidentId))
  expect(ends.map(({ attempt }) => attempt > 1)).toEqual([true, true, false])
  for (const { id } of [written, denied])
    expect(await spine.get(`/approvals/${id}`)).toMatchObject({ status: 'withdrawn' })
  // What came in since is there again when its sender repeats it.
  expect((await spine.incidents()).map(({ id }) => id)).not.toContain(lost)
  await alert(spine, 4)
  const again = await question(spine, 4)
  await decide(spine, again.id, { decision: 'approve' })
  await over(spine, again.incidentId)
  expect(begun()).toEqual(['db-0', 'db-1', 'db-3', 'db-4'])
  expect([...platform.begun.values()].every(({ times }) => times === 1)).toBe(true)
  const verified = await runCli(['verify', '--all'], {
    NIGHTSHIFT_URL: spine.url,
    NIGHTSHIFT_TOKEN: spine.tokens.admin,
  })
  expect([verified.code, verified.stderr]).toEqual([0, ''])
})
