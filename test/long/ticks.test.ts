import { randomBytes } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { ScheduleOverlapPolicy } from '@temporalio/client'
import { queueActivities } from '../../activities/queue.ts'
import { openedIncident, useDatabase } from '../support/database.ts'
import { scriptedGroup } from '../support/scripted-run.ts'
import { newTaskQueue, useTemporal } from '../support/temporal.ts'

const database = useDatabase()
const temporal = useTemporal({ cached: 100 })

test('a hundred manual ticks at once and a second Schedule with other arguments start each incident once', async () => {
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
