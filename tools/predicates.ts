import { z } from 'zod'
import { health, linkStatus, reachability } from '../domain/platform.ts'
import { defineTool, discovered, resourceId, seen } from './define.ts'

/** Five read-only predicates over the live platform. */

export const nodeHealth = defineTool({
  name: 'node_health',
  firstFor: [],
  description:
    'Current health of a node or host: nominal, degraded, critical or unknown, with the reason; what its device can be asked.',
  input: z.strictObject({ node: resourceId }),
  output: z.looseObject({
    node: z.string(),
    kind: z.enum(['node', 'host']),
    status: health,
    state: z.string().optional(),
    vmCount: z.number().optional(),
  }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { node: ['node', 'host'] },
  discovers: (output) => [seen(discovered(output.kind, output.node), isDrained(output) ? 'nominal' : output.status)],
  run: ({ node }, { core, signal }) => core.get(`/api/v1/nodes/${node}/health`, { signal }),
})

/**
 * Draining is degraded while something is left to move; a host that is empty is as its operator
 * wants it.
 */
function isDrained({ state, vmCount, status }: { state?: string; vmCount?: number; status: string }): boolean {
  return state === 'draining' && vmCount === 0 && status !== 'unknown'
}

export const liveLink = defineTool({
  name: 'live_link',
  firstFor: ['host'],
  description:
    'Cost of the link between two hosts; only if both ends are healthy; unknown where the platform tells no links.',
  input: z.strictObject({ a: resourceId, b: resourceId }),
  output: z.looseObject({ status: linkStatus, live: z.boolean().nullable(), cost: z.number().nullable() }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { a: 'host', b: 'host' },
  discovers: () => [],
  run: ({ a, b }, { core, signal }) => core.get(`/api/v1/links?a=${a}&b=${b}`, { signal }),
})

export const canReach = defineTool({
  name: 'can_reach',
  firstFor: ['host'],
  description: 'Is there a healthy path between two hosts now? Unknown where the platform tells no links.',
  input: z.strictObject({ from: resourceId, to: resourceId }),
  output: z.looseObject({ status: reachability, reachable: z.boolean().nullable(), cost: z.number().nullable() }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { from: 'host', to: 'host' },
  discovers: () => [],
  run: ({ from, to }, { core, signal }) => core.get(`/api/v1/reachability?from=${from}&to=${to}`, { signal }),
})

export const activeAlerts = defineTool({
  name: 'active_alerts',
  description: 'Alerts on a resource that fire now or ended within 300 seconds.',
  input: z.strictObject({ resource: resourceId }),
  output: z.looseObject({ items: z.array(z.unknown()) }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: {},
  discovers: () => [],
  run: ({ resource }, { core, signal }) => core.get(`/api/v1/active-alerts?resource=${resource}`, { signal }),
})

export const currentVmHost = defineTool({
  name: 'current_vm_host',
  firstFor: ['host', 'vm'],
  description: 'The host a VM is on now, whether it runs, and what a device can be asked for it.',
  input: z.strictObject({ vm: resourceId }),
  output: z.looseObject({ id: z.string(), host: z.string().nullable(), running: z.boolean() }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { vm: 'vm' },
  discovers: (output) => [
    seen(discovered('vm', output.id), output.running ? 'nominal' : 'down'),
    ...(output.host === null ? [] : [discovered('host', output.host)]),
  ],
  run: ({ vm }, { core, signal }) => core.get(`/api/v1/vms/${vm}`, { signal }),
})
