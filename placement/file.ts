import { z } from 'zod'
import { type PlacementProblem, placementIntent, placementLimits } from '../domain/placement.ts'
import { checkProblem, type Flaw, InvalidProblemError } from './check.ts'
import { domainOf } from './rules.ts'

const name = z.string().min(1).max(200)
const names = z.array(name).max(1_000)
const ramMib = z.number().int().positive().max(1_000_000_000)
const cpuMc = z.number().int().positive().max(1_000_000_000)

const fileHost = z.strictObject({
  name,
  ram_mib: ramMib,
  cpu_mc: cpuMc,
  rack: name.nullish(),
  region: name.nullish(),
  state: z.enum(['live', 'draining', 'dead']).default('live'),
})

const fileVm = z.strictObject({
  /** Numbers as Proxmox VE has them, or names. */
  vmid: z.union([name, z.number().int().positive()]).transform(String),
  ram_mib: ramMib,
  cpu_mc: cpuMc,
  ha_group: name.nullish(),
  affinity_group: name.nullish(),
  host: name.nullish(),
  /** Without it: whether its host lives. */
  running: z.boolean().optional(),
  priority: z.number().int().min(0).max(1_000).default(0),
  pinned_to: z.union([name.transform((one) => [one]), names]).default([]),
  forbidden_hosts: names.default([]),
})

/**
 * A problem as somebody writes it down (docs/explanation/placement.md). Without `host_ids`, all dead hosts are recovered from, or all draining ones
 * drained.
 */
export const placementFile = z.strictObject({
  intent: placementIntent.default('recover'),
  host_ids: names.optional(),
  vm_ids: z
    .array(z.union([name, z.number().int().positive()]).transform(String))
    .max(20_000)
    .optional(),
  use_rack_constraints: z.boolean().default(false),
  cpu_overcommit_percent: placementLimits.shape.cpuOvercommitPercent,
  ram_reserve_percent: placementLimits.shape.ramReservePercent,
  hosts: z.array(fileHost).min(1).max(5_000),
  vms: z.array(fileVm).max(50_000),
})
export type PlacementFile = z.infer<typeof placementFile>

/**
 * The problem that somebody wrote down. Throws InvalidProblemError with the path of every field that is wrong, in the words of
 * the file. Stricter than an inventory is taken: a group that no cluster of these hosts could keep apart is a mistake here.
 */
export function problemOfFile(given: unknown): PlacementProblem {
  const parsed = placementFile.safeParse(given)
  if (!parsed.success) {
    throw new InvalidProblemError(
      parsed.error.issues
        .slice(0, 10)
        .map(({ path, message }) => ({ path: path.map(String).join('.') || 'the problem', message })),
    )
  }
  const problem = problemOf(parsed.data)
  try {
    checkProblem(problem)
  } catch (error) {
    if (error instanceof InvalidProblemError) throw new InvalidProblemError(error.flaws.map(inWordsOfFile))
    throw error
  }
  const flaws = groupsTooLarge(problem)
  if (flaws.length > 0) throw new InvalidProblemError(flaws)
  return problem
}

function problemOf(file: PlacementFile): PlacementProblem {
  const stateOf = new Map(file.hosts.map((host) => [host.name, host.state]))
  const isAbout = file.intent === 'drain' ? 'draining' : 'dead'
  const concerned = file.hosts.filter(({ state }) => state === isAbout).map((host) => host.name)
  return {
    intent: file.intent,
    hostIds: file.host_ids ?? (file.intent === 'rebalance' ? [] : concerned),
    vmIds: file.vm_ids ?? null,
    useRackConstraints: file.use_rack_constraints,
    limits: { cpuOvercommitPercent: file.cpu_overcommit_percent, ramReservePercent: file.ram_reserve_percent },
    hosts: file.hosts.map(({ name, ram_mib, cpu_mc, rack, region, state }) => ({
      ...{ name, ramMib: ram_mib, cpuMc: cpu_mc, rack: rack ?? null, region: region ?? null, state },
    })),
    vms: file.vms.map((vm) => ({
      ...{ vm: vm.vmid, ramMib: vm.ram_mib, cpuMc: vm.cpu_mc, haGroup: vm.ha_group ?? null, host: vm.host ?? null },
      running: vm.running ?? (vm.host != null && stateOf.get(vm.host) !== 'dead'),
      ...{ priority: vm.priority, pinnedTo: vm.pinned_to, forbiddenHosts: vm.forbidden_hosts },
      affinityGroup: vm.affinity_group ?? null,
    })),
  }
}

function inWordsOfFile({ path, message }: Flaw): Flaw {
  return { path: path.replace(/\.vm$/, '.vmid').replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), message }
}

function groupsTooLarge({ hosts, vms, useRackConstraints }: PlacementProblem): Flaw[] {
  const domains = new Set(hosts.map((host) => domainOf({ useRackConstraints }, host))).size
  const grouped = Map.groupBy(
    [...vms.entries()].filter(([, { haGroup }]) => haGroup !== null),
    ([, vm]) => vm.haGroup as string,
  )
  return [...grouped].flatMap(([group, members]) => {
    if (members.length <= domains) return []
    const kind = useRackConstraints ? 'racks' : 'hosts'
    const message = `HA group ${group} has ${members.length} members to keep apart and there are ${domains} ${kind}`
    return [{ path: `vms.${members[domains]![0]}.ha_group`, message }]
  })
}
