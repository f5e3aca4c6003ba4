import { eventsOf } from '../db/log/events.ts'
import type { IncidentEvent } from '../domain/event.ts'
import type { Incident } from '../domain/incident.ts'
import { costOf, fullDisks, mostAtOnce, spanOf } from '../test/support/shard-platform.ts'
import { startSpine } from '../test/support/spine.ts'
import { startServers } from './servers.ts'
import { median, report, type Stage, stage } from './stage.ts'

const turns = 200

/**
 * Measures the cost of a turn with one call when the model and the tool respond at once. Compares
 * it with a bare workflow that has as many no-op activities on the same server and the same kind of
 * queues. Both workflows alternate, so that a slow moment of the machine slows both.
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

/**
 * Measures the time from the row of each model response to the row of the next response. Everything
 * that a turn does happens in this time.
 */
async function realTurns(scene: Stage): Promise<number[]> {
  const { incidentId } = await scene.investigate()
  const answers = (await eventsOf(scene.db, incidentId)).filter((event) => event.kind === 'model_answered')
  return answers.slice(1).map((event, index) => Date.parse(event.at) - Date.parse(answers[index]?.at ?? event.at))
}

type Cost = ReturnType<typeof costOf>

/**
 * The positions of incidents that have another cause, one in five. For such incidents the hint is
 * wrong.
 */
const oddAt = [5, 9, 13, 17]

/**
 * Measures twenty incidents of one type, four of them with another cause. Compares the cost of
 * followers with the cost of their leader. The model is a rule table: the counted tokens show how
 * much a hint saves, but not what a language model would use.
 */
export async function queue(): Promise<void> {
  const servers = await startServers()
  const spine = await startSpine({
    parts: ['lab', 'runbook', 'api'],
    databaseUrl: servers.databaseUrl,
    temporalAddress: servers.temporalAddress,
    environment: { LAB_WEB_SHARDS: '20' },
  })
  const { odd, incidents, logs } = await fullDisks(spine, oddAt)
  await spine.stop()
  await servers.stop()

  const of = (role: string) =>
    incidents.flatMap((incident, index) => (incident.role === role ? [logs[index] ?? []] : []))
  const followers = of('follower')
  const isOdd = (index: number) => odd.includes(incidents[index]?.resource?.id ?? '')
  const wrong = logs.filter((log, index) => isOdd(index) && log.some(({ kind }) => kind === 'hint_confirmed'))
  const right = logs.flatMap((log, index) => (incidents[index]?.role === 'follower' && !isOdd(index) ? [log] : []))
  const looked = incidents.filter(
    ({ role, resource }, index) => role === 'follower' && logs[index]?.some((row) => isLookAt(row, resource)),
  )
  const wallMs = Math.max(...logs.map((log) => spanOf(log).to)) - Math.min(...logs.map((log) => spanOf(log).from))
  // The rule table may make more calls than before, so only the time per call can be compared with
  // an old release.
  const calls = logs.flat().filter(({ kind }) => kind === 'tool_started').length
  const [leader, follower] = [of('leader'), right].map((some) => {
    const costs = some.map(costOf)
    return { turns: median(costs.map(({ turns }) => turns)), tokens: median(costs.map(({ tokens }) => tokens)) }
  }) as [Cost, Cost]
  report('queue (synthetic: a rule table, not a language model)', {
    incidents: incidents.length,
    'leaders / followers': `${of('leader').length} / ${followers.length}`,
    'followers at work at once, most': mostAtOnce(followers.map(spanOf)),
    'turns of a leader, median': leader.turns,
    'turns of a follower with the same cause, median': follower.turns,
    'tokens of a leader, median': leader.tokens,
    'tokens of a follower with the same cause, median': follower.tokens,
    'followers against leaders, turns (at most 0.5)': Math.round((follower.turns / leader.turns) * 100) / 100,
    'followers against leaders, tokens (at most 0.5)': Math.round((follower.tokens / leader.tokens) * 100) / 100,
    'followers that looked at their own resource': looked.length,
    'hints that are wrong': odd.length,
    'hints wrongly adopted (must be 0)': wrong.length,
    'all twenty, from first claim to last end (s)': Math.round(wallMs / 100) / 10,
    'tool calls of all': calls,
    'wall time for each tool call (ms)': Math.round(wallMs / calls),
  })
}

function isLookAt(row: IncidentEvent, resource: Incident['resource']): boolean {
  if (row.kind !== 'tool_finished' || row.metadata.effect === 'write' || resource === null) return false
  const { targets, discovered } = row.metadata
  return [...targets, ...discovered].some(({ kind, id }) => kind === resource.kind && id === resource.id)
}

const callsPerTurn = 5
const historyTurns = 60
const resultBytes = 20_000

/**
 * Measures 300 tool calls of 20 kB each: the bytes in Temporal's history, and the bytes that are
 * sent to the model.
 */
export async function history(): Promise<void> {
  const scene = await stage({
    maxTurns: historyTurns,
    model: (turn) =>
      Array.from({ length: callsPerTurn }, (_, call) => ({
        tool: 'get_shard',
        arguments: { id: `s-${turn}-${call}` },
      })),
    core: (path) => ({ id: path, status: 'nominal', filler: 'x'.repeat(resultBytes) }),
  })
  const { incidentId, workflowId } = await scene.investigate()
  const sizes: number[] = []
  for (const run of await runsOf(scene.client, workflowId)) sizes.push(run)
  const events = await eventsOf(scene.db, incidentId)
  const calls = events.filter((event) => event.kind === 'tool_finished')
  const requests = scene.requests.map((request) => request.characters)
  await scene.stop()
  report('history', {
    'tool calls': calls.length,
    'bytes per result': resultBytes,
    'workflow runs': sizes.length,
    'history, all runs (bytes, under 2 MB)': sizes.reduce((sum, size) => sum + size, 0),
    'history per call (bytes)': Math.round(sizes.reduce((sum, size) => sum + size, 0) / Math.max(1, calls.length)),
    'largest request to the model (characters)': Math.max(...requests),
    'last request to the model (characters)': requests.at(-1) ?? 0,
    'context budget (characters, 3 a token)': 32_768 * 3,
  })
}

async function runsOf(client: import('@temporalio/client').Client, workflowId: string): Promise<number[]> {
  const sizes: number[] = []
  let runId: string | undefined = (await client.workflow.getHandle(workflowId).describe()).runId
  while (runId) {
    const description = await client.workflow.getHandle(workflowId, runId).describe()
    sizes.push(description.historySize ?? 0)
    const whole = await client.workflow.getHandle(workflowId, runId).fetchHistory()
    const begin: string | null | undefined =
      whole.events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId
    runId = begin || undefined
  }
  return sizes
}
