import { z } from 'zod'
import { attachmentFields } from '../domain/attachment.ts'
import { digestOf } from '../domain/digest.ts'
import { formatCount, withSpaces } from '../domain/format.ts'
import { idPattern, inventoryKinds } from '../domain/kinds.ts'
import { inventoryKind, resourceKind } from '../domain/registry.ts'
import { describeItems, describeParts, inBrackets, toList, toText } from '../domain/say.ts'
import type { CorePort, Observation } from '../domain/tool.ts'
import {
  defineTool,
  discoveredThing,
  observedThing,
  reason,
  ref,
  resourceId,
  sayWrite,
  state,
  worstHealth,
} from './define.ts'

const node = z.looseObject({
  id: z.string(),
  hostname: z.string(),
  ip: z.string(),
  shard: z.string(),
  status: z.string(),
})

export const getShard = defineTool({
  name: 'get_shard',
  needs: 'shards',
  firstFor: ['shard', 'tenant'],
  description: 'Get shard details: status, role, configuration.',
  input: z.strictObject({ id: resourceId }),
  output: z.looseObject({ id: z.string(), status: z.string() }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { id: 'shard' },
  say: ({ id, status, role }) => `${id} is ${status}${inBrackets(role)}`,
  discovers: (output) => [observedThing(discoveredThing('shard', output.id), output.status)],
  run: ({ id }, { core, signal }) => core.get(`/api/v1/shards/${id}`, { signal }),
})

export const listNodesByShard = defineTool({
  name: 'list_nodes_by_shard',
  needs: 'shards',
  firstFor: ['shard', 'node', 'tenant'],
  isSituational: true,
  description: 'List the nodes of a shard with their health.',
  input: z.strictObject({ shard_id: resourceId }),
  output: z.looseObject({ items: z.array(node) }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { shard_id: 'shard' },
  say: ({ items }, { shard_id }) => `${shard_id}: ${describeParts(items, 'node')}`,
  discovers: ({ items }, { shard_id }) => [
    observedThing(discoveredThing('shard', shard_id as string), worstHealth(items.map((item) => item.status))),
    ...items.map((item) => observedThing(discoveredThing('node', item.id, item.hostname, [item.ip]), item.status)),
  ],
  run: ({ shard_id }, { core, signal }) => core.get(`/api/v1/shards/${shard_id}/nodes`, { signal }),
})

export const getNode = defineTool({
  name: 'get_node',
  firstFor: ['shard', 'node'],
  description: 'Get a node: hostname, IP, shard, role, status, what fills its disk.',
  input: z.strictObject({ id: resourceId }),
  output: node,
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { id: 'node' },
  say: ({ id, status, reason, role }) =>
    `${id}${inBrackets(role)} is ${status}${toText(reason) && `: ${toText(reason)}`}`,
  discovers: (output) => [
    observedThing(discoveredThing('node', output.id, output.hostname, [output.ip]), output.status),
    discoveredThing('shard', output.shard),
  ],
  run: ({ id }, { core, signal }) => core.get(`/api/v1/nodes/${id}`, { signal }),
})

export const getTenant = defineTool({
  name: 'get_tenant',
  needs: 'shards',
  firstFor: ['tenant'],
  description: 'Get tenant details by ID.',
  input: z.strictObject({ id: resourceId }),
  output: z.looseObject({ id: z.string(), name: z.string(), shard: z.string(), status: z.string().optional() }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { id: 'tenant' },
  say: ({ id, name, shard, status }) =>
    `${name === id ? id : `${name} (${id})`} is ${status ?? 'known'}, on shard ${shard}`,
  discovers: (output) => [
    observedThing(discoveredThing('tenant', output.id, output.name), output.status),
    discoveredThing('shard', output.shard),
  ],
  run: ({ id }, { core, signal }) => core.get(`/api/v1/tenants/${id}`, { signal }),
})

const found = z.looseObject({
  kind: inventoryKind,
  id: z.string(),
  name: z.string(),
  aliases: z.array(z.string()),
  state: z.looseObject({ health: z.string() }),
})

export const getResource = defineTool({
  name: 'get_resource',
  // Excludes the kinds that have their own tool for reading. `find_resource` adds this tool.
  firstFor: [null, ...inventoryKinds.filter((kind) => !['shard', 'node', 'tenant', 'host', 'vm'].includes(kind))],
  insteadOf: { shard: 'get_shard', tenant: 'get_tenant', vm: 'current_vm_host' },
  description:
    'Get anything of the inventory, as a container or workload: state, who says what of it, what it runs on and holds, what fires.',
  input: z.strictObject({
    kind: inventoryKind.describe('as service_unit, node'),
    id: z
      .string()
      .min(1)
      .max(128)
      .regex(idPattern, 'is not an identifier of the inventory')
      .meta({ description: 'its id', examples: ['web-1'] }),
  }),
  output: found,
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: {},
  say({ kind, id, state, alerts }) {
    const firing = toList(alerts).filter(({ status }) => status === 'firing').length
    return `${withSpaces(kind)} ${id} is ${state.health}${inBrackets(state.observed)}${firing > 0 ? `, ${formatCount(firing, 'alert')} firing` : ''}`
  },
  discovers: (output) => [
    observedThing(discoveredThing(output.kind, output.id, output.name, output.aliases), output.state.health),
  ],
  run: ({ kind, id }, { core, signal }) =>
    core.get(`/api/v1/inventory/resources/${kind}/${encodeURIComponent(id)}?brief=true`, { signal }),
})

export const findResource = defineTool({
  name: 'find_resource',
  isSituational: true,
  description: 'Find resources whose id, name or alias has a text.',
  input: z.strictObject({
    kind: resourceKind.optional().describe('as node'),
    text: z.string().min(1).max(100).describe('part of it'),
  }),
  output: z.looseObject({ items: z.array(z.looseObject({ kind: resourceKind, id: z.string(), name: z.string() })) }),
  effect: 'resolve',
  risk: 'none',
  reversible: true,
  names: {},
  say: ({ items }, { text }) =>
    `"${text}" is in the name of ${describeItems(
      items.map(({ kind, id }) => `${withSpaces(kind)} ${id}`),
      'resource',
    )}`,
  discovers: ({ items }) => items.map((item) => discoveredThing(item.kind, item.id, item.name)),
  run: ({ kind, text }, { core, signal }) =>
    core.get(`/api/v1/resources?q=${encodeURIComponent(text)}${kind ? `&kind=${kind}` : ''}`, { signal }),
})

/**
 * Observes whether every node of the shard is nominal. The core API queries the platform again for
 * this observation. Null if that query failed.
 */
async function shardIsNominal(core: CorePort, id: string): Promise<Observation | null> {
  const answer = await core.get(`/api/v1/shards/${id}/nodes`)
  if (!answer.ok) return null
  const { items } = z.object({ items: z.array(node) }).parse(answer.data)
  if (items.some((item) => item.stale === true)) return null
  const ill = items.filter((item) => item.status !== 'nominal')
  if (items.length === 0) return { holds: false, observed: `${id} has no nodes` }
  if (ill.length === 0) return { holds: true, observed: `all ${items.length} nodes of ${id} are nominal` }
  return {
    holds: false,
    observed: ill.map((item) => `${item.id} is ${item.status}${item.reason ? ` (${item.reason})` : ''}`).join('; '),
  }
}

const changing = z.object({
  possible: z.boolean(),
  nodes: z.array(z.object({ id: z.string(), changes: z.array(z.string()) })),
  ...attachmentFields,
})
type Changing = z.infer<typeof changing>
const notRehearsed = 'The platform does not report beforehand what a convergence would change.'

/** Returns what a convergence would change; null if the platform offers no preview. */
async function previewConverge(core: CorePort, id: string, signal: AbortSignal | undefined): Promise<Changing | null> {
  const answer = await core.get(`/api/v1/shards/${id}/converge?dry_run=true`, { signal })
  const read = answer.ok ? changing.safeParse(answer.data).data : undefined
  return read?.possible ? read : null
}

function toldOf({ nodes }: Changing) {
  const told = nodes.map(({ id, changes }) =>
    changes.length === 0 ? `${id}: nothing would change` : `${id}: would ${changes.join('; ')}`,
  )
  return { told, tried: true }
}

/** Computes the fingerprint of the nodes that a convergence covers, whatever their state. */
export function fingerprintOfNodes(nodes: readonly { id: string; hostname?: unknown; ip?: unknown }[]): string {
  return digestOf(nodes.map(({ id, hostname, ip }) => [id, hostname, ip].join(' ')).sort())
}

/**
 * Re-applies the desired state to every node of a shard. Safe to repeat, so it runs without
 * approval near the incident's resource.
 */
export const convergeShard = defineTool({
  name: 'converge_shard',
  needs: 'shards',
  firstFor: ['shard', 'node', 'tenant'],
  isSituational: true,
  description: 'Re-apply desired state to all nodes of a shard. Reversible; clears logs: read them first.',
  input: z.strictObject({ id: resourceId, reason }),
  output: z.looseObject({}),
  effect: 'write',
  risk: 'low',
  reversible: true,
  grantable: true,
  names: { id: 'shard' },
  say: (output, { id }) => sayWrite(output, `${id} converged`),
  discovers: () => [],
  async prepare({ id }, { core, signal }) {
    const answer = await core.get(`/api/v1/shards/${id}/nodes`, { signal })
    const items = answer.ok ? z.object({ items: z.array(node) }).parse(answer.data).items : []
    const would = await previewConverge(core, id, signal)
    const details = { nodes: items.map((item) => ({ id: item.id, status: item.status, reason: item.reason ?? null })) }
    return {
      targets: [ref('shard', id)],
      identity: { id },
      // Covers the list of nodes, not their state, because the desired state does not depend on the
      // state of the nodes.
      stateFingerprint: fingerprintOfNodes(items),
      dryRun: {
        possible: would !== null,
        summary: `Converge ${id}: re-apply desired state to ${items.length} nodes`,
        details: would === null ? { ...details, notRehearsed } : { ...details, rehearsal: toldOf(would) },
        ...(would?.attachments && { attachments: would.attachments }),
        ...(would?.leftOut && { leftOut: would.leftOut }),
      },
    }
  },
  proof: state('every node of the shard is nominal'),
  postcondition: {
    withinSeconds: 45,
    check: ({ id }, _output, { core }) => shardIsNominal(core, id),
  },
  run: ({ id, reason: why }, { core, stepKey, signal }) =>
    core.post(`/api/v1/shards/${id}/converge`, { reason: why }, { idempotencyKey: stepKey, signal }),
})
