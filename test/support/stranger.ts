import { continueAsNew, proxyActivities } from '@temporalio/workflow'

/** A workflow of somebody else's: it calls activities of ours, by any name and with any input. */
export async function Stranger(taskQueue: string, activity: string, input: unknown[]): Promise<unknown> {
  return await calling(taskQueue, activity, input)
}

/** A run that claims an incident under its name, continues as new, and then calls one activity. */
export async function Continuing(
  taskQueue: string,
  claim: Record<string, unknown> | null,
  activity: string,
  input: unknown[],
): Promise<unknown> {
  if (!claim) return await calling(taskQueue, activity, input)
  await calling(taskQueue, 'claim', [claim])
  return await continueAsNew<typeof Continuing>(taskQueue, null, activity, input)
}

function calling(taskQueue: string, activity: string, input: unknown[]): Promise<unknown> {
  const activities = proxyActivities<Record<string, (...input: unknown[]) => Promise<unknown>>>({
    taskQueue,
    startToCloseTimeout: '10s',
    retry: { maximumAttempts: 1 },
  })
  return (activities[activity] as (...input: unknown[]) => Promise<unknown>)(...input)
}
