import { z } from '@hono/zod-openapi'
import { nodesOfShard, shardById, shards } from '../db/platform.ts'
import { actionDigest } from '../domain/digest.ts'
import { nodeState, shardState } from '../domain/platform.ts'
import { answerEffect } from './answer-effect.ts'
import type { ApiDeps } from './deps.ts'
import { runEffect } from './effect.ts'
import { endpoint, type Router } from './endpoint.ts'
import { nodeExample } from './examples.ts'
import { deviceField, offeredExample, withDevices } from './mesh/offered.ts'
import { pageOf } from './page.ts'
import { platformEnding } from './platform-ending.ts'
import { notFound } from './problem.ts'
import { requirePlatform } from './require-platform.ts'
import { resourceParams, staleFlag, withHealth } from './resource.ts'

const tag = 'platform'
const shardExample: z.input<typeof shardState> = {
  id: 'db-osl-1',
  region: 'osl',
  role: 'database',
  status: 'degraded',
  config: { max_connections: 100 },
}

export function shardRoutes(router: Router, deps: ApiDeps): void {
  const { db, state } = deps

  endpoint(router, deps, {
    method: 'get',
    path: '/shards',
    permission: 'read',
    tag,
    summary: 'All shards',
    answer: pageOf(shardState.extend(staleFlag)),
    example: { items: [shardExample], nextCursor: null },
    async run() {
      const fresh = await state.refresh()
      return { items: (await shards(db)).map((shard) => withHealth(shard, fresh)), nextCursor: null }
    },
  })

  endpoint(router, deps, {
    method: 'get',
    path: '/shards/{id}',
    permission: 'read',
    tag,
    summary: 'A shard: status, role, configuration',
    params: resourceParams,
    answer: shardState.extend(staleFlag),
    example: shardExample,
    problems: [404],
    async run({ params: { id } }) {
      const fresh = await state.refresh()
      const shard = await shardById(db, id)
      if (!shard) throw notFound(`shard ${id}`)
      return withHealth(shard, fresh)
    },
  })

  endpoint(router, deps, {
    method: 'get',
    path: '/shards/{id}/nodes',
    permission: 'read',
    tag,
    summary: 'The nodes of a shard with their health, and what their devices can be asked',
    params: resourceParams,
    answer: pageOf(nodeState.extend({ ...staleFlag, ...deviceField })),
    example: { items: [{ ...nodeExample, device: offeredExample }], nextCursor: null },
    problems: [404],
    async run({ params: { id } }) {
      const fresh = await state.refresh()
      if (!(await shardById(db, id))) throw notFound(`shard ${id}`)
      const nodes = (await nodesOfShard(db, id)).map((node) => withHealth(node, fresh))
      return { items: await withDevices(deps, 'node', nodes), nextCursor: null }
    },
  })

  endpoint(router, deps, {
    method: 'post',
    path: '/shards/{id}/converge',
    permission: 'act_on_platform',
    tag,
    summary: 'Re-applies desired state to every node of a shard',
    description: 'Done once per `Idempotency-Key`; what became of it is at `/effects/{key}`.',
    params: resourceParams,
    body: z.strictObject({ reason: z.string().min(3).max(500) }),
    bodyExample: { reason: 'The replica stopped replaying.' },
    answer: z.looseObject({ detail: z.string(), key: z.string() }),
    example: { detail: '2 nodes converged', key: 'api:tok_1:7f1c' },
    problems: [404, 502, 504],
    agent: { tool: 'converge_shard', identity: ({ id }) => ({ id }) },
    async run({ params: { id }, principal, key, judged }) {
      const platform = requirePlatform(deps)
      if (!(await shardById(db, id))) throw notFound(`shard ${id}`)
      const effect = await runEffect(
        deps,
        { principal, key, judged, tool: 'converge_shard', actionDigest: actionDigest('converge_shard', { id }) },
        { perform: (effectKey) => platformEnding(platform, effectKey, () => platform.converge(id, effectKey)) },
      )
      return answerEffect(effect)
    },
  })
}
