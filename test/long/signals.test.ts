import { randomBytes } from 'node:crypto'
import { expect, test } from '@jest/globals'
import type { InvestigateIncident } from '../../workflows/investigate.ts'
import { alertResolved, type DecisionStatus } from '../../workflows/outcome.ts'
import { signalsPerRun } from '../../workflows/run.ts'
import { eventually } from '../support/directory.ts'
import { ask, calls, hourMs, investigation, scriptedRun } from '../support/scripted-run.ts'
import { newTaskQueue, useTemporal } from '../support/temporal.ts'

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
})
