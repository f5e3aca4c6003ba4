import type { Client, WorkflowHandle } from '@temporalio/client'
import { stampQueue } from '../../db/incidents/queue.ts'
import type { InvestigateIncident } from '../../workflows/investigate.ts'
import { approve, cancelInvestigation, decided, deny } from '../../workflows/outcome.ts'
import { openedIncident, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import {
  ask,
  calls,
  hourMs,
  investigation,
  type RunScript,
  scriptedGroup,
  scriptedRun,
} from '../support/scripted-run.ts'
import type { Activities } from '../support/temporal.ts'

type Run = WorkflowHandle<typeof InvestigateIncident>

/** One thing that production does, played so that its history can be kept. */
export type Scenario = {
  name: string
  activities(database: TestDatabase): Activities
  play(client: Client, taskQueue: string, database: TestDatabase): Promise<WorkflowHandle>
}

const parked = (run: Run) =>
  eventually('the run to wait', async () => (await run.describe()).searchAttributes.Status?.[0] === 'awaiting_approval')

function run(
  name: string,
  script: () => RunScript,
  meanwhile: (run: Run) => Promise<unknown> = async () => {},
): Scenario {
  return {
    name,
    activities: () => scriptedRun(script()).activities,
    async play(client, taskQueue) {
      const handle = await client.workflow.start<typeof InvestigateIncident>('InvestigateIncident', {
        taskQueue,
        workflowId: `investigate:${name}:1`,
        args: [investigation(name)],
      })
      await meanwhile(handle)
      await handle.result()
      return handle
    },
  }
}

const oneApproval = (): RunScript => ({
  think: [calls('get_host', 'execute_migration'), { kind: 'closed' }],
  act: [{ kind: 'next' }, ask('apr_1', hourMs), { kind: 'verify' }],
})

export const scenarios: Scenario[] = [
  run('resolved-after-a-write', () => ({
    think: [calls('get_shard', 'converge_shard'), { kind: 'correction' }, calls('resolve_incident')],
    act: [{ kind: 'next' }, { kind: 'verify' }, { kind: 'closed' }],
  })),
  run('approved-by-signal', oneApproval, async (handle) => {
    await parked(handle)
    await handle.signal(approve, { token: 'tok_1', approvalId: 'apr_1' })
  }),
  run(
    'denied',
    () => ({ ...oneApproval(), readDecision: ['denied'] }),
    async (handle) => {
      await parked(handle)
      await handle.signal(deny, { token: 'tok_1' })
    },
  ),
  run(
    'withdrawn',
    () => ({ ...oneApproval(), readDecision: ['withdrawn'] }),
    async (handle) => {
      await parked(handle)
      await handle.signal(decided)
    },
  ),
  run('expired', () => ({ think: [calls('execute_migration')], act: [ask('apr_1', 300)], readDecision: ['expired'] })),
  run('cancelled-while-waiting', oneApproval, async (handle) => {
    await parked(handle)
    await handle.signal(cancelInvestigation)
  }),
  {
    name: 'group-of-four',
    activities: ({ db }) => scriptedGroup(db, async () => ({ end: 'resolved' })).activities,
    async play(client, taskQueue, { db }) {
      for (let index = 0; index < 4; index += 1) {
        await openedIncident(db, { labels: { incident_type: 'disk_pressure' } })
      }
      await stampQueue(db, { incidents: 3, critical: 0, questions: 2 })
      const handle = await client.workflow.start('InvestigateIncidentGroup', {
        taskQueue,
        workflowId: 'group:disk_pressure',
        args: ['disk_pressure'],
      })
      await handle.result()
      return handle
    },
  },
  {
    name: 'tick',
    activities: () => ({
      stampQueue: async () => ['disk_pressure', 'host_down'],
      wakeGroup: async () => {},
      rewakeDecisions: async () => 1,
    }),
    async play(client, taskQueue) {
      const handle = await client.workflow.start('ProcessIncidentQueue', { taskQueue, workflowId: 'tick', args: [] })
      await handle.result()
      return handle
    },
  },
]
