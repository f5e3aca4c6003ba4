import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import type { WorkflowHandle } from '@temporalio/client'
import type { InvestigateIncident } from '../../workflows/investigate.ts'
import { approve, cancelInvestigation, type TurnOutcome } from '../../workflows/outcome.ts'
import type { InvestigationInput } from '../../workflows/run.ts'
import { eventually } from '../support/directory.ts'
import { calls, hourMs, investigation, type RunScript, scriptedRun } from '../support/scripted-run.ts'
import { useTemporal } from '../support/temporal.ts'

// Temporal asks for a fresh run after this few events, which a real one reaches after hundreds of
// turns.
const temporal = useTemporal({ continueAsNewAfterEvents: 30, cached: 10 })

type Run = WorkflowHandle<typeof InvestigateIncident>
let incidents = 0

async function played(script: RunScript, meanwhile: (run: Run, did: string[]) => Promise<unknown> = async () => {}) {
  const { activities, did } = scriptedRun(script)
  incidents += 1
  return await temporal.working(activities, async (taskQueue) => {
    const workflowId = `investigate:inc_${incidents}:1`
    const run = await temporal.client.workflow.start<typeof InvestigateIncident>('InvestigateIncident', {
      taskQueue,
      workflowId,
      args: [investigation()],
    })
    await meanwhile(run, did)
    await run.result()
    const last = temporal.client.workflow.getHandle(workflowId)
    const { runId } = await last.describe()
    const [started] = (await last.fetchHistory()).events ?? []
    const [given] = started?.workflowExecutionStartedEventAttributes?.input?.payloads ?? []
    const { resume } = JSON.parse(Buffer.from(given?.data ?? '').toString()) as InvestigationInput
    return { did, afresh: runId !== run.firstExecutionRunId, resume }
  })
}

test('a long run continues as new with the next turn, and ends at the limit of turns', async () => {
  const { did, afresh } = await played({
    think: Array.from({ length: 30 }, () => calls('get_node')),
    assembleContext: async () => ({ maxTurns: 12, timeBudgetMs: hourMs }),
  })
  expect(afresh).toBe(true)
  const turns = Array.from({ length: 12 }, (_, index) => `think ${index + 1}`)
  expect(did.filter((step) => step.startsWith('think'))).toEqual(turns)
  expect(did.filter((step) => step === 'claim' || step === 'context')).toEqual(['claim', 'context'])
  expect(did.slice(-2)).toEqual(['escalate TURN_LIMIT', 'closing'])
})

test('a continued run keeps its corrections', async () => {
  const correction: TurnOutcome = { kind: 'correction' }
  const { did, afresh } = await played({
    think: Array.from({ length: 30 }, (_, index) => (index % 2 === 0 ? correction : calls('get_node'))),
  })
  expect(afresh).toBe(true)
  expect(did.slice(-3)).toEqual(['think 11', 'escalate CORRECTION_LIMIT', 'closing'])
})

test('a continued run keeps its used time', async () => {
  const took: number[] = []
  const { afresh, resume } = await played({
    think: async () => {
      const began = performance.now()
      await sleep(50)
      took.push(performance.now() - began)
      return took.length > 6 ? { kind: 'closed' } : calls('get_node')
    },
  })
  expect(afresh).toBe(true)
  const { turn, workedMs } = resume!.progress
  expect(turn).toBeGreaterThan(1)
  // What a run counts is what its model took, and what the machine took beyond that. Two clocks, of
  // a millisecond each.
  const counted = took.slice(0, turn).reduce((sum, each) => sum + Math.floor(each) - 2, 0)
  expect(workedMs).toBeGreaterThanOrEqual(counted)
})

test('a stop during the ruling on a decision is not lost with the old run', async () => {
  const judging = Promise.withResolvers<void>()
  let judged = false
  const { did } = await played(
    {
      think: async () => calls('get_node'),
      decide: async () => {
        judged = true
        await judging.promise
        return { outcome: 'refused', status: null, message: null }
      },
    },
    async (run) => {
      await run.signal(approve, { token: 'tok_1' })
      // The run wants to go on afresh, and waits for its handler: it has nothing else under way.
      await eventually('the run to pause', async () => {
        const { pendingActivities, pendingWorkflowTask } = (await run.describe()).raw
        return !pendingWorkflowTask && pendingActivities?.length === 1 && judged
      })
      await run.signal(cancelInvestigation)
      judging.resolve()
    },
  )
  expect(did.slice(-2)).toEqual(['end early: cancel', 'closing'])
})
