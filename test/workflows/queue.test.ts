import { randomBytes } from 'node:crypto'
import { beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { queueActivities } from '../../activities/queue.ts'
import { requestApproval } from '../../db/approvals/ask.ts'
import type { ProcessIncidentQueue } from '../../workflows/group.ts'
import { openedIncident, useDatabase } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { type Course, type Investigated, scriptedGroup } from '../support/scripted-run.ts'
import { newTaskQueue, useTemporal } from '../support/temporal.ts'

const database = useDatabase()
const temporal = useTemporal({ cached: 0 })

beforeEach(async () => {
  await sql`delete from platform_config`.execute(database.owner)
  await sql`update incident set status = 'cancelled', assigned_to = null`.execute(database.owner)
})

/** The whole queue with real activities; only the investigations follow a script. */
function queue(course: (run: Investigated) => Promise<Course>) {
  const taskQueue = newTaskQueue()
  const { client } = temporal
  const given = queueActivities({ db: database.db, client, taskQueue, environment: {} })
  const crew = scriptedGroup(database.db, course, given)
  const activities = { ...crew.activities, ...given }
  const tick = async () =>
    await client.workflow.execute<typeof ProcessIncidentQueue>('ProcessIncidentQueue', {
      taskQueue,
      workflowId: `tick-${randomBytes(4).toString('hex')}`,
      args: [],
    })
  const working = <T>(work: () => Promise<T>) => temporal.working(activities, work, taskQueue)
  const ended = (type: string) => client.workflow.getHandle(`group:${type}`).result()
  return { crew, activities, tick, working, ended }
}

const types = () => ['disk', 'host'].map((name) => `${name}_${randomBytes(4).toString('hex')}`) as [string, string]
const opened = (type: string) => openedIncident(database.db, { labels: { incident_type: type } })

test('a tick returns at once although its groups work for long', async () => {
  const [disk, host] = types()
  await opened(disk)
  await opened(host)
  const work = Promise.withResolvers<void>()
  const { crew, tick, working, ended } = queue(async () => {
    await work.promise
    return { end: 'resolved' }
  })
  await working(async () => {
    expect(await tick()).toEqual({ groups: 2, rewoken: 0 })
    await eventually('both to be at work', async () => crew.order.length === 2)
    expect(await tick()).toEqual({ groups: 0, rewoken: 0 })
    work.resolve()
    await Promise.all([ended(disk), ended(host)])
  })
  expect(crew.order).toHaveLength(2)
})

test('two ticks at once start one group per type and each incident once', async () => {
  const [disk, host] = types()
  for (const type of [disk, host, disk, host]) await opened(type)
  const { crew, tick, working, ended } = queue(async () => ({ end: 'resolved' }))
  await working(async () => {
    await Promise.all([tick(), tick()])
    await Promise.all([ended(disk), ended(host)])
  })
  expect(crew.order.filter((run) => run.role === 'leader')).toHaveLength(2)
  expect(new Set(crew.order.map((run) => run.incidentId)).size).toBe(4)
  expect(crew.order).toHaveLength(4)
})

test('while storms of warnings hold every slot that they may, a critical incident of a new type is claimed at once', async () => {
  const [disk, host] = types()
  const [lag, oom] = types()
  for (const type of [disk, host, lag]) for (let n = 0; n < 4; n += 1) await opened(type)
  const work = Promise.withResolvers<void>()
  const { crew, tick, working, ended } = queue(async () => {
    await work.promise
    return { end: 'resolved' }
  })
  await working(async () => {
    await tick()
    await eventually('two leaders to be at work', async () => crew.order.length === 2)
    const critical = await openedIncident(database.db, { labels: { incident_type: oom }, severity: 'critical' })
    await tick()
    await eventually('the critical one to be claimed', async () => crew.order.at(-1)?.incidentId === critical)
    work.resolve()
    await eventually('all to have been claimed', async () => crew.order.length === 13)
    await Promise.all([disk, host, lag, oom].map(ended))
  })
})

test('a run that ends gives its slot to the next type at once, without a tick', async () => {
  const [disk, host] = types()
  const [lag] = types()
  for (const type of [disk, host, lag]) await opened(type)
  const ends = new Map<string, PromiseWithResolvers<void>>()
  const { crew, tick, working, ended } = queue(async ({ incidentId }) => {
    ends.set(incidentId, Promise.withResolvers<void>())
    await ends.get(incidentId)?.promise
    return { end: 'escalated' }
  })
  await working(async () => {
    await tick()
    await eventually('two leaders to be at work', async () => ends.size === 2)
    ends.get(crew.order[0]?.incidentId ?? '')?.resolve()
    await eventually('the third type to be at work', async () => ends.size === 3)
    for (const end of ends.values()) end.resolve()
    await Promise.all([disk, host, lag].map(ended))
  })
})

test('a critical incident does not wait for a leader that is a warning, and the warnings of its type do', async () => {
  const [disk] = types()
  await opened(disk)
  const work = Promise.withResolvers<void>()
  const { crew, tick, working, ended } = queue(async () => {
    await work.promise
    return { end: 'resolved' }
  })
  await working(async () => {
    await tick()
    await eventually('the leader to be at work', async () => crew.order.length === 1)
    await opened(disk)
    const critical = await openedIncident(database.db, { labels: { incident_type: disk }, severity: 'critical' })
    await tick()
    await eventually('the critical one to be claimed', async () => crew.order.length === 2)
    expect(crew.order[1]).toMatchObject({ incidentId: critical, role: 'follower' })
    work.resolve()
    await ended(disk)
  })
  expect(crew.order).toHaveLength(3)
})

test('a paused agent takes nothing, and everything when it continues', async () => {
  const [disk] = types()
  const incidentId = await opened(disk)
  await sql`insert into platform_config (key, value) values ('agent.paused', 'true')`.execute(database.owner)
  const { crew, tick, working, ended } = queue(async () => ({ end: 'resolved' }))
  await working(async () => {
    expect(await tick()).toEqual({ groups: 0, rewoken: 0 })
    const row = await database.db.selectFrom('incident').selectAll().where('id', '=', incidentId).executeTakeFirst()
    expect(row).toMatchObject({ status: 'open', groupId: null })
    await sql`delete from platform_config`.execute(database.owner)
    expect(await tick()).toMatchObject({ groups: 1 })
    await ended(disk)
  })
  expect(crew.order.map((run) => run.incidentId)).toEqual([incidentId])
})

test('a tick wakes the run whose decision was recorded and never read, and ignores a run that is gone', async () => {
  const [disk, host] = types()
  const [waiting, gone] = [await opened(disk), await opened(host)]
  const { activities, tick, working, crew } = queue(async () => ({ end: 'resolved', park: Promise.resolve() }))
  const { act } = activities
  // It would look at the row by itself in an hour.
  activities.act = async (place) => ({ ...(await act(place)), expiresInMs: 3_600_000 }) as never
  await working(async () => {
    await tick()
    await eventually('both to wait', async () => {
      const rows = await database.db
        .selectFrom('incident')
        .select('status')
        .where('id', 'in', [waiting, gone])
        .execute()
      return rows.every((row) => row.status === 'awaiting_approval')
    })
    await temporal.client.workflow.getHandle(`investigate:${gone}:1`).terminate('the worker of the run is gone')
    await decidedLongAgo(waiting)
    await decidedLongAgo(gone)
    expect(await tick()).toMatchObject({ rewoken: 2 })
    await temporal.client.workflow.getHandle(`investigate:${waiting}:1`).result()
  })
  expect(crew.order.map((run) => run.incidentId).sort()).toEqual([waiting, gone].sort())
  const row = await database.db.selectFrom('incident').select('status').where('id', '=', waiting).executeTakeFirst()
  expect(row?.status).toBe('resolved')
})

async function decidedLongAgo(incidentId: string): Promise<void> {
  await database.db.transaction().execute((trx) =>
    requestApproval(trx, {
      incidentId,
      attempt: 1,
      turn: 1,
      callId: 'c1_0',
      tool: 'execute_migration',
      args: {},
      targets: [],
      reason: 'the host is dead',
      actionDigest: `digest of ${incidentId}`,
      stateFingerprint: 'state',
      risk: 'high',
      reversible: true,
      required: 1,
      dryRun: { possible: true, summary: 'start 3 VMs', details: {} },
      expirySeconds: 600,
      stepKey: `${incidentId}:ask`,
      replaces: null,
      actor: 'agent:incident-investigator',
    }),
  )
  await sql`update approval set status = 'approved', decided_at = nightshift_now() - interval '2 minutes'
    where incident_id = ${incidentId}`.execute(database.owner)
}
