import { z } from '@hono/zod-openapi'
import { hostById, nodeById, vmCountOnHost } from '../../db/inventory/platform-rows.ts'
import { health, hostState, nodeState } from '../../domain/platform.ts'
import { withHealth } from '../../effects/platform-state.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound } from '../http/problem.ts'
import { nodeExample } from './examples.ts'
import { healthOfHost, tag } from './hosts.ts'
import { deviceField, offeredExample, withDevice } from './offered.ts'
import { resourceParams, staleFlag } from './resources.ts'

export const nodeRoutes = [
  endpoint({
    method: 'get',
    path: '/nodes/{id}',
    permission: 'read',
    tag,
    summary: 'A node: hostname, address, shard, role, status, disk usage, capabilities of its device',
    params: resourceParams,
    answer: nodeState.extend({ ...staleFlag, ...deviceField }),
    example: { ...nodeExample, device: offeredExample },
    problems: [404],
    async run({ scope, params: { id } }, deps) {
      const fresh = await deps.state.refresh()
      const node = await nodeById(scope, id)
      if (!node) throw notFound(`node ${id}`)
      return await withDevice(deps, 'node', withHealth(node, fresh))
    },
  }),
  endpoint({
    method: 'get',
    path: '/nodes/{id}/health',
    permission: 'read',
    tag,
    summary: 'The current health of a node or host, and the capabilities of its device',
    params: resourceParams,
    answer: z.object({
      node: z.string(),
      kind: z.enum(['node', 'host']),
      status: health,
      reason: z.string().nullable(),
      /** Only for a host: its state, and the number of VMs that are defined on it. */
      state: hostState.shape.state.optional(),
      vmCount: z.number().int().optional(),
      ...staleFlag,
      ...deviceField,
    }),
    example: {
      node: 'node-osl-2',
      kind: 'node',
      status: 'degraded',
      reason: 'replica is 214 s behind',
      device: offeredExample,
    },
    problems: [404],
    async run({ scope, params: { id } }, deps) {
      const fresh = await deps.state.refresh()
      const node = await nodeById(scope, id)
      if (node) {
        const { status, reason } = node
        const { device } = await withDevice(deps, 'node', node)
        return withHealth({ node: id, kind: 'node' as const, status, reason, device }, fresh)
      }
      const host = await hostById(scope, id)
      if (!host) throw notFound(`node or host ${id}`)
      const reason = host.state === 'live' ? null : `the host is ${host.state}`
      const { device } = await withDevice(deps, 'host', host)
      const status = healthOfHost[host.state]
      const vmCount = await vmCountOnHost(scope, id)
      return withHealth({ node: id, kind: 'host' as const, status, reason, state: host.state, vmCount, device }, fresh)
    },
  }),
]
