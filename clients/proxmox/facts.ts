import { z } from 'zod'
import { HttpError } from '../http.ts'
import { PlatformError } from '../platform.ts'
import type { ProxmoxApi } from './api.ts'
import type { GuestFacts } from './client.ts'
import type { Cluster, Guest, Storage } from './cluster.ts'

/** A node's name: a host name without dots. */
export const nodeName = z
  .string()
  .max(63)
  .regex(/^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$/, 'is not the name of a node')

/** The number of a guest. Virtual machines and containers share one row of numbers. */
export const vmid = z
  .union([z.number(), z.string().regex(/^\d{3,9}$/)])
  .transform(Number)
  .pipe(z.number().int().min(100).max(999_999_999))

/** Perl's booleans, as JSON has them: 1, "1", true, and their opposites. */
export const flag = z
  .union([z.boolean(), z.number(), z.string()])
  .transform((given) => /^(1|true)$/.test(String(given)))

export type GuestKind = 'qemu' | 'lxc'

/**
 * `vm-101`, for virtual machines and containers: the number says which, and alone it would look
 * like a size.
 */
export function vmIdOf(number: number): string {
  return `vm-${number}`
}

/** The number in `vm-101`; null for what is no such id. */
export function numberOf(vmId: string): number | null {
  const parsed = vmid.safeParse(/^vm-([1-9]\d*)$/.exec(vmId)?.[1])
  return parsed.success ? parsed.data : null
}

/** What the HA manager calls a guest. */
export function sidOf(kind: GuestKind, number: number): string {
  return `${kind === 'qemu' ? 'vm' : 'ct'}:${number}`
}

/**
 * Limits on a guest's place: its storages by name, and what only its node has, as `hostpci0` or
 * `mp1 /srv/data`.
 */
export type Constraints = { storages: string[]; local: string[] }

/** A guest's configuration: its limits, its name and its addresses. */
type GuestConfig = Constraints & { name: string | null; addresses: string[] }

/**
 * Addresses in a container's `net0: name=eth0,ip=10.0.0.5/24` and a virtual machine's `ipconfig0:
 * ip=10.0.0.5/24`; none by DHCP.
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

/** Reads a guest's configuration, as `GET /nodes/{node}/{kind}/{vmid}/config` answers it. */
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
    // A path of the host, or its own drive: of this node alone, unless somebody vouches that it is
    // the same everywhere.
    if (storage === undefined) {
      if (!options.includes('shared=1')) local.push(`${key} ${volume}`)
    } else if (!options.includes('shared=1')) storages.add(storage)
  }
  return { storages: [...storages], local }
}

/** Sockets and SPICE are created again on another node. */
function isDevice(key: string, value: string): boolean {
  if (!device.test(key)) return false
  return !(key.startsWith('serial') && value === 'socket') && !/^(host=)?spice(,|$)/i.test(value)
}

/** Why a guest cannot leave its node, in words; null when nothing keeps it. */
export function findBlocker(constraints: Constraints, storages: Map<string, Storage>): string | null {
  if (constraints.local.length > 0) return `${constraints.local.join(', ')} is of its node alone`
  const own = constraints.storages.filter((name) => !storages.get(name)?.isShared)
  return own.length > 0 ? `it has a disk on ${own.join(', ')}, which is not shared` : null
}

/** Nodes with all its storages; null: any. For a guest that cannot leave its node: that node. */
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

/** The time a configuration counts as read. Before a move it is read again, whatever its age. */
const freshMs = 60_000
/** Most that are read again in one go: the rest is old, but known. */
const maxRereads = 20
const atOnce = 4
/** A node that takes longer to tell of one guest is not asked of its others this time. */
const askWithinMs = 1_500

const config = z.record(z.string(), z.unknown())
const current = z.object({
  status: z.string(),
  maxmem: z.coerce.number().nonnegative().optional(),
  cpus: z.coerce.number().nonnegative().optional(),
  /** Seconds since its present run began. */
  uptime: z.coerce.number().nonnegative().optional(),
})

type KnownFacts = (cluster: Cluster, signal?: AbortSignal) => Promise<Map<number, GuestFacts>>

/**
 * Facts of guests, remembered while their node is dead. Cost one request a guest at first, then 20
 * at most each time; one more for each guest whose state `GET /cluster/resources` cannot tell.
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
      else throw new HttpError('protocol', `${guest.node} does not tell whether ${vmIdOf(guest.vmid)} runs`, true)
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
        // A node with hanging statistics gives no names: those of the known configuration stand in.
        const name = guest.name ?? found?.name ?? null
        return [guest.vmid, { constraints: found, name, addresses: found?.addresses ?? [], isRunning, ...size }]
      }),
    )
  }
}

/** What constraints a guest to its node, read now; null when its node does not tell. */
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

/** A guest now, by its node and not by statistics of seconds ago; null when its node is silent. */
export async function readStatus(
  api: ProxmoxApi,
  guest: Guest,
  signal?: AbortSignal,
): Promise<z.infer<typeof current> | null> {
  return await answered(signal, (within) =>
    api.get([...pathOf(guest), 'status', 'current'], current, { signal: within }),
  )
}

/** Null where a node does not answer, or left while asked. Every other fault is thrown. */
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
 * Whether `GET /cluster/resources` leaves its state open: with hanging statistics, and just after
 * the HA manager moved it, since they are still the old node's.
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
