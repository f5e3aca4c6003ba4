import type { Instance } from './instance.ts'

/** VMs of one size: for a lower bound they are all the same. */
export type Kind = {
  ram: number
  cpu: number
  /** What one that leaves frees, rounded up. */
  ramUp: number
  cpuUp: number
  count: number
  /** `ram_mib/cpu_mc`, as a certificate names it. */
  key: string
}

/**
 * The cluster without identities: how many VMs of each size there are, which of them a host has, and the room that is left
 * beside them. VMs that may not move are part of their host. All in whole units, sizes rounded down and room up.
 */
export type Kinds = {
  kinds: Kind[]
  /** Kind of a VM; -1: it may not move, and takes no part. */
  kindOf: Int32Array
  /** Of each target: its movable VMs by kind. */
  has: Int32Array[]
  room: { ram: number; cpu: number }[]
}

/** The most cells of a table of packings. */
const maxUnits = 2_000

/**
 * Null where a host is over its capacity already, which a bound would have to fix first, and where VMs go as one, whose parts a
 * bound cannot tell apart.
 */
export function kindsOf(instance: Instance): Kinds | null {
  const { targets, hostRam, hostCpu, vmRam, vmCpu, home, movable, wanted, weight } = instance
  if (wanted.some((vm) => weight[vm]! > 1)) return null
  const takesPart = movable.map((may) => may)
  for (const vm of wanted) takesPart[vm] = true
  const sizes = takesPart.flatMap((part, vm) => (part ? [vm] : []))
  const ramUnit = unitOf(
    sizes.map((vm) => vmRam[vm]!),
    Math.max(...hostRam.slice(0, targets)),
  )
  const cpuUnit = unitOf(
    sizes.map((vm) => vmCpu[vm]!),
    Math.max(...hostCpu.slice(0, targets)),
  )
  const byKey = new Map<string, number>()
  const kinds: Kind[] = []
  const kindOf = new Int32Array(home.length).fill(-1)
  for (const vm of sizes) {
    const key = `${vmRam[vm]}/${vmCpu[vm]}`
    let kind = byKey.get(key)
    if (kind === undefined) {
      const [ram, cpu] = [vmRam[vm]! / ramUnit, vmCpu[vm]! / cpuUnit]
      kind =
        kinds.push({
          ram: Math.floor(ram),
          cpu: Math.floor(cpu),
          ramUp: Math.ceil(ram),
          cpuUp: Math.ceil(cpu),
          count: 0,
          key,
        }) - 1
      byKey.set(key, kind)
    }
    kinds[kind]!.count += 1
    kindOf[vm] = kind
  }
  const has = Array.from({ length: targets }, () => new Int32Array(kinds.length))
  const freeRam = hostRam.slice(0, targets)
  const freeCpu = hostCpu.slice(0, targets)
  const wantedSet = new Set(wanted)
  for (const [vm, host] of home.entries()) {
    if (host < 0 || host >= targets) continue
    freeRam[host]! -= vmRam[vm]!
    freeCpu[host]! -= vmCpu[vm]!
    if (kindOf[vm]! >= 0 && !wantedSet.has(vm)) has[host]![kindOf[vm]!]! += 1
  }
  if (freeRam.some((ram) => ram < 0) || freeCpu.some((cpu) => cpu < 0)) return null
  const room = freeRam.map((ram, host) => ({
    ram: Math.ceil(ram / ramUnit),
    cpu: Math.ceil(freeCpu[host]! / cpuUnit),
  }))
  return { kinds, kindOf, has, room }
}

/** The largest unit that divides every size, or one coarse enough for a table. */
function unitOf(sizes: number[], capacity: number): number {
  const common = sizes.reduce((a, b) => gcd(a, b), 0) || 1
  return Math.max(common, Math.ceil(capacity / maxUnits))
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b)
}
