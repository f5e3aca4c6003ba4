import { digestOf } from '../domain/digest.ts'
import type { PlacementProblem, PlanStep } from '../domain/placement.ts'

/** SHA-256 of the ordered steps: what an approval binds. What a step says of its VM besides is no part of what is done. */
export function planDigest(steps: PlanStep[]): string {
  return digestOf(
    steps.map(({ step, action, vm, from, to, needs, wave }) => ({ step, action, vm, from, to, needs, wave })),
  )
}

/**
 * SHA-256 of the facts a plan rests on: hosts, VMs, where they run. The order in which an inventory lists them is no fact;
 * the intent is no fact either, so that two proposals for one state can be compared.
 */
export function stateFingerprint(problem: Pick<PlacementProblem, 'hosts' | 'vms'>): string {
  const hosts = problem.hosts.map(({ name, ramMib, cpuMc, rack, region, state }) => ({
    name,
    ramMib,
    cpuMc,
    rack,
    region,
    state,
  }))
  const vms = problem.vms.map(
    ({ vm, ramMib, cpuMc, haGroup, host, running, priority, pinnedTo, forbiddenHosts, affinityGroup }) => ({
      vm,
      ramMib,
      cpuMc,
      haGroup,
      host,
      running,
      priority,
      affinityGroup,
      pinnedTo: [...pinnedTo].sort(),
      forbiddenHosts: [...forbiddenHosts].sort(),
    }),
  )
  return digestOf({
    hosts: hosts.sort((a, b) => compare(a.name, b.name)),
    vms: vms.sort((a, b) => compare(a.vm, b.vm)),
  })
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

export type State = Pick<PlacementProblem, 'hosts' | 'vms'>

const maxChanges = 5

/** The state after a step that went well. */
export function stateAfter(state: State, { vm, to }: Pick<PlanStep, 'vm' | 'to'>): State {
  return { ...state, vms: state.vms.map((each) => (each.vm === vm ? { ...each, host: to, running: true } : each)) }
}

/** The state with one VM as another state has it: what a step of ours did to it is nobody else's change. */
export function withVmFrom(state: State, vm: string, other: State): State {
  const found = other.vms.find((each) => each.vm === vm)
  return { ...state, vms: state.vms.flatMap((each) => (each.vm !== vm ? [each] : found ? [found] : [])) }
}

/** How what a step touches, by name, is another thing than in this state, whatever runs where; null where it is the same. */
export function describeReplacement(
  approved: State,
  current: State,
  { vm, to }: Pick<PlanStep, 'vm' | 'to'>,
): string | null {
  const [wasVm, isVm] = [approved, current].map(({ vms }) => vms.find((each) => each.vm === vm))
  const [wasHost, isHost] = [approved, current].map(({ hosts }) => hosts.find((each) => each.name === to))
  const vmChange = wasVm && isVm ? describeVmChange(wasVm, isVm) : isVm ? `${vm} is new` : `${vm} is gone`
  return (
    vmChange ?? (wasHost && isHost ? describeHostChange(wasHost, isHost) : isHost ? `${to} is new` : `${to} is gone`)
  )
}

type Host = State['hosts'][number]

function describeHostChange(was: Host, is: Host): string | null {
  if (is.ramMib !== was.ramMib || is.cpuMc !== was.cpuMc) return `${was.name} has another size`
  return is.rack !== was.rack || is.region !== was.region ? `${was.name} stands elsewhere` : null
}

function describeVmChange(was: State['vms'][number], is: State['vms'][number]): string | null {
  if (is.ramMib !== was.ramMib || is.cpuMc !== was.cpuMc) return `${was.vm} has another size`
  return toRuleKey(is) !== toRuleKey(was) ? `${was.vm} has other rules` : null
}

/** What is not as it was expected to be, in words; empty when all is. What a plan does not rest on is not compared. */
export function describeDrift(expected: State, current: State): string[] {
  const changes: string[] = []
  const hosts = new Map(current.hosts.map((host) => [host.name, host]))
  for (const was of expected.hosts) {
    const is = hosts.get(was.name)
    hosts.delete(was.name)
    if (!is) changes.push(`${was.name} is gone`)
    else if (is.state !== was.state) changes.push(`${was.name} is ${is.state} now, it was ${was.state}`)
    else changes.push(...[describeHostChange(was, is)].filter((each) => each !== null))
  }
  for (const name of hosts.keys()) changes.push(`${name} is new`)
  const vms = new Map(current.vms.map((vm) => [vm.vm, vm]))
  for (const was of expected.vms) {
    const is = vms.get(was.vm)
    vms.delete(was.vm)
    if (!is) changes.push(`${was.vm} is gone`)
    else if (is.host !== was.host)
      changes.push(`${was.vm} is on ${is.host ?? 'no host'} now, it was on ${was.host ?? 'none'}`)
    else if (is.running !== was.running)
      changes.push(`${was.vm} was ${is.running ? 'started' : 'stopped'} by somebody else`)
    else changes.push(...[describeVmChange(was, is)].filter((each) => each !== null))
  }
  for (const name of vms.keys()) changes.push(`${name} is new`)
  return changes.length > maxChanges
    ? [...changes.slice(0, maxChanges), `and ${changes.length - maxChanges} more`]
    : changes
}

function toRuleKey({ haGroup, affinityGroup, pinnedTo, forbiddenHosts }: State['vms'][number]): string {
  return JSON.stringify([haGroup, affinityGroup, [...pinnedTo].sort(), [...forbiddenHosts].sort()])
}
