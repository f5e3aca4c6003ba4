import type { PlacementProblem, PlanStep } from '../domain/placement.ts'

export type State = Pick<PlacementProblem, 'hosts' | 'vms'>

const told = 5

/** The state after a step that went well. */
export function stateAfter(state: State, { vm, to }: Pick<PlanStep, 'vm' | 'to'>): State {
  return { ...state, vms: state.vms.map((each) => (each.vm === vm ? { ...each, host: to, running: true } : each)) }
}

/** The state with one VM as another state has it: what a step of ours did to it is nobody else's change. */
export function withVmOf(state: State, vm: string, other: State): State {
  const found = other.vms.find((each) => each.vm === vm)
  return { ...state, vms: state.vms.flatMap((each) => (each.vm !== vm ? [each] : found ? [found] : [])) }
}

/** What is not as it was expected to be, in words; empty when all is. What a plan does not rest on is not compared. */
export function driftOf(expected: State, current: State): string[] {
  const changes: string[] = []
  const hosts = new Map(current.hosts.map((host) => [host.name, host]))
  for (const was of expected.hosts) {
    const is = hosts.get(was.name)
    hosts.delete(was.name)
    if (!is) changes.push(`${was.name} is gone`)
    else if (is.state !== was.state) changes.push(`${was.name} is ${is.state} now, it was ${was.state}`)
    else if (is.ramMib !== was.ramMib || is.cpuMc !== was.cpuMc) changes.push(`${was.name} has another size`)
    else if (is.rack !== was.rack || is.region !== was.region) changes.push(`${was.name} stands elsewhere`)
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
    else if (is.ramMib !== was.ramMib || is.cpuMc !== was.cpuMc) changes.push(`${was.vm} has another size`)
    else if (rulesOf(is) !== rulesOf(was)) changes.push(`${was.vm} has other rules`)
  }
  for (const name of vms.keys()) changes.push(`${name} is new`)
  return changes.length > told ? [...changes.slice(0, told), `and ${changes.length - told} more`] : changes
}

function rulesOf({ haGroup, affinityGroup, pinnedTo, forbiddenHosts }: State['vms'][number]): string {
  return JSON.stringify([haGroup, affinityGroup, [...pinnedTo].sort(), [...forbiddenHosts].sort()])
}
