import { z } from '@hono/zod-openapi'
import { nodesOfShard, shardById, shards } from '../../db/inventory/platform-rows.ts'
import type { Scope } from '../../db/scope.ts'
import { attachmentFields } from '../../domain/attachment.ts'
import { actionDigest } from '../../domain/digest.ts'
import { convergeDryRun, nodeState, shardState } from '../../domain/platform.ts'
import { takeAttachments } from '../../effects/attachments.ts'
import { followWrite } from '../../effects/follow-write.ts'
import { requirePlatform } from '../../effects/platform.ts'
import { withHealth } from '../../effects/platform-state.ts'
import { runEffect } from '../../effects/run-effect.ts'
import { fingerprintOfNodes } from '../../tools/platform.ts'
import type { ApiDeps } from '../deps.ts'
import { pageOf } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound } from '../http/problem.ts'
import { actDirectly, directAnswer, directBody } from '../manual-change.ts'
import { answerEffect } from './effects.ts'
import { nodeExample } from './examples.ts'
import { deviceField, offeredExample, withDevices } from './offered.ts'
import { resourceParams, staleFlag } from './resources.ts'

const tag = 'platform'
const shardExample: z.input<typeof shardState> = {
  id: 'db-osl-1',
  region: 'osl',
  role: 'database',
  status: 'degraded',
  config: { max_connections: 100 },
}

const convergeAnswer = convergeDryRun.extend({
  ...attachmentFields,
  dryRun: z.literal(true),
  possible: z.boolean(),
  detail: z.string(),
})
const dryRunExample: z.input<typeof convergeAnswer> = {
  dryRun: true,
  possible: true,
  detail: '1 of 2 nodes would change',
  nodes: [
    { id: 'node-osl-1', changes: [] },
    { id: 'node-osl-2', changes: ['continue its process'] },
  ],
}

const listShardsEndpoint = endpoint({
  method: 'get',
  path: '/shards',
  permission: 'read',
  tag,
  summary: 'All shards',
  answer: pageOf(shardState.extend(staleFlag)),
  example: { items: [shardExample], nextCursor: null },
  async run({ scope }, { state }) {
    const fresh = await state.refresh()
    return { items: (await shards(scope)).map((shard) => withHealth(shard, fresh)), nextCursor: null }
  },
})

const getShardEndpoint = endpoint({
  method: 'get',
  path: '/shards/{id}',
  permission: 'read',
  tag,
  summary: 'A shard: status, role, configuration',
  params: resourceParams,
  answer: shardState.extend(staleFlag),
  example: shardExample,
  problems: [404],
  async run({ scope, params: { id } }, { state }) {
    const fresh = await state.refresh()
    const shard = await shardById(scope, id)
    if (!shard) throw notFound(`shard ${id}`)
    return withHealth(shard, fresh)
  },
})

const listNodesEndpoint = endpoint({
  method: 'get',
  path: '/shards/{id}/nodes',
  permission: 'read',
  tag,
  summary: 'The nodes of a shard with their health and the capabilities of their devices',
  params: resourceParams,
  answer: pageOf(nodeState.extend({ ...staleFlag, ...deviceField })),
  example: { items: [{ ...nodeExample, device: offeredExample }], nextCursor: null },
  problems: [404],
  async run({ scope, params: { id } }, deps) {
    const fresh = await deps.state.refresh()
    if (!(await shardById(scope, id))) throw notFound(`shard ${id}`)
    const nodes = (await nodesOfShard(scope, id)).map((node) => withHealth(node, fresh))
    return { items: await withDevices(deps, 'node', nodes), nextCursor: null }
  },
})

/** Reads from the platform what a convergence would change. */
async function readConvergeDryRun(scope: Scope, deps: ApiDeps, id: string): Promise<z.input<typeof convergeAnswer>> {
  const platform = requirePlatform(deps)
  if (!(await shardById(scope, id))) throw notFound(`shard ${id}`)
  const found = await platform.wouldConverge(id)
  if (!found) return { dryRun: true, possible: false, detail: 'The platform has no dry run of this action.', nodes: [] }
  const changing = found.nodes.filter(({ changes }) => changes.length > 0).length
  const detail = `${changing} of ${found.nodes.length} nodes would change`
  const brought = await takeAttachments(deps.db, found.attachments)
  return { dryRun: true, possible: true, nodes: found.nodes, detail, ...brought }
}

const convergeDryRunEndpoint = endpoint({
  method: 'get',
  path: '/shards/{id}/converge',
  permission: 'act_on_platform',
  tag,
  summary: 'Dry run of a converge: what would change on each node',
  description:
    'Nothing is changed. `possible` is false if the platform has no dry run; then it is unknown what would change. `attachments` are texts and pictures from the platform for the person who decides, stored by digest; `leftOut` lists the rejected attachments, with the reasons.',
  params: resourceParams,
  query: z.object({ dry_run: z.literal('true') }),
  answer: convergeAnswer,
  example: dryRunExample,
  problems: [404, 502, 504],
  run: async ({ scope, params: { id } }, deps) => await readConvergeDryRun(scope, deps, id),
})

const convergeEndpoint = endpoint({
  method: 'post',
  path: '/shards/{id}/converge',
  permission: 'act_on_platform',
  tag,
  summary: 'Re-applies the desired state to every node of a shard',
  description:
    'Runs once per `Idempotency-Key`; the result is at `/effects/{key}`. With `?dry_run=true` nothing is done, and the response is the same as for the GET.',
  params: resourceParams,
  query: z.object({ dry_run: z.enum(['true', 'false']).optional() }),
  body: z.strictObject(directBody),
  bodyExample: { reason: 'The replica stopped replaying.' },
  answer: z.looseObject({ detail: z.string(), key: z.string().optional(), ...directAnswer }),
  example: { detail: '2 nodes converged', key: 'api:tok_1:7f1c' },
  problems: [404, 409, 502, 504],
  agent: { tool: 'converge_shard', identity: ({ id }) => ({ id }) },
  async run(
    { scope, params: { id }, query: { dry_run: isDry }, body: { reason, alone }, principal, actor, key, judged, c },
    deps,
  ) {
    if (isDry === 'true') return await readConvergeDryRun(scope, deps, id)
    const platform = requirePlatform(deps)
    if (!(await shardById(scope, id))) throw notFound(`shard ${id}`)
    const targets = [{ kind: 'shard' as const, id }]
    const act = { principal, actor, c, tool: 'converge_shard', args: { id, reason }, alone }
    const summary = `Converge ${id}`
    const prepare = async () => ({
      targets,
      summary,
      stateFingerprint: fingerprintOfNodes(await nodesOfShard(scope, id)),
    })
    const manual = judged ? null : await actDirectly(deps, { ...act, prepare })
    if (manual) return manual
    const direct = judged ? {} : { direct: { targets, detail: `${summary}: ${reason}` } }
    const digest = actionDigest('converge_shard', { id })
    const effect = await runEffect(
      deps,
      { principal, key, judged, tool: 'converge_shard', actionDigest: digest, ...direct },
      { perform: (effectKey) => followWrite(platform, effectKey, () => platform.converge(id, effectKey)) },
    )
    return answerEffect(effect)
  },
})

export const shardRoutes = [
  listShardsEndpoint,
  getShardEndpoint,
  listNodesEndpoint,
  convergeDryRunEndpoint,
  convergeEndpoint,
]
