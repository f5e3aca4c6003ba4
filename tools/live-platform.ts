import { z } from 'zod'
import { health, linkStatus, reachability } from '../domain/platform.ts'
import { describeItems, inBrackets, toList, toText } from '../domain/say.ts'
import { defineTool, discoveredThing, observedThing, resourceId } from './define.ts'

export const nodeHealth = defineTool({
  name: 'node_health',
  firstFor: [],
  description: 'Current health of a node or host: nominal, degraded, critical or unknown, with the reason.',
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
  say: ({ node, status, reason }) => `${node} is ${status}${inBrackets(reason)}`,
  discovers: (output) => [
    observedThing(discoveredThing(output.kind, output.node), isDrained(output) ? 'nominal' : output.status),
  ],
  run: ({ node }, { core, signal }) => core.get(`/api/v1/nodes/${node}/health`, { signal }),
})

/**
 * Whether a host is draining and empty. A draining host counts as degraded only while it has VMs.
 */
function isDrained({ state, vmCount, status }: { state?: string; vmCount?: number; status: string }): boolean {
  return state === 'draining' && vmCount === 0 && status !== 'unknown'
}

export const liveLink = defineTool({
  name: 'live_link',
  needs: 'hosts',
  firstFor: [],
  description:
    'Cost of the link between two hosts; only if both ends are healthy; unknown if the platform lists no links.',
  input: z.strictObject({ a: resourceId, b: resourceId }),
  output: z.looseObject({ status: linkStatus, live: z.boolean().nullable(), cost: z.number().nullable() }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { a: 'host', b: 'host' },
  say: ({ status, cost }, { a, b }) =>
    `the link between ${a} and ${b} is ${status}${cost === null ? '' : `, cost ${cost}`}`,
  discovers: () => [],
  run: ({ a, b }, { core, signal }) => core.get(`/api/v1/links?a=${a}&b=${b}`, { signal }),
})

export const canReach = defineTool({
  name: 'can_reach',
  needs: 'hosts',
  firstFor: [],
  description: 'Is there a healthy path between two hosts now? Unknown if the platform lists no links.',
  input: z.strictObject({ from: resourceId, to: resourceId }),
  output: z.looseObject({ status: reachability, reachable: z.boolean().nullable(), cost: z.number().nullable() }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { from: 'host', to: 'host' },
  say: ({ status, cost }, { from, to }) => `${to} is ${status} from ${from}${cost === null ? '' : `, cost ${cost}`}`,
  discovers: () => [],
  run: ({ from, to }, { core, signal }) => core.get(`/api/v1/reachability?from=${from}&to=${to}`, { signal }),
})

export const activeAlerts = defineTool({
  name: 'active_alerts',
  isSituational: true,
  description: 'Alerts on a resource that fire or ended within 300 seconds.',
  input: z.strictObject({ resource: resourceId.describe('its id') }),
  output: z.looseObject({ items: z.array(z.unknown()) }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: {},
  say: ({ items }, { resource }) =>
    `${resource}: ${describeItems(
      toList(items).map(({ name, status }) => `${toText(name)} ${status === 'resolved' ? 'ended' : toText(status)}`),
      'alert',
    )}`,
  discovers: () => [],
  run: ({ resource }, { core, signal }) => core.get(`/api/v1/active-alerts?resource=${resource}`, { signal }),
})

export const currentVmHost = defineTool({
  name: 'current_vm_host',
  needs: 'hosts',
  firstFor: ['host', 'vm'],
  description: 'The host a VM is on now, whether it runs, what it needs.',
  input: z.strictObject({ vm: resourceId }),
  output: z.looseObject({ id: z.string(), host: z.string().nullable(), running: z.boolean() }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { vm: 'vm' },
  say: ({ id, host, running }) => `${id} ${running ? 'runs' : 'is stopped'} on ${host ?? 'no host'}`,
  discovers: (output) => [
    observedThing(discoveredThing('vm', output.id), output.running ? 'nominal' : 'down'),
    ...(output.host === null ? [] : [discoveredThing('host', output.host)]),
  ],
  run: ({ vm }, { core, signal }) => core.get(`/api/v1/vms/${vm}`, { signal }),
})
