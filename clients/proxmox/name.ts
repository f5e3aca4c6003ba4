import { z } from 'zod'
import type { Storage } from './cluster.ts'

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

export type Kind = 'qemu' | 'lxc'

/** `vm-101`, for virtual machines and containers alike: the number says which, and a bare number would look like a size. */
export function vmIdOf(number: number): string {
  return `vm-${number}`
}

/** The number in `vm-101`; null for what is no such id. */
export function numberOf(vmId: string): number | null {
  const parsed = vmid.safeParse(/^vm-([1-9]\d*)$/.exec(vmId)?.[1])
  return parsed.success ? parsed.data : null
}

/** What the HA manager calls a guest. */
export function sidOf(kind: Kind, number: number): string {
  return `${kind === 'qemu' ? 'vm' : 'ct'}:${number}`
}

/** What limits where a guest can run: its storages by name, and what exists on its node alone, as `hostpci0` or `mp1 /srv/data`. */
export type Constraints = { storages: string[]; local: string[] }

const qemuVolume = /^(ide|sata|scsi|virtio|efidisk|tpmstate|unused)\d+$|^vmstate$/
const lxcVolume = /^(rootfs|mp\d+|unused\d+)$/
const device = /^(hostpci|usb|parallel|serial|virtiofs)\d+$|^(hostpci|hostusb|ivshmem)$/

/** Reads a guest's configuration, as `GET /nodes/{node}/{kind}/{vmid}/config` answers it. */
export function parseConstraints(kind: Kind, config: Record<string, unknown>): Constraints {
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
    // A path of the host, or its own drive: of this node alone, unless somebody vouches that it is the same everywhere.
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

/** The nodes that have all its storages; null: any. For a guest that cannot leave its node: that node. */
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
