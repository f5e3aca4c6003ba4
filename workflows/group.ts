import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common'
import {
  condition,
  continueAsNew,
  ParentClosePolicy,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  startChild,
  WorkflowIdReusePolicy,
  workflowInfo,
} from '@temporalio/workflow'
import type { GroupActivities, GroupPlan } from '../activities/queue.ts'
import { InvestigateIncident } from './investigate.ts'
import { report, wake } from './messages.ts'

const { planGroup } = proxyActivities<GroupActivities>({
  startToCloseTimeout: '10s',
  scheduleToCloseTimeout: '1h',
  retry: { initialInterval: '500ms', maximumInterval: '10s' },
})

/** A lost report costs this long: then the group looks at the rows by itself. */
const lookAgainMs = 30_000

/**
 * One per incident type. The first incident is the leader; when it resolves, the rest run as followers with its hint, a
 * limited number at a time; when it does not, or waits for a person too long, they run without. Everything is read from rows
 * before each step, so a lost signal costs half a minute and the group may start afresh at any time. Children outlive it.
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
      await startInvestigation(type, plan.groupId, start)
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

async function startInvestigation(type: string, groupId: string, start: GroupPlan['start'][number]): Promise<void> {
  const { incidentId, attempt, role } = start
  try {
    await startChild(InvestigateIncident, {
      workflowId: `investigate:${incidentId}:${attempt}`,
      args: [{ incidentId, attempt, role, groupId, group: workflowInfo().workflowId }],
      // The rows say whether this attempt is still to be made: a run of its name that ended by itself, started by anybody, must not stand
      // in its way.
      workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
      parentClosePolicy: ParentClosePolicy.ABANDON,
      staticSummary: `${type}: ${role}`,
    })
  } catch (error) {
    // It runs already, or this attempt has ended: either way the rows tell the rest.
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
  }
}
