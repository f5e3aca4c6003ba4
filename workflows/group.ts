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

/** A lost report costs this long: then the group looks at the rows by itself. */
const lookAgainMs = 30_000

/**
 * A group: one per incident type. The first incident is the leader; when it resolves, the rest run
 * as followers with its hint, a limited number at a time; when it does not, or waits for a person
 * too long, they run without. Everything is read from rows before each step, so a lost signal costs
 * half a minute and the group may start again at any time. Children outlive it.
 */
export async function InvestigateIncidentGroup(type: string): Promise<void> {
  let woken = true
  // Started and not yet claimed: the rows still call them open.
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
      // A wake may have come in while the rows were read: only silence ends the group.
      if (!woken) return
      continue
    }
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof InvestigateIncidentGroup>(type)
    const signalled = await condition(() => woken, Math.min(plan.lookAgainMs ?? lookAgainMs, lookAgainMs))
    // What neither claimed nor reported in this long never began: it may be started again.
    if (!signalled) starting.clear()
  }
}

/**
 * Since 0.2 an attempt whose number Temporal has seen does not begin under it again, unless nothing
 * came of it then.
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

/** False where an execution of its name stands in the way: the rows tell the rest. */
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
 * One tick of the queue. It stamps groups on the unassigned, wakes groups with a slot, wakes again
 * what was missed, and returns: waiting for anybody would let one approval stop the queue.
 */
export async function ProcessIncidentQueue(): Promise<{ groups: number; rewoken: number }> {
  const types = await stampQueue()
  for (const type of types) await wakeGroup.executeWithOptions({ summary: type }, [type])
  return { groups: types.length, rewoken: await rewakeDecisions() }
}
