import { z } from 'zod'
import type { HostState, Inventory, VmState } from '../../domain/platform.ts'
import { PlatformError } from '../platform.ts'
import type { ProxmoxApi } from './api.ts'
import type { Cluster, ClusterNode, Guest } from './cluster.ts'
import { type Constraints, flag, getReachableNodes, sidOf, vmIdOf } from './facts.ts'

/** What `GET /cluster/resources` does not tell of a guest. Null where nobody could be asked. */
export type GuestFacts = {
  constraints: Constraints | null
  isRunning: boolean
  ramMib: number | null
  cpuMc: number | null
}

/** Size of what nobody knows the size of. It stays where it is, so it takes no room that a plan could count on. */
const unknownSize = 1

/** Proxmox's words in Nightshift's. `racks` is the rack by node; a node without one is a separate rack. */
export function inventoryOf(
  cluster: Cluster,
  rules: Rules,
  facts: Map<number, GuestFacts>,
  racks: Record<string, string>,
): Inventory {
  const region = cluster.name
  const hosts: HostState[] = [...cluster.nodes.values()].map((node) => ({
    id: node.name,
    region,
    rack: racks[node.name] ?? node.name,
    state: stateOf(node),
    ramMib: node.ramMib ?? unknownSize,
    cpuMc: node.cpuMc ?? unknownSize,
  }))
  const vms: VmState[] = [...cluster.guests.values()]
    // A guest of a node that is no member any more has no host to be on.
    .filter((guest) => !guest.isTemplate && cluster.nodes.has(guest.node))
    .map((guest) => {
      const known = facts.get(guest.vmid)
      const sid = sidOf(guest.kind, guest.vmid)
      return {
        id: vmIdOf(guest.vmid),
        host: guest.node,
        running: known?.isRunning ?? false,
        ramMib: known?.ramMib ?? unknownSize,
        cpuMc: known?.cpuMc ?? unknownSize,
        haGroup: rules.apart.get(sid) ?? null,
        priority: priorityOf(guest),
        pinnedTo: pinsOf(cluster, rules, guest, known),
        forbiddenHosts: [],
        affinityGroup: rules.together.get(sid) ?? null,
        tenant: null,
        // Its uptime in the statistics is some seconds old: no start is exact enough to prove a restart by.
        startedAt: null,
        busy: busyOf(guest),
      }
    })
  return { regions: [{ id: region }], shards: [], nodes: [], tenants: [], hosts, vms, links: [] }
}

function busyOf({ lock, ha }: Guest): string | null {
  if (lock !== null) return `locked: ${lock}`
  return ha?.destination ? `the HA manager is moving it to ${ha.destination}` : null
}

/** A node that is there but reports no sizes (its statistics hang) takes nothing new; what it has may leave. */
function stateOf(node: ClusterNode): HostState['state'] {
  if (!node.isOnline) return 'dead'
  return node.isInMaintenance || node.ramMib === null || node.cpuMc === null ? 'draining' : 'live'
}

function priorityOf({ tags }: Guest): number {
  for (const tag of tags) {
    const [, number] = /^nightshift-priority-(\d{1,4})$/.exec(tag) ?? []
    if (number !== undefined) return Math.min(1_000, Number(number))
  }
  return 0
}

/** The only hosts it may be brought to; empty: any. Whatever is not known keeps it where it is. */
function pinsOf(cluster: Cluster, rules: Rules, guest: Guest, known: GuestFacts | undefined): string[] {
  const own = [guest.node]
  const isDead = cluster.nodes.get(guest.node)?.isOnline !== true
  if (!known?.constraints || known.ramMib === null || known.cpuMc === null || guest.lock !== null) return own
  // Nothing but the HA manager brings a guest away from a dead node: no API call does.
  if (isDead && guest.ha?.wanted !== 'started') return own
  if (guest.ha?.state === 'error') return own
  const reach = getReachableNodes(known.constraints, cluster.storages, guest.node, cluster.nodes.keys())
  const allowed = rules.nodes.get(sidOf(guest.kind, guest.vmid)) ?? null
  if (reach === null || allowed === null) return reach ?? allowed ?? []
  const both = reach.filter((node) => allowed.includes(node))
  return both.length > 0 ? both : own
}

/** What the HA manager holds guests to. Groups of guests are named by the first rule in them. */
export type Rules = {
  /** By guest (`vm:101`): the only nodes it may be on. */
  nodes: Map<string, string[]>
  together: Map<string, string>
  apart: Map<string, string>
}

const rule = z.object({
  rule: z.string(),
  type: z.string(),
  resources: z.string().default(''),
  nodes: z.string().default(''),
  strict: flag.default(false),
  affinity: z.string().optional(),
  disable: flag.default(false),
})
const group = z.object({ group: z.string(), nodes: z.string().default(''), restricted: flag.default(false) })

/**
 * The rules of Proxmox VE 9, or the groups of 8, which has no rules. `groupOf` tells which guest is in which group.
 *
 * Rules that share a guest are taken as one: exact for those kept together, stricter than the manager for those kept apart,
 * so that no plan asks for what it refuses.
 */
export async function readRules(api: ProxmoxApi, groupOf: Map<string, string>, signal?: AbortSignal): Promise<Rules> {
  try {
    const all = await api.get(['cluster', 'ha', 'rules'], z.array(rule), { signal })
    const rules = all.filter((one) => !one.disable)
    const affinity = (kind: string) =>
      rules.filter((one) => one.type === 'resource-affinity' && one.affinity === kind).map(namesIn)
    return {
      nodes: new Map(
        rules
          .filter((one) => one.type === 'node-affinity' && one.strict)
          .flatMap((one) => list(one.resources).map((sid) => [sid, nodesIn(one.nodes)] as const)),
      ),
      together: joined(affinity('positive')),
      apart: joined(affinity('negative')),
    }
  } catch (error) {
    // "Method 'GET /cluster/ha/rules' not implemented": this is Proxmox VE 8.
    if (!(error instanceof PlatformError) || error.status !== 501) throw error
  }
  const groups = await api.get(['cluster', 'ha', 'groups'], z.array(group), { signal })
  const restricted = new Map(groups.filter((one) => one.restricted).map((one) => [one.group, nodesIn(one.nodes)]))
  const nodes = new Map<string, string[]>()
  for (const [sid, name] of groupOf) {
    const only = restricted.get(name)
    if (only) nodes.set(sid, only)
  }
  return { nodes, together: new Map(), apart: new Map() }
}

function namesIn(one: z.infer<typeof rule>): { name: string; members: string[] } {
  return { name: one.rule, members: list(one.resources) }
}

/** `pve1:2,pve2`: names with their priorities, which say what is preferred, not what may be. */
function nodesIn(text: string): string[] {
  return list(text).map((node) => node.split(':')[0] ?? '')
}

function list(text: string): string[] {
  return text.split(/[,;\s]+/).filter((part) => part !== '')
}

function joined(rules: { name: string; members: string[] }[]): Map<string, string> {
  const nameOf = new Map<string, string>()
  for (const { name, members } of rules) {
    const met = new Set(members.map((member) => nameOf.get(member)).filter((known) => known !== undefined))
    const [first = name] = met
    for (const [member, known] of nameOf) if (met.has(known)) nameOf.set(member, first)
    for (const member of members) nameOf.set(member, first)
  }
  return nameOf
}
