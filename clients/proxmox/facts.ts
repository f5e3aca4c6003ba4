import { z } from 'zod'
import { HttpError } from '../http.ts'
import { PlatformError } from '../platform.ts'
import type { ProxmoxApi } from './api.ts'
import type { GuestFacts } from './client.ts'
import type { Cluster, Guest, Storage } from './cluster.ts'

/** The name of a node: a host name without dots. */
export const nodeName = z
  .string()
  .max(63)
  .regex(/^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$/, 'is not the name of a node')

/** The number of a guest. Virtual machines and containers share one range of numbers. */
export const vmid = z
  .union([z.number(), z.string().regex(/^\d{3,9}$/)])
  .transform(Number)
  .pipe(z.number().int().min(100).max(999_999_999))

/** A boolean of Perl as it comes in JSON: 1, "1" and true are true; any other value is false. */
export const flag = z
  .union([z.boolean(), z.number(), z.string()])
  .transform((given) => /^(1|true)$/.test(String(given)))

export type GuestKind = 'qemu' | 'lxc'

/**
 * Formats `vm-101`, for virtual machines and containers. The prefix keeps the number from looking
 * like a size.
 */
export function vmIdOf(number: number): string {
  return `vm-${number}`
}

/** Reads the number in `vm-101`. Null for other text. */
export function numberOf(vmId: string): number | null {
  const parsed = vmid.safeParse(/^vm-([1-9]\d*)$/.exec(vmId)?.[1])
  return parsed.success ? parsed.data : null
}

/** Returns the name by which the HA manager knows a guest. */
export function sidOf(kind: GuestKind, number: number): string {
  return `${kind === 'qemu' ? 'vm' : 'ct'}:${number}`
}

/**
 * Limits on the nodes where a guest can run: its storages by name, and hardware that only its node
 * has, such as `hostpci0` or `mp1 /srv/data`.
 */
export type Constraints = { storages: string[]; local: string[] }

/** A guest's configuration: its limits, its name and its addresses. */
type GuestConfig = Constraints & { name: string | null; addresses: string[] }

/**
 * Reads addresses from a container's `net0: name=eth0,ip=10.0.0.5/24` and a virtual machine's
 * `ipconfig0: ip=10.0.0.5/24`. The configuration has no addresses by DHCP.
 */
function parseAddresses(kind: GuestKind, config: Record<string, unknown>): string[] {
  const key = kind === 'lxc' ? /^net\d+$/ : /^ipconfig\d+$/
  return Object.entries(config)
    .filter(([name]) => key.test(name))
    .flatMap(([, value]) => [
      ...String(value).matchAll(/(?:^|,)ip6?=([0-9a-fA-F.:]*[.:][0-9a-fA-F.:]*)(?:\/\d+)?(?=,|$)/g),
    ])
    .map(([, address = '']) => address)
}

const qemuVolume = /^(ide|sata|scsi|virtio|efidisk|tpmstate|unused)\d+$|^vmstate$/
const lxcVolume = /^(rootfs|mp\d+|unused\d+)$/
const device = /^(hostpci|usb|parallel|serial|virtiofs)\d+$|^(hostpci|hostusb|ivshmem)$/

/** Reads a guest's limits from the response of `GET /nodes/{node}/{kind}/{vmid}/config`. */
function parseConstraints(kind: GuestKind, config: Record<string, unknown>): Constraints {
  const storages = new Set<string>()
  const local: string[] = []
  for (const [key, value] of Object.entries(config)) {
    const text = String(value)
    if (kind === 'lxc' ? /^dev\d+$/.test(key) : isDevice(key, text)) {
      local.push(key)
      continue
    }
    if (!(kind === 'lxc' ? lxcVolume : qemuVolume).test(key)) continue
    const [first = '', ...options] = text.split(',')
    const volume = first.replace(/^(file|volume)=/, '')
    if (volume === 'none') continue
    const storage = /^([a-zA-Z][a-zA-Z0-9._-]*):/.exec(volume)?.[1]
    // Treats a path or drive of the host as local to this node, unless it is marked as shared by
    // all nodes.
    if (storage === undefined) {
      if (!options.includes('shared=1')) local.push(`${key} ${volume}`)
    } else if (!options.includes('shared=1')) storages.add(storage)
  }
  return { storages: [...storages], local }
}

/**
 * Whether a setting is hardware of the guest's node. Sockets and SPICE are not hardware, because
 * another node creates them again.
 */
function isDevice(key: string, value: string): boolean {
  if (!device.test(key)) return false
  return !(key.startsWith('serial') && value === 'socket') && !/^(host=)?spice(,|$)/i.test(value)
}

/** Explains why a guest cannot leave its node. Null for a guest that can leave. */
export function findBlocker(constraints: Constraints, storages: Map<string, Storage>): string | null {
  if (constraints.local.length > 0) return `${constraints.local.join(', ')} is only on its node`
  const own = constraints.storages.filter((name) => !storages.get(name)?.isShared)
  return own.length > 0 ? `the guest has a disk on ${own.join(', ')}, which is not shared` : null
}

/**
 * Lists the nodes that have all storages of a guest. Null if all nodes have them. A guest that
 * cannot move has only its own node.
 */
export function getReachableNodes(
  constraints: Constraints,
  storages: Map<string, Storage>,
  node: string,
  nodes: Iterable<string>,
): string[] | null {
  if (findBlocker(constraints, storages) !== null) return [node]
  const all = [...nodes]
  const reach = all.filter((name) => constraints.storages.every((storage) => storages.get(storage)?.nodes.has(name)))
  return reach.length === all.length ? null : reach
}

/**
 * Milliseconds for which a configuration counts as fresh. Before a move the configuration is read
 * again.
 */
const freshMs = 60_000
/**
 * The most configurations that are read again in one round. All other configurations are old, but
 * known.
 */
const maxRereads = 20
const atOnce = 4
/** Milliseconds after which a slow node is asked about no other guest in this round. */
const askWithinMs = 1_500

const config = z.record(z.string(), z.unknown())
const current = z.object({
  status: z.string(),
  maxmem: z.coerce.number().nonnegative().optional(),
  cpus: z.coerce.number().nonnegative().optional(),
  /** Seconds since the guest's present run began. */
  uptime: z.coerce.number().nonnegative().optional(),
})

type KnownFacts = (cluster: Cluster, signal?: AbortSignal) => Promise<Map<number, GuestFacts>>

/**
 * Reads facts about guests, and keeps the facts while a guest's node is dead. Needs one request per
 * guest at first, then at most 20 per round, and one more for each guest whose state is missing in
 * `GET /cluster/resources`.
 */
export function guestFacts(api: ProxmoxApi): KnownFacts {
  const constraints = new Map<number, { constraints: GuestConfig; readAtMs: number }>()
  const sizes = new Map<number, { ramMib: number; cpuMc: number }>()

  return async (cluster, signal) => {
    const guests = [...cluster.guests.values()].filter((guest) => !guest.isTemplate)
    for (const known of [constraints, sizes]) {
      for (const number of known.keys()) if (!cluster.guests.has(number)) known.delete(number)
    }
    const askable = guests.filter((guest) => cluster.nodes.get(guest.node)?.isOnline)
    const readAt = (guest: Guest) => constraints.get(guest.vmid)?.readAtMs ?? 0
    const old = askable
      .filter((guest) => constraints.has(guest.vmid) && readAt(guest) + freshMs < performance.now())
      .sort((a, b) => readAt(a) - readAt(b))
      .slice(0, maxRereads)
    const silent = new Set<string>()
    await eachOf([...askable.filter((guest) => !constraints.has(guest.vmid)), ...old], async (guest) => {
      if (silent.has(guest.node)) return
      const found = await readConfig(api, guest, signal)
      if (found) constraints.set(guest.vmid, { constraints: found, readAtMs: performance.now() })
      else silent.add(guest.node)
    })

    const asked = new Map<number, z.infer<typeof current>>()
    await eachOf(askable.filter(isUntold), async (guest) => {
      const answer = await readStatus(api, guest, signal)
      if (answer) asked.set(guest.vmid, answer)
      else throw new HttpError('protocol', `${guest.node} does not report whether ${vmIdOf(guest.vmid)} runs`, true)
    })

    return new Map(
      guests.map((guest) => {
        const { maxmem, cpus, status = guest.status } = asked.get(guest.vmid) ?? {}
        const ramMib = guest.ramMib ?? (maxmem ? Math.ceil(maxmem / 1_048_576) : null)
        const cpuMc = guest.cpuMc ?? (cpus ? Math.ceil(cpus * 1_000) : null)
        if (ramMib !== null && cpuMc !== null) sizes.set(guest.vmid, { ramMib, cpuMc })
        const size = sizes.get(guest.vmid) ?? { ramMib: null, cpuMc: null }
        const isRunning = cluster.nodes.get(guest.node)?.isOnline === true && status === 'running'
        const found = constraints.get(guest.vmid)?.constraints ?? null
        // Uses the name in the known configuration if the node's statistics hang and report no
        // names.
        const name = guest.name ?? found?.name ?? null
        return [guest.vmid, { constraints: found, name, addresses: found?.addresses ?? [], isRunning, ...size }]
      }),
    )
  }
}

/** Reads what limits a guest to its node at present. Null if the node does not respond. */
export async function readConfig(api: ProxmoxApi, guest: Guest, signal?: AbortSignal): Promise<GuestConfig | null> {
  const found = await answered(signal, (within) => api.get([...pathOf(guest), 'config'], config, { signal: within }))
  if (!found) return null
  const name = guest.kind === 'lxc' ? found.hostname : found.name
  return {
    ...parseConstraints(guest.kind, found),
    name: typeof name === 'string' ? name : null,
    addresses: parseAddresses(guest.kind, found),
  }
}

/** Reads a guest's present state from its node, not from old statistics. Null for no response. */
export async function readStatus(
  api: ProxmoxApi,
  guest: Guest,
  signal?: AbortSignal,
): Promise<z.infer<typeof current> | null> {
  return await answered(signal, (within) =>
    api.get([...pathOf(guest), 'status', 'current'], current, { signal: within }),
  )
}

/**
 * Returns a node's response. Null if the node does not respond, or has left the cluster. Throws
 * every other error.
 */
async function answered<T>(
  signal: AbortSignal | undefined,
  ask: (within: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const limit = AbortSignal.timeout(askWithinMs)
  try {
    return await ask(signal ? AbortSignal.any([signal, limit]) : limit)
  } catch (error) {
    if (signal?.aborted) throw error
    if (error instanceof PlatformError && error.status >= 500) return null
    if (error instanceof HttpError && (error.code === 'aborted' || error.code === 'timeout')) return null
    throw error
  }
}

/**
 * Whether `GET /cluster/resources` does not show the guest's state. Its node's statistics hang, or
 * the HA manager has just moved the guest and the statistics are still those of the old node.
 */
function isUntold({ status, ha }: Guest): boolean {
  return status === 'unknown' || (ha?.state === 'started' && !ha.isRunning)
}

export function pathOf({ kind, node, vmid }: Pick<Guest, 'kind' | 'node' | 'vmid'>): (string | number)[] {
  return ['nodes', node, kind, vmid]
}

async function eachOf<T>(all: T[], work: (one: T) => Promise<void>): Promise<void> {
  const rest = all.values()
  await Promise.all(
    Array.from({ length: Math.min(atOnce, all.length) }, async () => {
      for (const one of rest) await work(one)
    }),
  )
}
