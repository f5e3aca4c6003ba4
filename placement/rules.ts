import type { PlacementHost, PlacementProblem, PlacementVm } from '../domain/placement.ts'

/**
 * The only definition of which VMs a plan covers, and to which hosts each VM may go. Search, bound,
 * check of certificates and replay all use it, so that a proof holds for exactly the plans that the
 * replay accepts. Ignores capacity and HA groups, which change from step to step.
 */
export type PlacementRules = {
  problem: PlacementProblem
  hostOf: Map<string, PlacementHost>
  /** Hosts that the plan empties or recovers from. */
  evacuatedHosts: Set<string>
  /** The host of each running VM. */
  place: Map<string, string>
  /** VMs that must get a place, or leave their present host. */
  stranded: Set<string>
  /** Hosts that may take a VM. */
  targets: Set<string>
  /** The members of each affinity group that run and are not stranded, by group. */
  affinityPeers: Map<string, AffinityPeers>
  /** VMs that run on a target and may be moved to make room. All other running VMs stay. */
  movable: Set<string>
  /**
   * Stranded VMs of an affinity group that were together on one host, or on no host. They go to one
   * host together, or stay down.
   */
  coLocated: PlacementVm[][]
}

/** `best` is the host with most members of the group, to which all other members go. */
type AffinityPeers = { members: string[]; hosts: number; best: string }

/**
 * A restriction that keeps a VM from a host regardless of capacity. `far`: no VM of this plan could
 * ever go to the host.
 */
export type Restriction =
  | { kind: 'state'; state: 'dead' | 'draining' | 'left' | 'far' }
  | { kind: 'region'; region: string }
  | { kind: 'pinned'; to: string[] }
  | { kind: 'forbidden' }
  | { kind: 'failed'; why: string }
  | { kind: 'beside'; group: string; member: string; on: string }

/** Reads the rules of a valid problem. They do not depend on the order of an inventory. */
export function readRules(problem: PlacementProblem): PlacementRules {
  const isRebalance = problem.intent === 'rebalance'
  const hostOf = new Map(problem.hosts.map((host) => [host.name, host]))
  const vms = [...problem.vms].sort((a, b) => compare(a.vm, b.vm))
  const named = problem.vmIds === null ? null : new Set(problem.vmIds)
  const open = named === null ? vms : vms.filter(({ vm }) => named.has(vm))
  const evacuatedHosts = new Set(isRebalance ? [] : problem.hostIds)
  const place = new Map<string, string>()
  for (const { vm, host, running } of vms) {
    if (running && host !== null && hostOf.get(host)?.state !== 'dead') place.set(vm, host)
  }
  const isStranded = ({ host, running }: PlacementVm) => {
    // Starts a VM that was never placed only if the request names it.
    if (host === null) return named !== null
    return evacuatedHosts.has(host) && (hostOf.get(host)?.state === 'dead' || (problem.intent === 'drain' && running))
  }
  const strandedVms = isRebalance ? [] : open.filter(isStranded)
  const stranded = new Set(strandedVms.map(({ vm }) => vm))
  const facts = { problem, hostOf, evacuatedHosts, place, stranded }
  const targets = selectTargets(facts, open, strandedVms)
  const affinityPeers = groupAffinityPeers(
    targets,
    place,
    vms.filter(({ vm }) => place.has(vm) && !stranded.has(vm)),
  )
  const sought = new Set(strandedVms.map(({ affinityGroup }) => affinityGroup))
  const movable = open.filter(({ vm, affinityGroup }) => {
    if (stranded.has(vm) || !targets.has(place.get(vm) ?? '')) return false
    const own = affinityPeers.get(affinityGroup ?? '')
    // Keeps affinity peers that are together on one host, or that stranded VMs will join, because
    // moving all of them would not be worth the room.
    return affinityGroup === null || !own || own.hosts > 1 || (own.members.length === 1 && !sought.has(affinityGroup))
  })
  const coLocated = Map.groupBy(
    strandedVms.filter(({ affinityGroup }) => affinityGroup !== null),
    ({ vm, affinityGroup }) => JSON.stringify([place.get(vm) ?? null, affinityGroup]),
  )
  return {
    ...facts,
    targets,
    affinityPeers,
    movable: new Set(movable.map(({ vm }) => vm)),
    coLocated: [...coLocated.values()],
  }
}

/**
 * Lists every restriction that keeps this VM from this host. Empty if the VM may go there, given
 * enough capacity.
 */
export function listRestrictions(rules: PlacementRules, vm: PlacementVm, host: PlacementHost): Restriction[] {
  const { pinnedTo, forbiddenHosts, affinityGroup } = vm
  const region = regionOf(rules, vm)
  const peers = findPeersToJoin(rules, vm)
  const restrictions: Restriction[] = []
  if (host.state !== 'live') restrictions.push({ kind: 'state', state: host.state })
  else if (rules.evacuatedHosts.has(host.name)) restrictions.push({ kind: 'state', state: 'left' })
  if (region !== null && host.region !== null && region !== host.region) restrictions.push({ kind: 'region', region })
  if (pinnedTo.length > 0 && !pinnedTo.includes(host.name)) restrictions.push({ kind: 'pinned', to: pinnedTo })
  if (forbiddenHosts.includes(host.name)) restrictions.push({ kind: 'forbidden' })
  const failed = rules.problem.avoided?.find((each) => each.vm === vm.vm && each.host === host.name)
  if (failed) restrictions.push({ kind: 'failed', why: failed.why })
  if (peers && peers.best !== host.name) {
    const member = peers.members.find((name) => rules.place.get(name) === peers.best) as string
    restrictions.push({ kind: 'beside', group: affinityGroup as string, member, on: peers.best })
  }
  if (restrictions.length === 0 && !rules.targets.has(host.name)) restrictions.push({ kind: 'state', state: 'far' })
  return restrictions
}

/** Returns a key that is equal for all VMs with the same possible hosts. */
export function toRuleKey(rules: PlacementRules, vm: PlacementVm): string {
  const best = findPeersToJoin(rules, vm)?.best ?? null
  const failed = (rules.problem.avoided ?? []).flatMap((each) => (each.vm === vm.vm ? [each.host] : []))
  return JSON.stringify([regionOf(rules, vm), [...vm.pinnedTo].sort(), [...vm.forbiddenHosts, ...failed].sort(), best])
}

/**
 * Returns the failure domain of a host: the host itself, or its rack. A rack belongs to one region.
 */
export function failureDomainOf(
  { useRackConstraints }: Pick<PlacementProblem, 'useRackConstraints'>,
  { name, rack, region }: PlacementHost,
): string {
  return useRackConstraints && rack !== null ? JSON.stringify(['rack', region, rack]) : JSON.stringify(['host', name])
}

/**
 * Groups hosts by failure domain, each with a name. The region is added to the name of racks with
 * equal names.
 */
export function nameFailureDomains(
  problem: Pick<PlacementProblem, 'useRackConstraints'>,
  hosts: PlacementHost[],
): { name: string; hosts: PlacementHost[] }[] {
  const domains = [...Map.groupBy(hosts, (host) => failureDomainOf(problem, host)).values()].map((members) => {
    const { name, rack, region } = members[0] as PlacementHost
    return { name: (problem.useRackConstraints && rack) || name, region, hosts: members }
  })
  return domains.map(({ name, region, hosts: members }) => {
    const isTwice = domains.filter((each) => each.name === name).length > 1
    return { name: isTwice && region !== null ? `${region} ${name}` : name, hosts: members }
  })
}

/** Selects live hosts that are not evacuated, in the regions to which a VM of this plan may go. */
function selectTargets(
  { problem, hostOf, evacuatedHosts, place }: Pick<PlacementRules, 'problem' | 'hostOf' | 'evacuatedHosts' | 'place'>,
  open: PlacementVm[],
  stranded: PlacementVm[],
): Set<string> {
  const takes = ({ name, state }: PlacementHost) => state === 'live' && !evacuatedHosts.has(name)
  // Takes the hosts of all regions if a VM runs on a host without a region: such a VM may go to
  // every region to make room.
  const mayRoam = open.some(({ vm }) => {
    const host = hostOf.get(place.get(vm) ?? '')
    return host !== undefined && host.region === null && takes(host)
  })
  const near = new Set(stranded.map((vm) => regionOf({ hostOf }, vm)))
  const isNear = ({ region }: PlacementHost) => mayRoam || near.has(null) || region === null || near.has(region)
  const taking = problem.hosts.filter((host) => takes(host) && (problem.intent === 'rebalance' || isNear(host)))
  return new Set(taking.map(({ name }) => name))
}

function groupAffinityPeers(
  targets: Set<string>,
  place: Map<string, string>,
  running: PlacementVm[],
): Map<string, AffinityPeers> {
  const grouped = Map.groupBy(
    running.filter(({ affinityGroup }) => affinityGroup !== null),
    ({ affinityGroup }) => affinityGroup as string,
  )
  return new Map(
    [...grouped].map(([group, members]) => {
      const byHost = [...Map.groupBy(members, ({ vm }) => place.get(vm) as string)]
      byHost.sort(
        ([a, one], [b, two]) =>
          Number(targets.has(b)) - Number(targets.has(a)) || two.length - one.length || compare(a, b),
      )
      return [group, { members: members.map(({ vm }) => vm), hosts: byHost.length, best: byHost[0]![0] }]
    }),
  )
}

/** Finds the affinity peers whose host this VM has to join. Undefined for a VM without peers. */
function findPeersToJoin(
  { affinityPeers }: PlacementRules,
  { vm, affinityGroup }: PlacementVm,
): AffinityPeers | undefined {
  const own = affinityGroup === null ? undefined : affinityPeers.get(affinityGroup)
  return own?.members.length === 1 && own.members[0] === vm ? undefined : own
}

function regionOf({ hostOf }: Pick<PlacementRules, 'hostOf'>, { host }: PlacementVm): string | null {
  return host === null ? null : (hostOf.get(host)?.region ?? null)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
