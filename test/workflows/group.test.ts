import { randomBytes } from 'node:crypto'
import { expect, test } from '@jest/globals'
import type { GroupPlan } from '../../activities/queue.ts'
import { queueActivities } from '../../activities/queue.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { stampQueue } from '../../db/incidents/queue.ts'
import { wake } from '../../workflows/outcome.ts'
import { openedIncident, storeSetting, useDatabase } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { type Course, type Investigated, scriptedGroup } from '../support/scripted-run.ts'
import { newTaskQueue, useTemporal } from '../support/temporal.ts'

const database = useDatabase()
const temporal = useTemporal({ cached: 0 })

/**
 * Incidents of a type of their own, stamped by the queue, and what one tick does for their group.
 */
async function queued(count: number) {
  const type = `disk_${randomBytes(4).toString('hex')}`
  const taskQueue = newTaskQueue()
  const more = async (further: number) => {
    const incidents: string[] = []
    for (let index = 0; index < further; index += 1) {
      incidents.push(await openedIncident(database.db, { labels: { incident_type: type } }))
    }
    await stampQueue(database.db, { incidents: 100, critical: 0, questions: 2 })
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

const set = (key: string, value: string) => storeSetting(database.db, key, value)

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

/**
 * Resolves for everybody once this many are at work and the group, woken again, has seen that and
 * started no more.
 */
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

test('one incident leads, and when it is resolved the rest follow with its hint, five at a time', async () => {
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

test('the rest follow two at a time, if a row of platform_config says so', async () => {
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

test('if the leader escalates, the rest start without a hint', async () => {
  const { type, taskQueue, tick } = await queued(3)
  const crew = scriptedGroup(database.db, leaderIs({ end: 'escalated' }))
  await temporal.working(crew.activities, async () => (await tick()).result(), taskQueue)
  expect((await statuses(type)).sort()).toEqual(['escalated', 'resolved', 'resolved'])
  expect(crew.order.slice(1).map(({ role, hintFrom }) => ({ role, hintFrom }))).toEqual(
    Array(2).fill({ role: 'follower', hintFrom: null }),
  )
})

test('if the leader waits too long for a person, the rest start without its hint', async () => {
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
      expect((await statuses(type)).filter((status) => status === 'awaiting_approval').length).toBeGreaterThanOrEqual(3)
      person.resolve()
      // The group may have ended by now: runs that wait for a person outlive it.
      await eventually('all ends', async () => (await statuses(type)).every((status) => status === 'resolved'))
    },
    taskQueue,
  )
  expect(crew.order).toHaveLength(6)
})

test('late incidents join the group that is at work', async () => {
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

test('a terminated group is started again by the next tick, and nothing is investigated twice', async () => {
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

test('an investigation that was terminated before it began is started again, under a new number', async () => {
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
