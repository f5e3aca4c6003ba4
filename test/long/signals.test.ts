import { randomBytes } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { ScheduleOverlapPolicy } from '@temporalio/client'
import { queueActivities } from '../../activities/queue.ts'
import { signalsPerRun } from '../../workflows/decision-queue.ts'
import type { InvestigateIncident } from '../../workflows/investigate.ts'
import { alertResolved, type DecisionStatus } from '../../workflows/outcome.ts'
import { simulateLives } from '../simulation/simulate-lives.ts'
import { openedIncident, useDatabase } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { ask, calls, hourMs, investigation, scriptedGroup, scriptedRun } from '../support/scripted-run.ts'
import { newTaskQueue, useTemporal } from '../support/temporal.ts'

describe('signals', () => {
  const temporal = useTemporal({ cached: 0 })

  test('a decision after five thousand signals is read from its row', async () => {
    let status: DecisionStatus = 'pending'
    const scripted = scriptedRun({
      think: [calls('execute_migration'), { kind: 'closed' }],
      act: [ask('apr_1', 7 * 24 * hourMs), { kind: 'verify' }],
      readDecision: async () => ({ status, remainingMs: 300 }),
      endEarly: async () => false,
      isStopWanted: async () => false,
    })
    const taskQueue = newTaskQueue()
    const run = await temporal.client.workflow.start<typeof InvestigateIncident>('InvestigateIncident', {
      taskQueue,
      workflowId: `investigate:inc_${randomBytes(4).toString('hex')}:1`,
      args: [investigation()],
    })
    for (let sent = 0; sent < signalsPerRun; sent += 500) {
      await Promise.all(Array.from({ length: 500 }, () => run.signal(alertResolved)))
    }
    await temporal.working(
      scripted.activities,
      async () => {
        const isParked = async () => (await run.describe()).searchAttributes.Status?.[0] === 'awaiting_approval'
        await eventually('the run to wait', isParked)
        status = 'approved'
        await run.result()
      },
      taskQueue,
      // Nothing cached would replay five thousand signals at every step.
      1,
    )
    expect(scripted.did).toContain('act 1.0 with apr_1')
  }, 400_000)
})

describe('ticks', () => {
  const database = useDatabase()
  const temporal = useTemporal({ cached: 100 })

  test('a hundred ticks by hand at once and a second Schedule with arguments of its own start each incident once', async () => {
    const types = ['disk', 'host', 'rack', 'link'].map((name) => `${name}_${randomBytes(4).toString('hex')}`)
    for (const type of [...types, ...types]) await openedIncident(database.db, { labels: { incident_type: type } })
    const taskQueue = newTaskQueue()
    const { client } = temporal
    const environment = { AGENT_MAX_CONCURRENT: '5' }
    const queue = queueActivities({ db: database.db, client, taskQueue, environment })
    const crew = scriptedGroup(database.db, async () => ({ end: 'resolved' }), queue)
    const second = await client.schedule.create({
      scheduleId: `second-${taskQueue}`,
      spec: { intervals: [{ every: '1 second' }] },
      action: {
        type: 'startWorkflow',
        workflowType: 'ProcessIncidentQueue',
        taskQueue,
        args: [{ groups: types }, 'all', -1],
      },
      policies: { overlap: ScheduleOverlapPolicy.ALLOW_ALL },
    })
    const work = async () => {
      await Promise.all(
        Array.from({ length: 100 }, (_, at) =>
          client.workflow.execute('ProcessIncidentQueue', {
            taskQueue,
            workflowId: `${taskQueue}-${at}`,
            args: [at] as never,
          }),
        ),
      )
      await second.trigger(ScheduleOverlapPolicy.ALLOW_ALL)
      await Promise.all(types.map((type) => client.workflow.getHandle(`group:${type}`).result()))
    }
    try {
      await temporal.working({ ...crew.activities, ...queue } as never, work, taskQueue)
    } finally {
      await second.delete()
    }
    expect(new Set(crew.order.map(({ incidentId }) => incidentId)).size).toBe(8)
    expect(crew.order).toHaveLength(8)
    expect(crew.order.filter(({ role }) => role === 'leader')).toHaveLength(4)
  })
})

describe('lives', () => {
  const seeds = Number(process.env.LIVES ?? 3_000)

  test('thousands of lives with hostile models, lost answers, crashes and races break no invariant', async () => {
    const simulate = await simulateLives(seeds)
    expect(simulate).toMatchObject({ seeds, broken: 0 })
    expect(simulate.effects).toBeGreaterThan(seeds / 2)
  }, 7_200_000)
})
