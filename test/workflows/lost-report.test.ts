import { expect, test } from '@jest/globals'
import { stampQueue } from '../../db/incidents/queue.ts'
import { openedIncident, useDatabase } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { close, hourMs, scriptedGroup } from '../support/scripted-run.ts'
import { useTemporal } from '../support/temporal.ts'

const database = useDatabase()
const temporal = useTemporal({ timeSkipping: true, cached: 10 })

test('a group that gets no report reads the rows by itself within half a minute', async () => {
  const incidents: string[] = []
  for (let index = 0; index < 3; index += 1) {
    incidents.push(await openedIncident(database.db, { labels: { incident_type: 'disk_pressure' } }))
  }
  await stampQueue(database.db, { incidents: 3, critical: 0, questions: 2 })
  const crew = scriptedGroup(database.db, async ({ role }) =>
    role === 'leader' ? { end: 'resolved', park: Promise.resolve() } : { end: 'resolved' },
  )
  // The leader waits for a person for a week, and reports nothing when somebody closes its
  // incident.
  const { act } = crew.activities
  crew.activities.act = async (place) => ({ ...(await act(place)), expiresInMs: 7 * 24 * hourMs }) as never
  const waits = await temporal.working(crew.activities, async (taskQueue) => {
    const group = await temporal.client.workflow.start('InvestigateIncidentGroup', {
      taskQueue,
      workflowId: 'group:disk_pressure',
      args: ['disk_pressure'],
    })
    const leader = temporal.client.workflow.getHandle(`investigate:${incidents[0]}:1`)
    await eventually('the leader to wait', async () => {
      const row = await database.db
        .selectFrom('incident')
        .select('status')
        .where('id', '=', incidents[0] as string)
        .executeTakeFirst()
      return row?.status === 'awaiting_approval'
    })
    await eventually('its report', async () => {
      const { events } = await group.fetchHistory()
      return events?.filter((event) => event.workflowExecutionSignaledEventAttributes).length === 2
    })
    await close(database.db, incidents[0] as string, 'resolved')
    await group.result()
    const { events } = await group.fetchHistory()
    await leader.terminate('the test is over')
    return (events ?? []).flatMap(({ timerStartedEventAttributes: timer }) => timer?.startToFireTimeout?.seconds ?? [])
  })
  expect(crew.order.slice(1).map((run) => run.hintFrom)).toEqual([incidents[0], incidents[0]])
  // No wait of the group is longer, whatever its rows said.
  expect(Math.max(...waits.map(Number))).toBe(30)
})
