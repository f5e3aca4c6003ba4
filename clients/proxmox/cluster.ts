import { z } from 'zod'
import type { ProxmoxApi } from './api.ts'
import { flag, type GuestKind, nodeName, sidOf, vmid } from './facts.ts'

/**
 * A guest in the HA manager's hands. `state` and `isRunning` are the manager's; null before its
 * first look.
 */
type HaGuest = {
  sid: string
  /** What it is asked to keep it at. */
  wanted: string
  group: string | null
  state: string | null
  /** The manager has seen it start on its node. */
  isRunning: boolean
  /** Where it is bringing it, or has been told to. */
  destination: string | null
}

export type Guest = {
  vmid: number
  kind: GuestKind
  /** What its owner calls it; null when nobody tells (now). */
  name: string | null
  /** Where its configuration is. It stays there when that node dies. */
  node: string
  /** `running`, `stopped`, or `unknown` when its node reports nothing. */
  status: string
  isTemplate: boolean
  /** Null when nobody reports them (now). */
  ramMib: number | null
  cpuMc: number | null
  /** Why it is locked: `backup`, `migrate`, `snapshot`… */
  lock: string | null
  tags: string[]
  ha: HaGuest | null
}

export type ClusterNode = {
  name: string
  /** Its address in the cluster; null where the cluster does not say. */
  address: string | null
  isOnline: boolean
  isInMaintenance: boolean
  /** The HA manager got its lock, which a node that lives renews: its watchdog has reset it. */
  isFenced: boolean
  ramMib: number | null
  cpuMc: number | null
}

export type Storage = { isShared: boolean; nodes: Set<string> }

export type Cluster = {
  name: string
  /** Without a majority the others only look dead: nothing reported then may be believed. */
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
  // Pools, networks and whatever comes: not ours.
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
 * Whether the HA manager seeks new nodes for this one's services. It does after fencing: until then
 * they and the node are in state `fence`. `unknown` alone only says that nobody hears of a node,
 * before fencing as well as after.
 */
function isRecoveredFrom(
  { node_status, service_status, disarm }: z.infer<typeof haStatus>['manager_status'],
  name: string,
): boolean {
  if (disarm !== undefined || node_status[name] === 'fence' || node_status[name] === 'online') return false
  return Object.values(service_status).some(({ node, state }) => node === name && state === 'recovery')
}

/** The cluster as it is: four requests, whatever its size. */
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
  // Guests that the manager ignores count as unknown to it.
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
  // A node by itself has no cluster to be a part of, and no majority to lose.
  return { name: whole?.name ?? alone ?? 'proxmox', isQuorate: whole?.quorate ?? true, nodes, guests, storages }
}
