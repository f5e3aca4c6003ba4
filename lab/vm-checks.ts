import type { PlatformView } from './look.ts'
import type { OracleVerdict } from './oracle.ts'
import type { Fault, Lab } from './state.ts'
import type { HostPlan, VmPlan } from './topology.ts'
import { counterOf, hostsRunning } from './vm.ts'

type Check = OracleVerdict['checks'][number]

/** Checks that all VMs of a dead host run elsewhere. */
export function allRecovered(lab: Lab, look: PlatformView, fault: Fault): Check[] {
  const lost = Object.keys(fault.counters).filter((vm) => !fault.readOnly.includes(vm))
  return [
    ...lost.flatMap((vm) => [runsOnce(lab, look, vm), keptCounter(lab, fault, vm)]),
    ...fault.readOnly.map((vm) => runsNowhere(lab, vm)),
    ...rules(lab),
  ]
}

/** Checks that all VMs left a host that is to be emptied, without an interruption. */
export function checkEmptied(lab: Lab, look: PlatformView, fault: Fault): Check[] {
  const left = lab.topology.vms.filter(({ id }) => hostsRunning(lab, id).includes(fault.on)).map(({ id }) => id)
  const empty = { name: `${fault.on} is empty`, ok: left.length === 0, detail: left.join(', ') || 'empty' }
  return [empty, ...allRecovered(lab, look, fault)]
}

/**
 * Checks a loss of hosts whose VMs exceed the free room: the most important VMs run, and no host
 * has room for the others.
 */
export function checkMostRecovered(lab: Lab, look: PlatformView, fault: Fault): Check[] {
  const lost = Object.keys(fault.counters)
  const up = lost.filter((vm) => hostsRunning(lab, vm).length > 0)
  return [
    ...up.flatMap((vm) => [runsOnce(lab, look, vm), keptCounter(lab, fault, vm)]),
    ...lost.filter((vm) => !up.includes(vm)).map((vm) => hasNoRoom(lab, look, vm, up)),
    ...rules(lab),
  ]
}

/** Checks a loss that fits nowhere in its region: no VM may have moved because of the loss. */
export function checkNothingMoved(lab: Lab, fault: Fault): Check[] {
  const regionOf = (host: string) => lab.topology.hosts.find(({ id }) => id === host)!.region
  const moved = Object.entries(fault.placement).filter(
    ([vm, host]) => regionOf(host) === regionOf(fault.on) && lab.placement[vm] !== host,
  )
  const detail = moved.map(([vm, host]) => `${vm} was on ${host}`).join(', ') || 'all are'
  return [
    ...Object.keys(fault.counters).map((vm) => runsNowhere(lab, vm)),
    { name: 'every VM of the region is defined where it was', ok: moved.length === 0, detail },
    ...rules(lab),
  ]
}

function runsOnce(lab: Lab, look: PlatformView, vm: string): Check {
  const hosts = hostsRunning(lab, vm)
  const isLive = look.hosts.some(({ id, state }) => id === hosts[0] && state === 'live')
  return { name: `${vm} runs exactly once, on a live host`, ok: hosts.length === 1 && isLive, detail: where(hosts) }
}

function keptCounter(lab: Lab, fault: Fault, vm: string): Check {
  const now = counterOf(lab, vm)
  const before = fault.counters[vm]!
  return { name: `${vm} did not lose its counter`, ok: now >= before, detail: `${now}, was ${before}` }
}

function runsNowhere(lab: Lab, vm: string): Check {
  const hosts = hostsRunning(lab, vm)
  return { name: `${vm} was not started`, ok: hosts.length === 0, detail: where(hosts) }
}

function where(hosts: string[]): string {
  return hosts.length === 0 ? 'runs nowhere' : `runs on ${hosts.join(' and ')}`
}

/**
 * Checks that a VM fits on no host of its region, even without the less important VMs that were
 * recovered there.
 */
function hasNoRoom(lab: Lab, look: PlatformView, id: string, recovered: string[]): Check {
  const vm = lab.topology.vms.find((each) => each.id === id)!
  const { region } = lab.topology.hosts.find((host) => host.id === lab.placement[id])!
  const live = look.hosts.filter((host) => host.state === 'live' && host.region === region)
  const yielding = lab.topology.vms.filter((each) => recovered.includes(each.id) && each.priority < vm.priority)
  const fitting = live.filter((host) => {
    const others = running(lab, host).filter((each) => !yielding.includes(each))
    return fits(host, [...others, vm]) && !others.some(({ haGroup }) => haGroup !== null && haGroup === vm.haGroup)
  })
  const detail = fitting.map((host) => host.id).join(', ')
  return { name: `${id} has no room`, ok: fitting.length === 0, detail: detail ? `fits on ${detail}` : 'fits nowhere' }
}

/**
 * Checks rules that apply at every end: no host has more VMs than it can run, and no two VMs of a
 * group are on one host.
 */
function rules(lab: Lab): Check[] {
  return [...capacityChecks(lab), ...groupChecks(lab)]
}

function capacityChecks(lab: Lab): Check[] {
  return lab.topology.hosts.map((host) => {
    const on = running(lab, host)
    const detail = `${ramOf(on)} of ${host.ramMib} MiB, ${cpuOf(on)} of ${host.cpuMc} millicores`
    return { name: `${host.id} has enough memory and CPU for its VMs`, ok: fits(host, on), detail }
  })
}

function groupChecks(lab: Lab): Check[] {
  const grouped = lab.topology.vms.filter(({ haGroup }) => haGroup !== null)
  return [...Map.groupBy(grouped, ({ haGroup }) => haGroup!)].map(([group, members]) => {
    const hosts = members.flatMap(({ id }) => hostsRunning(lab, id))
    const ok = new Set(hosts).size === hosts.length
    return { name: `the VMs of ${group} run on different hosts`, ok, detail: hosts.join(', ') }
  })
}

function running(lab: Lab, host: { id: string }): VmPlan[] {
  return lab.topology.vms.filter(({ id }) => hostsRunning(lab, id).includes(host.id))
}

function fits(host: Pick<HostPlan, 'ramMib' | 'cpuMc'>, vms: VmPlan[]): boolean {
  return ramOf(vms) <= host.ramMib && cpuOf(vms) <= host.cpuMc
}

function ramOf(vms: VmPlan[]): number {
  return vms.reduce((sum, { ramMib }) => sum + ramMib, 0)
}

function cpuOf(vms: VmPlan[]): number {
  return vms.reduce((sum, { cpuMc }) => sum + cpuMc, 0)
}
