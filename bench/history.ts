import { eventsOf } from '../db/events.ts'
import { describeTools, describeToolsAsText } from '../model/describe-tools.ts'
import { readPrompts, renderSystemPrompt } from '../prompts/render.ts'
import { describedTools } from '../tools/registry.ts'
import { report } from './report.ts'
import { stage } from './stage.ts'

const callsPerTurn = 5
const turns = 60
const resultBytes = 20_000

/** 300 tool calls of 20 kB each: what enters Temporal's history, and what goes to the model. */
export async function history(): Promise<void> {
  const scene = await stage({
    maxTurns: turns,
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

/** Bytes of prompt and tool definitions that every first turn sends. */
export async function prompt(): Promise<void> {
  const prompts = readPrompts()
  const described = describedTools(null)
  const tools = Buffer.byteLength(JSON.stringify(describeTools(described)))
  const native = Buffer.byteLength(renderSystemPrompt(prompts, { override: null, protocol: 'native', toolsText: '' }))
  const json = Buffer.byteLength(
    renderSystemPrompt(prompts, { override: null, protocol: 'json', toolsText: describeToolsAsText(described) }),
  )
  report('prompt', {
    'tools offered': described.length,
    'system prompt, native (bytes)': native,
    'tool definitions, native (bytes)': tools,
    'first turn, native (bytes)': native + tools,
    'first turn, json (bytes)': json,
  })
}
