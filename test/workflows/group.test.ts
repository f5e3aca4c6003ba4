import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { GroupPlan } from '../../activities/queue.ts'
import { queueActivities } from '../../activities/queue.ts'
import { requestApproval } from '../../db/approvals/ask.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { stampQueue } from '../../db/incidents/queue.ts'
import type { ProcessIncidentQueue } from '../../workflows/group.ts'
import { wake } from '../../workflows/outcome.ts'
import { openedIncident, useDatabase } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { type Course, type Investigated, scriptedGroup } from '../support/scripted-run.ts'
import { newTaskQueue, useTemporal } from '../support/temporal.ts'

describe('group', () => {
  const database = useDatabase()
  const temporal = useTemporal({ cached: 0 })

  /** Incidents of a type of their own, stamped by the queue, and what one tick does for their group. */
  async function queued(count: number) {
    const type = `disk_${randomBytes(4).toString('hex')}`
    const taskQueue = newTaskQueue()
    const more = async (further: number) => {
      const incidents: string[] = []
      for (let index = 0; index < further; index += 1) {
        incidents.push(await openedIncident(database.db, { labels: { incident_type: type } }))
      }
      await stampQueue(database.db, 100)
      return incidents
    }
    const incidents = await more(count)
    const tick = () =>
      temporal.client.workflow.signalWithStart('InvestigateIncidentGroup', {
        workflowId: `group:${type}`,
        taskQueue,
        args: [type],
        signal: wake,
        signalArgs: [],
      })
    return { type, taskQueue, incidents, more, tick }
  }

  const set = (key: string, value: string) =>
    database.db
      .insertInto('platformConfig')
      .values({ key, value } as never)
      .execute()

  const statuses = async (type: string) =>
    (await database.db.selectFrom('incident').select('status').where('type', '=', type).execute()).map(
      (row) => row.status,
    )

  const leaderIs =
    (leader: Course, follower: Course = { end: 'resolved' }) =>
    async (run: Investigated) =>
      run.role === 'leader' ? leader : follower

  /** What the group planned each time it looked at its rows. */
  function plansOf(crew: ReturnType<typeof scriptedGroup>): GroupPlan[] {
    const plans: GroupPlan[] = []
    const { planGroup } = crew.activities
    crew.activities.planGroup = async (...given) => {
      const plan = await planGroup(...given)
      plans.push(plan)
      return plan
    }
    return plans
  }

  /** Resolves for everybody once this many are at work and the group, woken again, has seen that and started no more. */
  function meeting(count: number, tick: () => Promise<unknown>, plans: () => GroupPlan[]) {
    const complete = Promise.withResolvers<void>()
    let present = 0
    return async () => {
      present += 1
      if (present === count) {
        await tick()
        await eventually('the group to see them', () =>
          plans().some(({ investigating, start }) => investigating >= count && start.length === 0),
        )
        complete.resolve()
      }
      await complete.promise
    }
  }

  test('one leads, and when it has resolved its incident the rest follow with its hint, five at a time', async () => {
    const { type, taskQueue, incidents, tick } = await queued(9)
    const leading = Promise.withResolvers<void>()
    const five = meeting(5, tick, () => plans)
    const crew = scriptedGroup(database.db, async ({ role }) => {
      await (role === 'leader' ? leading.promise : five())
      return { end: 'resolved' }
    })
    const plans = plansOf(crew)
    await temporal.working(
      crew.activities,
      async () => {
        const group = await tick()
        await eventually('the leader', async () => crew.order.length > 0)
        await tick()
        await eventually('the group to leave the rest in the queue', () =>
          plans.some(({ investigating, queued, start }) => investigating === 1 && queued === 8 && start.length === 0),
        )
        expect(crew.order).toEqual([{ incidentId: incidents[0], role: 'leader', hintFrom: null }])
        leading.resolve()
        await group.result()
      },
      taskQueue,
    )
    expect(await statuses(type)).toEqual(Array(9).fill('resolved'))
    expect(crew.order).toHaveLength(9)
    expect(crew.order.slice(1).every((run) => run.role === 'follower' && run.hintFrom === incidents[0])).toBe(true)
    expect(crew.mostAtOnce).toBe(5)
  })

  test('two at a time, where a row of platform_config says so', async () => {
    const { type, taskQueue, tick } = await queued(7)
    await set(`agent.concurrency.${type}`, '2')
    const two = meeting(2, tick, () => plans)
    const crew = scriptedGroup(database.db, async ({ role }) => {
      if (role === 'follower') await two()
      return { end: 'resolved' }
    })
    const plans = plansOf(crew)
    await temporal.working(crew.activities, async () => (await tick()).result(), taskQueue)
    expect(crew.order).toHaveLength(7)
    expect(crew.mostAtOnce).toBe(2)
  })

  test('when the leader escalates, the rest start without a hint', async () => {
    const { type, taskQueue, tick } = await queued(3)
    const crew = scriptedGroup(database.db, leaderIs({ end: 'escalated' }))
    await temporal.working(crew.activities, async () => (await tick()).result(), taskQueue)
    expect((await statuses(type)).sort()).toEqual(['escalated', 'resolved', 'resolved'])
    expect(crew.order.slice(1).map(({ role, hintFrom }) => ({ role, hintFrom }))).toEqual(
      Array(2).fill({ role: 'follower', hintFrom: null }),
    )
  })

  test('when the leader waits for a person too long, the rest start without its hint', async () => {
    const { taskQueue, tick } = await queued(3)
    await set('agent.leader_wait', '3')
    const person = Promise.withResolvers<void>()
    const crew = scriptedGroup(database.db, leaderIs({ end: 'resolved', park: person.promise }))
    const plans = plansOf(crew)
    await temporal.working(
      crew.activities,
      async () => {
        const group = await tick()
        await eventually('the followers', async () => crew.order.length === 3)
        // Once at least it saw the leader wait, and set itself a time to look again.
        const held = plans.filter(({ lookAgainMs, start }) => lookAgainMs !== null && start.length === 0)
        expect(held.length).toBeGreaterThan(0)
        person.resolve()
        await group.result()
      },
      taskQueue,
    )
    expect(crew.order.map((run) => run.hintFrom)).toEqual([null, null, null])
  })

  test('a follower that waits for a person gives its place to the next', async () => {
    const { type, taskQueue, tick } = await queued(6)
    await set(`agent.concurrency.${type}`, '2')
    const person = Promise.withResolvers<void>()
    const crew = scriptedGroup(database.db, leaderIs({ end: 'resolved' }, { end: 'resolved', park: person.promise }))
    await temporal.working(
      crew.activities,
      async () => {
        await tick()
        await eventually('all to have begun', async () => crew.order.length === 6)
        expect((await statuses(type)).filter((status) => status === 'awaiting_approval').length).toBeGreaterThanOrEqual(
          3,
        )
        person.resolve()
        // The group may have ended by now: runs that wait for a person outlive it.
        await eventually('all ends', async () => (await statuses(type)).every((status) => status === 'resolved'))
      },
      taskQueue,
    )
    expect(crew.order).toHaveLength(6)
  })

  test('incidents that arrive late join the group that is at work', async () => {
    const { type, taskQueue, more, tick, incidents } = await queued(1)
    const leading = Promise.withResolvers<void>()
    const crew = scriptedGroup(database.db, async ({ role }) => {
      if (role === 'leader') await leading.promise
      return { end: 'resolved' }
    })
    await temporal.working(
      crew.activities,
      async () => {
        const group = await tick()
        await eventually('the leader', async () => crew.order.length > 0)
        await more(2)
        await tick()
        leading.resolve()
        await group.result()
      },
      taskQueue,
    )
    expect(await statuses(type)).toEqual(Array(3).fill('resolved'))
    expect(crew.order.map((run) => run.role)).toEqual(['leader', 'follower', 'follower'])
    expect(crew.order[2]?.hintFrom).toBe(incidents[0])
  })

  test('a group that was terminated is started again by the next tick, and nothing is investigated twice', async () => {
    const { type, taskQueue, tick } = await queued(5)
    await set(`agent.concurrency.${type}`, '2')
    const following = Promise.withResolvers<void>()
    const crew = scriptedGroup(database.db, async ({ role }) => {
      if (role === 'follower') await following.promise
      return { end: 'resolved' }
    })
    await temporal.working(
      crew.activities,
      async () => {
        const first = await tick()
        await eventually('two followers', async () => crew.order.length === 3)
        await first.terminate('an operator')
        const second = await tick()
        following.resolve()
        await second.result()
      },
      taskQueue,
    )
    expect(await statuses(type)).toEqual(Array(5).fill('resolved'))
    expect(new Set(crew.order.map((run) => run.incidentId)).size).toBe(5)
    expect(crew.order).toHaveLength(5)
    expect(crew.order.filter((run) => run.role === 'leader')).toHaveLength(1)
  })

  test('an investigation that was terminated before it began is started again, under a number of its own', async () => {
    const { type, taskQueue, incidents, tick } = await queued(1)
    const crew = scriptedGroup(database.db, leaderIs({ end: 'resolved' }))
    const workflowId = `investigate:${incidents[0]}:1`
    const elsewhere = await temporal.client.workflow.start('InvestigateIncident', {
      taskQueue: newTaskQueue(),
      workflowId,
      args: [],
    })
    await elsewhere.terminate('an operator')
    const { freeAttempt } = queueActivities({ db: database.db, client: temporal.client, taskQueue, environment: {} })
    await temporal.working({ ...crew.activities, freeAttempt }, async () => (await tick()).result(), taskQueue)
    expect(await statuses(type)).toEqual(['resolved'])
    expect(await incidentById(database.db, incidents[0] ?? '')).toMatchObject({ attempt: 2 })
  })
})

describe('queue', () => {
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

  test('while storms of warnings hold every slot they may, a critical incident of a new type is claimed at once', async () => {
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

  test('a run that ends gives its slot to the next type at once: no tick has to come', async () => {
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

  test('a critical incident does not wait for a leader that is a warning; the warnings of its type do', async () => {
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

  test('a paused agent takes up nothing, and everything when it goes on', async () => {
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

  test('a tick wakes the run whose decision was recorded and never read, and minds no run that is gone', async () => {
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
})
