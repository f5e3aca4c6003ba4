import { type Client, ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client'

export const scheduleId = 'process-incident-queue'

/**
 * Makes the queue's Schedule what it should be: every interval, never two at once, and after an outage the ticks of two
 * minutes at most. With the agent off it is paused, not deleted: its history says so.
 */
export async function ensureSchedule(
  client: Client,
  options: { taskQueue: string; intervalSeconds: number; enabled: boolean },
): Promise<void> {
  const spec = { intervals: [{ every: `${options.intervalSeconds} seconds` as const }] }
  const policies = { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '2 minutes' as const, pauseOnFailure: false }
  const action = {
    type: 'startWorkflow' as const,
    workflowType: 'ProcessIncidentQueue',
    taskQueue: options.taskQueue,
    args: [],
    workflowId: scheduleId,
    workflowRunTimeout: '5 minutes' as const,
    staticSummary: 'one tick of the queue',
  }
  const state = { paused: !options.enabled, note: options.enabled ? 'agent enabled' : 'AGENT_ENABLED is false' }
  try {
    await client.schedule.create({ scheduleId, spec, policies, action, state })
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error
    await client.schedule
      .getHandle(scheduleId)
      .update((previous) => ({ ...previous, spec, policies, action, state: { ...previous.state, ...state } }))
  }
}
