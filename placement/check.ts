import { type PlacementProblem, placementProblem } from '../domain/placement.ts'

export type Flaw = { path: string; message: string }

/** The placement problem is malformed. `flaws` lists every invalid field. */
export class InvalidProblemError extends Error {
  override name = 'InvalidProblemError' as const
  readonly flaws: Flaw[]
  constructor(flaws: Flaw[]) {
    super(`not a placement problem: ${flaws.map(({ path, message }) => `${path}: ${message}`).join('; ')}`)
    this.flaws = flaws
  }
}

const maxFlaws = 10

/** Throws InvalidProblemError for what no inventory can be: invalid sizes, duplicate names, unknown names. */
export function checkProblem(given: unknown): PlacementProblem {
  const parsed = placementProblem.safeParse(given)
  if (!parsed.success) {
    throw new InvalidProblemError(
      parsed.error.issues.slice(0, maxFlaws).map(({ path, message }) => ({ path: formatPath(path), message })),
    )
  }
  const problem = parsed.data
  const flaws = [...findDuplicateNames(problem), ...findUnknownNames(problem), ...findContradictions(problem)]
  if (flaws.length > 0) throw new InvalidProblemError(flaws.slice(0, maxFlaws))
  return problem
}

function formatPath(path: readonly PropertyKey[]): string {
  return path.map(String).join('.') || 'the problem'
}

function findDuplicateNames({ hosts, vms }: PlacementProblem): Flaw[] {
  const flaws: Flaw[] = []
  const seen = new Set<string>()
  for (const [index, { name }] of hosts.entries()) {
    if (seen.has(name)) flaws.push({ path: `hosts.${index}.name`, message: `host ${name} is listed twice` })
    seen.add(name)
  }
  seen.clear()
  for (const [index, { vm }] of vms.entries()) {
    if (seen.has(vm)) flaws.push({ path: `vms.${index}.vm`, message: `VM ${vm} is listed twice` })
    seen.add(vm)
  }
  return flaws
}

function findUnknownNames({ hosts, vms, hostIds, vmIds }: PlacementProblem): Flaw[] {
  const flaws: Flaw[] = []
  const hostNames = new Set(hosts.map(({ name }) => name))
  const vmNames = new Set(vms.map(({ vm }) => vm))
  const needHost = (path: string, name: string) => {
    if (!hostNames.has(name)) flaws.push({ path, message: `host ${name} is unknown` })
  }
  for (const [index, { host, running, pinnedTo, forbiddenHosts }] of vms.entries()) {
    if (host !== null) needHost(`vms.${index}.host`, host)
    else if (running) flaws.push({ path: `vms.${index}.running`, message: 'it is running nowhere' })
    for (const [at, name] of pinnedTo.entries()) needHost(`vms.${index}.pinnedTo.${at}`, name)
    for (const [at, name] of forbiddenHosts.entries()) needHost(`vms.${index}.forbiddenHosts.${at}`, name)
  }
  for (const [index, name] of hostIds.entries()) needHost(`hostIds.${index}`, name)
  for (const [index, name] of (vmIds ?? []).entries()) {
    if (!vmNames.has(name)) flaws.push({ path: `vmIds.${index}`, message: `VM ${name} is unknown` })
  }
  return flaws
}

/** VMs that are to be together and apart. */
function findContradictions({ vms }: PlacementProblem): Flaw[] {
  const flaws: Flaw[] = []
  const firsts = new Map<string, string>()
  for (const [index, { vm, haGroup, affinityGroup }] of vms.entries()) {
    if (haGroup === null || affinityGroup === null) continue
    const key = JSON.stringify([haGroup, affinityGroup])
    const first = firsts.get(key)
    const message = `is to be with ${first} (${affinityGroup}) and apart from it (${haGroup})`
    if (first !== undefined) flaws.push({ path: `vms.${index}.affinityGroup`, message: `${vm} ${message}` })
    firsts.set(key, first ?? vm)
  }
  return flaws
}
