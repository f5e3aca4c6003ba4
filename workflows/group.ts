import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common'
import {
  condition,
  continueAsNew,
  ParentClosePolicy,
  patched,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  startChild,
  type WorkflowIdReusePolicy,
  workflowInfo,
} from '@temporalio/workflow'
import type { GroupActivities, GroupPlan, QueueActivities } from '../activities/queue.ts'
import { investigationId } from '../domain/step-key.ts'
import { InvestigateIncident } from './investigate.ts'
import { report, wake } from './outcome.ts'

const { planGroup, freeAttempt } = proxyActivities<GroupActivities & Pick<QueueActivities, 'freeAttempt'>>({
  startToCloseTimeout: '10s',
  scheduleToCloseTimeout: '1h',
  retry: { initialInterval: '500ms', maximumInterval: '10s' },
})

/**
 * Milliseconds after which the group reads its rows without a signal, because a signal may be lost.
 */
const lookAgainMs = 30_000

/**
 * Runs a group of investigations, one group per incident type. The first incident is the leader.
 * When the leader resolves, the other incidents run as followers with the leader's hint, a limited
 * number at a time. If the leader ends without a resolution or waits too long for a person, they
 * run without a hint. The group reads everything from rows before each step, so that a lost signal
 * delays work by at most half a minute and the group may restart at any time. The runs of the
 * incidents continue after the group ends.
 */
export async function InvestigateIncidentGroup(type: string): Promise<void> {
  let woken = true
  // Incidents whose run was started but has not claimed the row yet. The rows still list these
  // incidents as open.
  const starting = new Map<string, number>()
  setHandler(wake, () => {
    woken = true
  })
  setHandler(report, (incidentId) => {
    starting.delete(incidentId)
    woken = true
  })

  for (;;) {
    woken = false
    const plan = await planGroup(type, [...starting.keys()])
    for (const incidentId of plan.claimed) starting.delete(incidentId)
    for (const start of plan.start) {
      starting.set(start.incidentId, start.attempt)
      if ((await startInvestigation(type, plan.groupId, start)) !== 'skipped') continue
      starting.delete(start.incidentId)
      woken = true
    }
    setCurrentDetails(`${plan.investigating} at work, ${starting.size} starting, ${plan.queued} queued`)
    if (plan.idle && starting.size === 0) {
      // Ends the group only if no wake came while the rows were read.
      if (!woken) return
      continue
    }
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof InvestigateIncidentGroup>(type)
    const signalled = await condition(() => woken, Math.min(plan.lookAgainMs ?? lookAgainMs, lookAgainMs))
    // Forgets incidents that were started but whose runs neither claimed nor reported before the
    // wait ended, so that they may be started again.
    if (!signalled) starting.clear()
  }
}

/**
 * Name of the patch of 0.2. Since 0.2, an attempt number that Temporal already knows is not started
 * again, unless nothing happened under that number.
 */
const freshAttempts = 'fresh-attempts'

type Start = GroupPlan['start'][number]

async function startInvestigation(type: string, groupId: string, start: Start): Promise<'skipped' | 'left'> {
  const isFresh = patched(freshAttempts)
  const begun = await startRun(type, groupId, start, isFresh ? 'REJECT_DUPLICATE' : 'ALLOW_DUPLICATE')
  if (begun || !isFresh) return 'left'
  const { incidentId, attempt } = start
  const free = await freeAttempt.executeWithOptions({ summary: `attempt ${attempt}` }, [incidentId, attempt])
  if (free === 'start') await startRun(type, groupId, start, 'ALLOW_DUPLICATE')
  return free === 'skipped' ? 'skipped' : 'left'
}

/** Returns false if Temporal already has an execution with this name; rows show what it did. */
async function startRun(
  type: string,
  groupId: string,
  { incidentId, attempt, role }: Start,
  workflowIdReusePolicy: WorkflowIdReusePolicy,
): Promise<boolean> {
  try {
    await startChild(InvestigateIncident, {
      workflowId: investigationId({ incidentId, attempt }),
      args: [{ incidentId, attempt, role, groupId, group: workflowInfo().workflowId }],
      workflowIdReusePolicy,
      parentClosePolicy: ParentClosePolicy.ABANDON,
      staticSummary: `${type}: ${role}`,
    })
    return true
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
    return false
  }
}

const { stampQueue, wakeGroup, rewakeDecisions } = proxyActivities<QueueActivities>({
  startToCloseTimeout: '10s',
  scheduleToCloseTimeout: '45s',
  retry: { initialInterval: '500ms', maximumInterval: '5s' },
})

/**
 * Runs one tick of the queue: assigns groups to incidents without a group, wakes groups with a free
 * slot, and repeats missed wakes. Does not wait for the runs of the incidents, because one run that
 * waits for an approval would block the queue.
 */
export async function ProcessIncidentQueue(): Promise<{ groups: number; rewoken: number }> {
  const types = await stampQueue()
  for (const type of types) await wakeGroup.executeWithOptions({ summary: type }, [type])
  return { groups: types.length, rewoken: await rewakeDecisions() }
}
