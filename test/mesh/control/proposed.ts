import { append } from '../../../db/append.ts'
import type { Db } from '../../../db/connect.ts'
import { agentActor } from '../../../domain/event.ts'
import type { CorePort, Tool, ToolContext } from '../../../domain/tool.ts'
import { tools } from '../../../tools/registry.ts'
import { announced, approvedBySomebody, asked, consumed } from '../../api/announced.ts'
import { claimedIncident } from '../../support/database.ts'
import type { MeshApi } from './mesh-api.ts'

let turns = 0
/** A call as a model proposed it: answers the place in the log where its run will announce it. */
export async function proposed(
  db: Db,
  tool: string,
  args: Record<string, unknown>,
  more: { secret?: boolean } = {},
): Promise<string> {
  const id = await claimedIncident(db)
  turns += 1
  const call = { id: `c${turns}_0`, tool, arguments: args, problem: null, ...more }
  await db.transaction().execute((trx) =>
    append(trx, id, 1, {
      ...{ kind: 'model_answered', actor: agentActor, turn: turns, detail: '' },
      stepKey: `${id}.1:${turns}:model_answered:0`,
      metadata: {
        ...{ content: '', body: null, calls: [call], final: null, problem: null, model: 'm', finishReason: 'stop' },
        ...{ usage: { promptTokens: 1, completionTokens: 1 }, durationMs: 1 },
      },
    }),
  )
  return `${id}.1:${turns}:tool_started:0`
}

/** The core API as a worker reaches it. */
export function corePort(api: MeshApi): CorePort {
  const answer = ({ status, body }: Awaited<ReturnType<MeshApi['get']>>) =>
    status < 300
      ? { ok: true as const, status, data: body as unknown }
      : { ok: false as const, status, problem: body as unknown as { title: string; detail: string; code?: string } }
  const below = (path: string) => path.replace('/api/v1', '')
  const as = () => api.tokens.agent
  return {
    get: async (path) => answer(await api.get(below(path), { as: as() })),
    post: async (path, body, { idempotencyKey: key, ifMatch }) =>
      answer(await api.post(below(path), { body, key, as: as(), headers: ifMatch ? { 'if-match': ifMatch } : {} })),
  }
}

export function toolNamed(name: string): Tool {
  const tool = tools.get(name)
  if (!tool) throw new Error(`there is no tool ${name}`)
  return tool
}

/** What the registry's tool finds out about a call before it is judged. */
export async function prepared(api: MeshApi, name: string, args: Record<string, unknown>) {
  const stepKey = await proposed(api.db, name, args)
  const input = toolNamed(name).input.parse(args)
  return await toolNamed(name).prepare?.(input as never, contextOf(api, stepKey))
}

/** An approval that a person gave for exactly this, and that its run has used up. */
export async function usedApproval(
  api: MeshApi,
  incidentId: string,
  tool: string,
  identity: Record<string, unknown>,
): Promise<string> {
  const approvalId = await asked(api.db, incidentId, { tool, identity })
  await approvedBySomebody(api.db, approvalId)
  await consumed(api.db, incidentId, approvalId)
  return approvalId
}

/** The registry's tool, run as a look that nobody was asked about, or under an approval that a person gave for exactly this. */
export async function ran(api: MeshApi, name: string, args: Record<string, unknown>, how: 'unasked' | 'approved') {
  const incidentId = await claimedIncident(api.db)
  const { reason: _, ...identity } = args
  const approvalId = how === 'approved' ? await usedApproval(api, incidentId, name, identity) : null
  const effect = how === 'approved' ? 'write' : 'read'
  const stepKey = await announced(api.db, incidentId, name, identity, approvalId, effect)
  const answer = await toolNamed(name).run(toolNamed(name).input.parse(args) as never, contextOf(api, stepKey))
  return { answer, stepKey, incidentId }
}

function contextOf(api: MeshApi, stepKey: string): ToolContext {
  return { core: corePort(api), incidentId: stepKey.split('.')[0] ?? '', stepKey, ifMatch: null }
}
