import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { Client, Connection, ScheduleOverlapPolicy } from '@temporalio/client'
import pino from 'pino'
import { queueScheduleId } from '../../domain/step-key.ts'
import { type Runs, temporalRuns } from '../../effects/runs.ts'
import { registerNamespace, temporalAddress } from '../support/broker.ts'
import { eventually } from '../support/directory.ts'

const log = pino({ level: 'silent' })
const run = { incidentId: 'inc_00000000000000000000000001', attempt: 1 }
let client: Client
let runs: Runs

beforeAll(async () => {
  const connection = Connection.lazy({ address: await temporalAddress() })
  // Its own: the queue's Schedule is one in a namespace.
  const namespace = `runs-${process.pid}`
  await registerNamespace(connection, namespace)
  client = new Client({ connection, namespace })
  runs = temporalRuns(client, log)
  await eventually('its namespace', async () => (await runs.queue?.(5_000)) !== null)
})
afterAll(() => client.connection.close())

test('a run gets its message, and a run that does not exist is known to be gone', async () => {
  const handle = await client.workflow.start('InvestigateIncident', {
    workflowId: `investigate:${run.incidentId}:1`,
    taskQueue: 'nobody-works-here',
  })
  expect(await runs.tell(run, 'decided', 2_000)).toBe('told')
  expect(await runs.tell({ ...run, attempt: 2 }, 'cancelInvestigation', 2_000)).toBe('gone')
  await handle.terminate()
  expect(await runs.isReachable(1_000)).toBe(true)
})

test('the queue ticks when it is triggered', async () => {
  const schedule = await client.schedule.create({
    scheduleId: queueScheduleId,
    spec: { intervals: [{ every: '1 hour' }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP },
    action: { type: 'startWorkflow', workflowType: 'ProcessIncidentQueue', taskQueue: 'nobody-works-here' },
  })
  for (let n = 0; n < 20; n++) runs.triggerQueue()
  const ticks = await eventually('a tick', async () => (await schedule.describe()).info.recentActions.length)
  await schedule.delete()
  expect(ticks).toBe(1)
})

test('a Temporal that is down is reported as unreachable, in time', async () => {
  const lost = new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) })
  expect(await temporalRuns(lost, log).tell(run, 'decided', 500)).toBe('unreached')
  await lost.connection.close()
})
