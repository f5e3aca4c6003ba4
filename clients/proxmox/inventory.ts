import type { HostState, Inventory, VmState } from '../../domain/platform.ts'
import type { Cluster, ClusterNode, Guest } from './cluster.ts'
import { type Constraints, getReachableNodes } from './constraints.ts'
import { sidOf, vmIdOf } from './name.ts'
import type { Rules } from './rules.ts'

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
      }
    })
  return { regions: [{ id: region }], shards: [], nodes: [], tenants: [], hosts, vms, links: [] }
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
