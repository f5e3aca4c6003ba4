import { z } from 'zod'
import { formatCount, formatList } from '../domain/format.ts'
import { type PlacementProblem, placementIntent, placementLimits, placementMaxima } from '../domain/placement.ts'
import { listFaults } from '../domain/schema-faults.ts'
import { checkProblem, type Flaw, InvalidProblemError } from './certificate.ts'
import { findNameFlaws } from './names.ts'
import { failureDomainOf } from './rules.ts'

const maxFlaws = 10

const name = z.string().min(1).max(200)
const names = z.array(name).max(placementMaxima.hostIds)
const size = z.number().max(1_000_000_000).int().positive()
const reserve = z.number().max(1_000_000_000).int().nonnegative()
/** The name of a VM, or its number as in Proxmox VE. */
const vmid = z.preprocess(
  (given) => (typeof given === 'number' && Number.isSafeInteger(given) && given > 0 ? String(given) : given),
  z
    .string({
      error: ({ input }) =>
        `${input === undefined ? 'it is missing' : 'it is not a name'}: give a name, or a whole number from 1`,
    })
    .min(1, 'give at least 1 character')
    .max(200, 'give at most 200 characters'),
)

const fileHost = z.strictObject({
  name,
  ram_mib: size,
  cpu_mc: size,
  /** RAM that is reserved for the host itself, and that no VM may use. */
  ram_reserve_mib: reserve.optional(),
  cpu_reserve_mc: reserve.optional(),
  rack: name.nullish(),
  region: name.nullish(),
  state: z.enum(['live', 'draining', 'dead']).default('live'),
})

const fileVm = z.strictObject({
  vmid,
  ram_mib: size,
  cpu_mc: size,
  ha_group: name.nullish(),
  affinity_group: name.nullish(),
  host: name.nullish(),
  /** Whether the VM runs. Default: true if the VM's host is alive. */
  running: z.boolean().optional(),
  priority: z.number().int().min(0).max(1_000).default(0),
  pinned_to: z.preprocess((given) => (typeof given === 'string' ? [given] : given), names).default([]),
  forbidden_hosts: names.default([]),
})

/**
 * A problem file (docs/explanation/placement.md). Without `host_ids`, the plan recovers all dead
 * hosts, or drains all draining hosts.
 */
const placementFile = z.strictObject({
  intent: placementIntent.default('recover'),
  host_ids: names.optional(),
  vm_ids: z.array(vmid).max(placementMaxima.vmIds).optional(),
  use_rack_constraints: z.boolean().default(false),
  cpu_overcommit_percent: placementLimits.shape.cpuOvercommitPercent,
  ram_reserve_percent: placementLimits.shape.ramReservePercent,
  hosts: z.array(fileHost).min(1).max(placementMaxima.hosts),
  vms: z.array(fileVm).max(placementMaxima.vms),
})
type PlacementFile = z.infer<typeof placementFile>

/**
 * Reads a problem file. Throws InvalidProblemError with the path of each wrong field, by the names
 * in the file. Stricter than for an inventory: a group that these hosts could never keep apart
 * counts as a mistake.
 */
export function readProblemFile(given: unknown): PlacementProblem {
  const parsed = placementFile.safeParse(given)
  if (!parsed.success) throw new InvalidProblemError(toFlaws(parsed.error))
  const problem = toProblem(parsed.data)
  const named = [...findMisleadingNames(parsed.data), ...findLargeReserves(parsed.data)]
  if (named.length > 0) throw new InvalidProblemError(named.slice(0, maxFlaws))
  try {
    checkProblem(problem)
  } catch (error) {
    if (error instanceof InvalidProblemError) throw new InvalidProblemError(error.flaws.map(toFileWords))
    throw error
  }
  const flaws = findOversizedGroups(problem)
  if (flaws.length > 0) throw new InvalidProblemError(flaws)
  return problem
}

/** Returns only the first error of each field, because later errors of a field follow from it. */
function toFlaws(error: z.ZodError): Flaw[] {
  const first = new Map<string, string>()
  for (const { field, message } of listFaults(error, 10 * maxFlaws)) {
    if (!first.has(field)) first.set(field, message)
  }
  return [...first].slice(0, maxFlaws).map(([field, message]) => ({ path: field || 'the problem', message }))
}

function findMisleadingNames({ hosts, vms }: PlacementFile): Flaw[] {
  const ofHosts = (kind: string, field: 'name' | 'rack' | 'region') =>
    findNameFlaws({ kind, names: hosts.map((host) => host[field]), pathOf: (index) => `hosts.${index}.${field}` })
  const ofVms = (kind: string, field: 'vmid' | 'ha_group' | 'affinity_group') =>
    findNameFlaws({ kind, names: vms.map((vm) => vm[field]), pathOf: (index) => `vms.${index}.${field}` })
  return [
    ...ofHosts('host', 'name'),
    ...ofHosts('rack', 'rack'),
    ...ofHosts('region', 'region'),
    ...ofVms('VM', 'vmid'),
    ...ofVms('HA group', 'ha_group'),
    ...ofVms('affinity group', 'affinity_group'),
  ]
}

function findLargeReserves({ hosts }: PlacementFile): Flaw[] {
  return hosts.flatMap(({ ram_mib, cpu_mc, ram_reserve_mib = 0, cpu_reserve_mc = 0 }, index) => [
    ...(ram_reserve_mib > ram_mib
      ? [{ path: `hosts.${index}.ram_reserve_mib`, message: `it is more than the host has: give at most ${ram_mib}` }]
      : []),
    ...(cpu_reserve_mc > cpu_mc
      ? [{ path: `hosts.${index}.cpu_reserve_mc`, message: `it is more than the host has: give at most ${cpu_mc}` }]
      : []),
  ])
}

/**
 * Explains why a problem file requests nothing although work is needed. Null for a file that
 * requests something, or if no work is needed. Otherwise an empty plan would look like good news.
 */
export function findIdleRequest({ intent, hostIds, vmIds, hosts, vms }: PlacementProblem): Flaw | null {
  if (intent === 'rebalance' || vmIds !== null) return null
  const named = hosts.filter(({ name }) => hostIds.includes(name))
  if (intent === 'drain') {
    const isNone = named.length === 0
    return isNone
      ? { path: 'host_ids', message: 'no host is draining and no host is named: name the hosts to empty' }
      : null
  }
  if (named.some(({ state }) => state === 'dead')) return null
  const down = describeDown({ hosts, vms }, hostIds)
  if (named.length === 0) return down === null ? null : { path: 'host_ids', message: `it names no host, and ${down}` }
  const [first] = named
  const message = `host ${first?.name} is ${first?.state}, so nothing can be recovered from it${down === null ? '' : `, but ${down}`}`
  return { path: 'host_ids.0', message }
}

/**
 * Formats `host a is dead and has 2 VMs` for dead hosts that are not named. Null if none of them
 * has a VM.
 */
export function describeDown(
  { hosts, vms }: Pick<PlacementProblem, 'hosts' | 'vms'>,
  named: readonly string[],
): string | null {
  const counts = hosts
    .filter(({ name, state }) => state === 'dead' && !named.includes(name))
    .map(({ name }) => ({ name, count: vms.filter(({ host }) => host === name).length }))
    .filter(({ count }) => count > 0)
  if (counts.length === 0) return null
  const told = counts.slice(0, 5).map(({ name, count }) => `host ${name} is dead and has ${formatCount(count, 'VM')}`)
  return formatList(counts.length > 5 ? [...told, `${counts.length - 5} more`] : told)
}

function toProblem(file: PlacementFile): PlacementProblem {
  const stateOf = new Map(file.hosts.map((host) => [host.name, host.state]))
  const isAbout = file.intent === 'drain' ? 'draining' : 'dead'
  const concerned = file.hosts.filter(({ state }) => state === isAbout).map((host) => host.name)
  return {
    intent: file.intent,
    hostIds: file.host_ids ?? (file.intent === 'rebalance' ? [] : concerned),
    vmIds: file.vm_ids ?? null,
    useRackConstraints: file.use_rack_constraints,
    limits: { cpuOvercommitPercent: file.cpu_overcommit_percent, ramReservePercent: file.ram_reserve_percent },
    hosts: file.hosts.map(({ name, ram_mib, cpu_mc, ram_reserve_mib, cpu_reserve_mc, rack, region, state }) => ({
      name,
      ramMib: ram_mib,
      cpuMc: cpu_mc,
      ...(ram_reserve_mib !== undefined && { ramReserveMib: ram_reserve_mib }),
      ...(cpu_reserve_mc !== undefined && { cpuReserveMc: cpu_reserve_mc }),
      rack: rack ?? null,
      region: region ?? null,
      state,
    })),
    vms: file.vms.map((vm) => ({
      vm: vm.vmid,
      ramMib: vm.ram_mib,
      cpuMc: vm.cpu_mc,
      haGroup: vm.ha_group ?? null,
      host: vm.host ?? null,
      running: vm.running ?? (vm.host != null && stateOf.get(vm.host) !== 'dead'),
      priority: vm.priority,
      pinnedTo: vm.pinned_to,
      forbiddenHosts: vm.forbidden_hosts,
      affinityGroup: vm.affinity_group ?? null,
    })),
  }
}

function toFileWords({ path, message }: Flaw): Flaw {
  return { path: path.replace(/\.vm$/, '.vmid').replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), message }
}

function findOversizedGroups({ hosts, vms, useRackConstraints }: PlacementProblem): Flaw[] {
  const domains = new Set(hosts.map((host) => failureDomainOf({ useRackConstraints }, host))).size
  const grouped = Map.groupBy(
    [...vms.entries()].filter(([, { haGroup }]) => haGroup !== null),
    ([, vm]) => vm.haGroup as string,
  )
  return [...grouped].flatMap(([group, members]) => {
    if (members.length <= domains) return []
    const there = `there ${domains === 1 ? 'is' : 'are'} ${formatCount(domains, useRackConstraints ? 'rack' : 'host')}`
    const message = `HA group ${group} has ${members.length} members to keep apart and ${there}`
    return [{ path: `vms.${members[domains]![0]}.ha_group`, message }]
  })
}
