import { z } from 'zod'
import type { ProxmoxApi } from './api.ts'
import { flag, type GuestKind, nodeName, sidOf, vmid } from './facts.ts'

/**
 * A guest under the HA manager. `state` is the manager's state of the guest, and null before the
 * manager first checked the guest.
 */
type HaGuest = {
  sid: string
  /** The state of the guest that the manager should keep. */
  wanted: string
  group: string | null
  state: string | null
  /** True if the manager has seen the guest start on its node. */
  isRunning: boolean
  /** The target node of a running or ordered move of the guest. */
  destination: string | null
}

export type Guest = {
  vmid: number
  kind: GuestKind
  /** The name that the owner gave the guest. Null while the name is unknown. */
  name: string | null
  /** The node that has the guest's configuration, which stays there if that node dies. */
  node: string
  /** `running`, `stopped`, or `unknown` if the node does not report the guest's status. */
  status: string
  isTemplate: boolean
  /** The guest's memory. Null while its node reports none. */
  ramMib: number | null
  cpuMc: number | null
  /** The reason of the guest's lock: `backup`, `migrate`, `snapshot`… */
  lock: string | null
  tags: string[]
  ha: HaGuest | null
}

export type ClusterNode = {
  name: string
  /** The address of the node in the cluster. Null if the cluster does not report an address. */
  address: string | null
  isOnline: boolean
  isInMaintenance: boolean
  /**
   * True if the HA manager holds the node's lock, which only a live node renews. By then, the
   * node's watchdog has reset the node.
   */
  isFenced: boolean
  ramMib: number | null
  cpuMc: number | null
}

export type Storage = { isShared: boolean; nodes: Set<string> }

export type Cluster = {
  name: string
  /**
   * True if the answering node belongs to a majority of the cluster. Without a majority, live nodes
   * may look dead, so no report can be trusted.
   */
  isQuorate: boolean
  nodes: Map<string, ClusterNode>
  guests: Map<number, Guest>
  storages: Map<string, Storage>
}

const amount = z.coerce.number().nonnegative().optional()
const resource = z.union([
  z.object({
    type: z.enum(['qemu', 'lxc']),
    vmid,
    node: nodeName,
    name: z.string().optional(),
    status: z.string().default('unknown'),
    template: flag.default(false),
    maxmem: amount,
    maxcpu: amount,
    lock: z.string().optional(),
    tags: z.string().optional(),
  }),
  z.object({ type: z.literal('node'), node: nodeName, maxmem: amount, maxcpu: amount }),
  z.object({ type: z.literal('storage'), storage: z.string(), node: nodeName, shared: flag.default(false) }),
  // Accepts resources of other kinds, such as pools and networks, which are not used.
  z.object({
    type: z.string().refine((type) => !['qemu', 'lxc', 'node', 'storage'].includes(type)),
  }),
])

const status = z.union([
  z.object({ type: z.literal('cluster'), name: z.string().min(1), quorate: flag }),
  z.object({ type: z.literal('node'), name: nodeName, online: flag.default(false), ip: z.string().optional() }),
])

const haResource = z.object({ sid: z.string(), state: z.string().default('started'), group: z.string().optional() })

const haStatus = z.object({
  manager_status: z.object({
    node_status: z.record(z.string(), z.string()).default({}),
    service_status: z
      .record(
        z.string(),
        z.object({
          node: z.string().optional(),
          state: z.string().optional(),
          running: flag.default(false),
          target: z.string().optional(),
          cmd: z.array(z.unknown()).optional(),
        }),
      )
      .default({}),
    disarm: z.object({ mode: z.string().optional() }).optional(),
  }),
  lrm_status: z.record(z.string(), z.object({ mode: z.string().nullish() })).default({}),
})

/**
 * Whether the HA manager looks for new nodes for this node's services, as it does after fencing.
 * Before the fencing is complete, node and services are in state `fence`. `unknown` only means that
 * the node does not report, before or after fencing.
 */
function isRecoveredFrom(
  { node_status, service_status, disarm }: z.infer<typeof haStatus>['manager_status'],
  name: string,
): boolean {
  if (disarm !== undefined || node_status[name] === 'fence' || node_status[name] === 'online') return false
  return Object.values(service_status).some(({ node, state }) => node === name && state === 'recovery')
}

/** Reads the cluster's current state with four requests, for a cluster of any size. */
export async function readCluster(api: ProxmoxApi, signal?: AbortSignal): Promise<Cluster> {
  const [resources, members, managed, manager] = await Promise.all([
    api.get(['cluster', 'resources'], z.array(resource), { signal }),
    api.get(['cluster', 'status'], z.array(status), { signal }),
    api.get(['cluster', 'ha', 'resources'], z.array(haResource), { signal }),
    api.get(['cluster', 'ha', 'status', 'manager_status'], haStatus, { signal }),
  ])
  const { manager_status: ha, lrm_status: lrm } = manager
  const whole = members.find((one) => one.type === 'cluster')
  const nodes = new Map<string, ClusterNode>()
  for (const member of members) {
    if (member.type !== 'node') continue
    const { name, online, ip = null } = member
    const isInMaintenance = ha.node_status[name] === 'maintenance' || lrm[name]?.mode === 'maintenance'
    const isFenced = !online && isRecoveredFrom(ha, name)
    nodes.set(name, { name, address: ip, isOnline: online, isInMaintenance, isFenced, ramMib: null, cpuMc: null })
  }
  // Treats guests as not managed while the manager ignores them.
  const isIdle = ha.disarm?.mode === 'ignore'
  const haOf = new Map<string, HaGuest>()
  for (const { sid, state, group } of managed) {
    if (state === 'ignored' || isIdle) continue
    const service = ha.service_status[sid]
    const [verb, ordered] = service?.cmd ?? []
    const isOrder = (verb === 'migrate' || verb === 'relocate') && typeof ordered === 'string'
    haOf.set(sid, {
      sid,
      wanted: state === 'enabled' ? 'started' : state,
      group: group ?? null,
      state: service?.state ?? null,
      isRunning: service?.running ?? false,
      destination: service?.target ?? (isOrder ? ordered : null),
    })
  }
  const guests = new Map<number, Guest>()
  const storages = new Map<string, Storage>()
  for (const one of resources) {
    if ('vmid' in one) {
      guests.set(one.vmid, {
        vmid: one.vmid,
        kind: one.type,
        name: one.name ?? null,
        node: one.node,
        status: one.status,
        isTemplate: one.template,
        ramMib: one.maxmem ? Math.ceil(one.maxmem / 1_048_576) : null,
        cpuMc: one.maxcpu ? Math.ceil(one.maxcpu * 1_000) : null,
        lock: one.lock ?? null,
        tags: (one.tags ?? '').split(/[;,\s]+/).filter((tag) => tag !== ''),
        ha: haOf.get(sidOf(one.type, one.vmid)) ?? null,
      })
    } else if ('storage' in one) {
      const known = storages.get(one.storage) ?? { isShared: one.shared, nodes: new Set() }
      known.nodes.add(one.node)
      storages.set(one.storage, known)
    } else if ('node' in one) {
      const node = nodes.get(one.node)
      if (!node) continue
      node.ramMib = one.maxmem ? Math.floor(one.maxmem / 1_048_576) : null
      node.cpuMc = one.maxcpu ? Math.floor(one.maxcpu * 1_000) : null
    }
  }
  const [alone] = nodes.keys()
  // Counts a single node as quorate, because it belongs to no cluster and has no majority to lose.
  return { name: whole?.name ?? alone ?? 'proxmox', isQuorate: whole?.quorate ?? true, nodes, guests, storages }
}
