import { proxyActivities, workflowInfo } from '@temporalio/workflow'

export * from '../workflows/index.ts'

type Bare = { bareThink(): Promise<null>; bareAct(): Promise<null> }

/**
 * Measures turns that do nothing: each has one activity on the model's queue and one on the main
 * queue. Returns the duration of each turn.
 */
export async function BareTurns(turns: number): Promise<number[]> {
  const options = { startToCloseTimeout: '10s' } as const
  const { bareAct } = proxyActivities<Bare>(options)
  const { bareThink } = proxyActivities<Bare>({ ...options, taskQueue: `${workflowInfo().taskQueue}-llm` })
  const times: number[] = []
  for (let turn = 0; turn < turns; turn += 1) {
    const startedAt = Date.now()
    await bareThink()
    await bareAct()
    times.push(Date.now() - startedAt)
  }
  return times
}
