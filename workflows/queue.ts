import { proxyActivities } from '@temporalio/workflow'
import type { QueueActivities } from '../activities/queue.ts'

const { stampQueue, wakeGroup, rewakeDecisions } = proxyActivities<QueueActivities>({
  startToCloseTimeout: '10s',
  scheduleToCloseTimeout: '45s',
  retry: { initialInterval: '500ms', maximumInterval: '5s' },
})

/**
 * One tick of the queue. It stamps groups on what is unassigned, wakes the groups that have a slot, wakes again what was
 * missed, and returns: it waits for nobody, or one approval would stop the queue.
 */
export async function ProcessIncidentQueue(): Promise<{ groups: number; rewoken: number }> {
  const types = await stampQueue()
  for (const type of types) await wakeGroup.executeWithOptions({ summary: type }, [type])
  return { groups: types.length, rewoken: await rewakeDecisions() }
}
