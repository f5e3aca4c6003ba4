import { eventsOf } from '../db/events.ts'
import { median, report } from './report.ts'
import { type Stage, stage } from './stage.ts'

const turns = 200

/**
 * What a turn with one tool call costs when model and tool answer at once, against a bare workflow that runs as many no-op
 * activities on the same server and the same kind of queues. Taken in turn, so that a drifting machine hits both.
 */
export async function turn(): Promise<void> {
  const scene = await stage({
    maxTurns: turns,
    model: (turn) => [{ tool: 'get_shard', arguments: { id: `shard-${turn}` } }],
    core: () => ({ id: 'shard', status: 'nominal' }),
  })
  const bare: number[] = []
  const ours: number[] = []
  for (let round = 0; round < 2; round += 1) {
    bare.push(...(await bareTurns(scene, turns / 2)))
    ours.push(...(await realTurns(scene)))
  }
  await scene.stop()
  const ratio = median(ours) / median(bare)
  report('turn', {
    'turns measured': ours.length,
    'bare turn, median (ms)': Math.round(median(bare) * 10) / 10,
    'nightshift turn, median (ms)': Math.round(median(ours) * 10) / 10,
    'ratio (at most 2.0)': Math.round(ratio * 100) / 100,
  })
}

async function bareTurns(scene: Stage, count: number): Promise<number[]> {
  return await scene.client.workflow.execute('BareTurns', {
    workflowId: `bare-${Math.random()}`,
    taskQueue: 'bench-bare',
    args: [count],
  })
}

/** From one answer's row to the next: everything a turn does lies between them. */
async function realTurns(scene: Stage): Promise<number[]> {
  const { incidentId } = await scene.investigate()
  const answers = (await eventsOf(scene.db, incidentId)).filter((event) => event.kind === 'model_answered')
  return answers.slice(1).map((event, index) => Date.parse(event.at) - Date.parse(answers[index]?.at ?? event.at))
}
