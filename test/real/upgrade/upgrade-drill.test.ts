import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, expect, test } from '@jest/globals'
import proto from '@temporalio/proto'
import { sql } from 'kysely'
import { migrateToLatest } from '../../../migrations/migrate.ts'
import { emptyDatabase, freshDatabase } from '../../support/broker.ts'
import { compileCache } from '../../support/directory.ts'
import { bringBuild, commitBeforeNewestMigration, type OtherBuild, prepareWith } from '../../support/other-builds.ts'
import { shardPlatform } from '../../support/shard-platform.ts'
import { type Spine, startSpine } from '../../support/spine.ts'
import { releasedCommits } from '../../upgrade/fixture.ts'
import { note } from '../facts.ts'

const { WorkflowTaskFailedCause } = proto.temporal.api.enums.v1

type Size = { approvals: number; atWork: number; all: number; longestMs: number }

/** `longestMs` only ends a hang: each question takes a moment of a worker, and more take longer. */
function sizeOf(approvals: number, atWork: number): Size {
  const all = approvals + atWork
  return { approvals, atWork, all, longestMs: 240_000 + all * 3_000 }
}

/**
 * What waits for people, and what is at work, when the upgrade comes: `APPROVALS=300 WORK=60` for a
 * whole site.
 */
const whole = sizeOf(Number(process.env.APPROVALS ?? 30), Number(process.env.WORK ?? 8))
const testMs = 3 * whole.longestMs
/** The third of the shards for which people say no, whatever is asked about them. */
const isDenied = (shard: string) => Number(shard.slice(3)) % 3 === 0

type Site = {
  build: OtherBuild
  size: Size
  spine: Spine
  platform: Awaited<ReturnType<typeof shardPlatform>>
}

const stops: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const stop of stops.reverse()) await stop()
  stops.length = 0
})

/**
 * A site of an older build, with as many questions before people and as many investigations that
 * wait for their model.
 */
async function siteOf(build: OtherBuild, schema: 'own' | 'newest' = 'own', size = whole): Promise<Site> {
  const { approvals, atWork, all, longestMs } = size
  const database = await emptyDatabase()
  stops.push(() => database.drop())
  const tokens = prepareWith(build, database.url)
  if (schema === 'newest') await migrateToLatest(database.url)
  const platform = await shardPlatform(all, 50)
  stops.push(() => platform.stop())
  const spine = await startSpine({
    parts: [],
    databaseUrl: database.url,
    tokens,
    environment: { PLATFORM_URL: platform.url, WATCHDOG_INTERVAL_SECONDS: '5' },
  })
  stops.push(() => spine.stop())
  const settings = {
    'approval.risk.converge_shard': 'high',
    'agent.leader_wait': '1',
    'agent.max_followers': '1000',
    'agent.concurrency.replication_lag': '100',
    'agent.concurrency.config_drift': '100',
  }
  for (const [key, value] of Object.entries(settings))
    await sql`insert into platform_config (key, value) values (${key}, ${value})`.execute(spine.owner)
  for (const part of ['runbook', 'api', 'worker'] as const) await spine.start(part, {}, build.tree)
  await spine.until('the inventory', async () => {
    const { items } = await spine.get<{ items: unknown[] }>('/resources?q=db-&kind=shard&limit=1')
    return items.length > 0
  })
  await alert(spine, 0, approvals)
  await spine.until('all to wait for people', () => areIn(spine, 'awaiting_approval', approvals), longestMs)
  await setMood(spine, 'hang')
  await alert(spine, approvals, all)
  await spine.until('all to be at work', () => areIn(spine, 'investigating', atWork))
  return { build, size, spine, platform }
}

/**
 * Lets the model of the older build hang, so that what it is asked stays at work; null: it answers
 * again.
 */
async function setMood({ runbookUrl }: Spine, mood: 'hang' | null): Promise<void> {
  await fetch(`${runbookUrl}/control/mood`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ mood }),
  })
}

async function alert({ post, tokens }: Spine, from: number, to: number): Promise<void> {
  for (let first = from; first < to; first += 50) {
    const numbers = Array.from({ length: Math.min(50, to - first) }, (_, n) => first + n)
    const alerts = numbers.map((n) => {
      const type = n % 2 === 0 ? 'replication_lag' : 'config_drift'
      const labels = { alertname: type, incident_type: type, severity: 'warning', shard: `db-${n}` }
      return { status: 'firing', labels, annotations: {}, fingerprint: `fp-${n}`, startsAt: new Date().toISOString() }
    })
    expect(await post('/ingest/alertmanager', { version: '4', alerts }, { token: tokens.ingest })).toMatchObject({
      status: 202,
    })
  }
}

async function count({ db }: Spine, ...statuses: string[]): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from incident where status = any(${statuses})`.execute(db)
  return rows[0]?.count ?? 0
}

/**
 * Are so many there? Where not, throws what is there instead, for the one who reads why the wait
 * ended.
 */
async function areIn(spine: Spine, status: string, wanted: number): Promise<boolean> {
  if ((await count(spine, ...status.split('|'))) === wanted) return true
  const { rows } = await sql`
    select status, attempt, count(*)::int, min(resolution) as one from incident group by 1, 2`.execute(spine.db)
  throw new Error(JSON.stringify(rows))
}

type Asked = { id: string; shard: string }

async function pending({ db }: Spine, limit: number): Promise<Asked[]> {
  const { rows } = await sql<Asked>`
    select approval.id, resource_id as shard from approval join incident on incident.id = approval.incident_id
    where approval.status = 'pending' order by approval.id limit ${limit}`.execute(db)
  return rows
}

/**
 * Presses the button of each question that waits, once, as the person of its shard would. Answers
 * how many were taken.
 */
async function press(spine: Spine, limit = 1_000): Promise<number> {
  const waiting = await pending(spine, limit)
  let taken = 0
  const one = async ({ id, shard }: Asked) => {
    const said = isDenied(shard) ? { decision: 'deny', reason: 'a backup runs' } : { decision: 'approve' }
    const token = spine.tokens.approver
    const minted = await spine.post(`/approvals/${id}/token`, said, { token })
    if (minted.status !== 201) return
    const { status } = await spine.post(`/approvals/${id}/decision`, { ...said, token: minted.body.token }, { token })
    if (status === 200) taken += 1
  }
  for (let first = 0; first < waiting.length; first += 10) await Promise.all(waiting.slice(first, first + 10).map(one))
  return taken
}

async function pressUntilAllEnded({ spine, size }: Site): Promise<number> {
  let taken = 0
  const areOver = async () => {
    taken += await press(spine)
    return await areIn(spine, 'resolved|escalated', size.all)
  }
  await spine.until('every incident to end', areOver, size.longestMs)
  return taken
}

/** Returns how the runs about these shards went on, for a reader who asks why. */
async function lastRows(spine: Spine, shards: string[]): Promise<string> {
  const { rows } = await sql<{ told: string }>`
    select incident.resource_id || ' ' || incident.status || ': ' || string_agg(event.kind || ' ' || left(event.detail, 120), ' | '
      order by event.seq desc) as told
    from incident join lateral (
      select seq, kind, detail from incident_event where incident_id = incident.id order by seq desc limit 8
    ) as event on true
    where incident.resource_id = any(${shards.slice(0, 3)})
    group by incident.id, incident.resource_id, incident.status`.execute(spine.db)
  return rows.map(({ told }) => told).join('\n')
}

/** What must hold after an upgrade, whichever way it came; answers the figures of the drill. */
async function holdEverything({ build, size, spine, platform }: Site, how: string, taken: number) {
  const { rows: ends } = await sql<{ incidents: number; senders: number }>`
    select count(*)::int as incidents, count(distinct resource_id)::int as senders from incident`.execute(spine.db)
  expect(ends).toEqual([{ incidents: size.all, senders: size.all }])
  const { rows: decisions } = await sql<{ decided: number; twice: number; withdrawn: number }>`
    select count(*) filter (where times > 0)::int as decided, count(*) filter (where times > 1)::int as twice,
      count(*) filter (where status = 'withdrawn')::int as withdrawn
    from (select approval.status, (select count(*) from incident_event as said
      where said.incident_id = approval.incident_id and said.kind = 'approval_decided'
        and said.metadata->>'approvalId' = approval.id) as times from approval) as asked`.execute(spine.db)
  const [{ decided, twice, withdrawn }] = decisions as [(typeof decisions)[number]]
  expect({ decided, twice }).toEqual({ decided: taken, twice: 0 })
  // Each shard of which somebody said yes was written once, and no other.
  const written = [...platform.begun.values()].map(({ shard }) => shard).sort()
  const wanted = Array.from({ length: size.all }, (_, n) => `db-${n}`).filter((shard) => !isDenied(shard))
  const unwritten = wanted.filter((shard) => !written.includes(shard))
  if (unwritten.length > 0) console.error(`not written, by their last rows:\n${await lastRows(spine, unwritten)}`)
  expect(written).toEqual(wanted.sort())
  expect([...platform.begun.values()].every(({ times }) => times === 1)).toBe(true)
  const differences = await verifyAll(spine)
  expect(differences).toEqual([])
  const failed = await failedTasks(spine)
  expect(failed).toEqual([])
  const { rows: attempts } = await sql<{ again: number }>`
    select count(*) filter (where attempt > 1)::int as again from incident`.execute(spine.db)
  return {
    from: build.name,
    how,
    waited: size.approvals,
    atWork: size.atWork,
    decided,
    twice,
    withdrawn,
    resolved: await count(spine, 'resolved'),
    escalated: await count(spine, 'escalated'),
    tookAnotherAttempt: attempts[0]?.again,
    writes: written.length,
    differences: differences.length,
    failedTasks: failed.length,
  }
}

async function verifyAll({ get }: Spine): Promise<unknown[]> {
  const differences: unknown[] = []
  let cursor = ''
  for (;;) {
    const page = await get<{ differences: unknown[]; nextCursor: string | null }>(`/verify?limit=100&cursor=${cursor}`)
    differences.push(...page.differences)
    if (page.nextCursor === null) return differences
    cursor = encodeURIComponent(page.nextCursor)
  }
}

/**
 * Runs whose history says that a worker could not replay it. A signal that arrived while a run
 * ended is none.
 */
async function failedTasks({ client }: Spine): Promise<string[]> {
  const failed: string[] = []
  for await (const { workflowId, runId, type } of client.workflow.list()) {
    if (type === 'ProcessIncidentQueue') continue
    const { events } = await client.workflow.getHandle(workflowId, runId).fetchHistory()
    for (const { workflowTaskFailedEventAttributes: task } of events ?? [])
      if (task && task.cause !== WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND)
        failed.push(`${workflowId}: ${task.failure?.message}`)
  }
  return failed
}

const released: [string, () => OtherBuild][] = ['v0.1.0', 'v0.2.0'].map((name) => [
  name,
  () => bringBuild(name, releasedCommits[name] as string),
])
const older: [string, () => OtherBuild][] = [
  ...released,
  ['the build before the newest migration', () => bringBuild('before', commitBeforeNewestMigration())],
]
const figures: object[] = []

function tell(found: Awaited<ReturnType<typeof holdEverything>>): void {
  figures.push(found)
  console.table(figures)
  const { from, how, waited, atWork: began, decided, writes } = found
  note(`${from} ${how}:`, `${waited} waited and ${began} at work, ${decided} decisions and ${writes} writes, each once`)
}

test.each(older)(
  '%s, stopped and then replaced: nothing is lost, and nothing happens twice',
  async (_, bring) => {
    const site = await siteOf(bring())
    const { spine } = site
    for (const part of ['worker', 'api', 'runbook'] as const) await spine.kill(part, 'SIGTERM')
    await migrateToLatest(spine.databaseUrl)
    for (const part of ['runbook', 'api', 'worker'] as const) await spine.start(part)
    const taken = await pressUntilAllEnded(site)
    tell(await holdEverything(site, 'alone', taken))
  },
  testMs,
)

test.each(older)(
  '%s, while this build starts beside it: nothing is lost, and nothing happens twice',
  async (_, bring) => {
    const site = await siteOf(bring())
    const { spine } = site
    await migrateToLatest(spine.databaseUrl)
    await setMood(spine, null)
    await Promise.all([spine.start('api2'), spine.start('runbook2')])
    await spine.start('worker2', { CORE_API_URL: spine.url2, LLM_BASE_URL: spine.runbook2Url })
    spine.talkTo(spine.url2)
    // People go on while both are there; the new API is the one that a load balancer asks by now.
    let taken = await press(spine, Math.floor(whole.approvals / 2))
    await spine.until('some to end beside', async () => (await count(spine, 'resolved', 'escalated')) > 0)
    for (const part of ['worker', 'api', 'runbook'] as const) await spine.kill(part, 'SIGTERM')
    taken += await pressUntilAllEnded(site)
    tell(await holdEverything(site, 'beside', taken))
  },
  testMs,
)

/** Whether a build comes up on the newest schema: what its preparation prints, and how it ends. */
function prepareOnNewest({ tree }: OtherBuild, databaseUrl: string) {
  const prepared = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', join(tree, 'start/prepare.ts')],
    {
      env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl, NODE_COMPILE_CACHE: compileCache },
      encoding: 'utf8',
    },
  )
  return { status: prepared.status, printed: `${prepared.stdout}${prepared.stderr}` }
}

test('a released build refuses the newest schema in words, and changes nothing', async () => {
  const database = await freshDatabase()
  stops.push(() => database.drop())
  const refusals = released.map(([, bring]) => prepareOnNewest(bring(), database.url))
  expect(refusals).toEqual([
    { status: 1, printed: expect.stringContaining('corrupted migrations') },
    { status: 1, printed: expect.stringMatching(/The schema is newer than this build .* Start build/) },
  ])
})

test(
  'the build before the newest migration works on the newest schema, or refuses it in words',
  async () => {
    const build = bringBuild('before', commitBeforeNewestMigration())
    const database = await freshDatabase()
    stops.push(() => database.drop())
    const { status, printed } = prepareOnNewest(build, database.url)
    if (status !== 0) return expect(printed).toMatch(/The schema is newer than this build .* Start build/)
    // Plays a small site, because only the older build runs, and its limits are not tested here.
    const site = await siteOf(build, 'newest', sizeOf(30, 8))
    await setMood(site.spine, null)
    const taken = await pressUntilAllEnded(site)
    tell(await holdEverything(site, 'on the newest schema', taken))
  },
  testMs,
)
