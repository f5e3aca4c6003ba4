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

/** How what a step touches, by name, is another thing than in this state, whatever runs where; null where it is the same. */
export function replacedIn(approved: State, current: State, { vm, to }: Pick<PlanStep, 'vm' | 'to'>): string | null {
  const [wasVm, isVm] = [approved, current].map(({ vms }) => vms.find((each) => each.vm === vm))
  const [wasHost, isHost] = [approved, current].map(({ hosts }) => hosts.find((each) => each.name === to))
  const vmChange = wasVm && isVm ? changeOfVm(wasVm, isVm) : isVm ? `${vm} is new` : `${vm} is gone`
  return vmChange ?? (wasHost && isHost ? changeOfHost(wasHost, isHost) : isHost ? `${to} is new` : `${to} is gone`)
}

type Host = State['hosts'][number]

function changeOfHost(was: Host, is: Host): string | null {
  if (is.ramMib !== was.ramMib || is.cpuMc !== was.cpuMc) return `${was.name} has another size`
  return is.rack !== was.rack || is.region !== was.region ? `${was.name} stands elsewhere` : null
}

function changeOfVm(was: State['vms'][number], is: State['vms'][number]): string | null {
  if (is.ramMib !== was.ramMib || is.cpuMc !== was.cpuMc) return `${was.vm} has another size`
  return rulesOf(is) !== rulesOf(was) ? `${was.vm} has other rules` : null
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
    else changes.push(...[changeOfHost(was, is)].filter((each) => each !== null))
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
    else changes.push(...[changeOfVm(was, is)].filter((each) => each !== null))
  }
  for (const name of vms.keys()) changes.push(`${name} is new`)
  return changes.length > told ? [...changes.slice(0, told), `and ${changes.length - told} more`] : changes
}

function rulesOf({ haGroup, affinityGroup, pinnedTo, forbiddenHosts }: State['vms'][number]): string {
  return JSON.stringify([haGroup, affinityGroup, [...pinnedTo].sort(), [...forbiddenHosts].sort()])
}
