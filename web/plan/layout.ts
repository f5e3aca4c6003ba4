import type { PlacementProblem, PlacementVm, PlanStep } from '../../domain/placement.ts'

export type Block = { vm: string; ramMib: number; running: boolean; step: number | null; x: number; width: number }
export type HostRow = {
  name: string
  rack: string | null
  state: 'live' | 'draining' | 'dead'
  usedBefore: number
  usedAfter: number
  ramMib: number
  before: Block[]
  after: Block[]
}

/** Hosts beyond this are those that nothing happens to. */
const maxHosts = 14

/** Where every VM is before and after the steps, as bars by memory: hosts that the plan touches first. */
export function layout(problem: PlacementProblem, steps: PlanStep[], barWidth: number): HostRow[] {
  const stepOf = new Map(steps.map((step) => [step.vm, step.step]))
  const after = problem.vms.map((vm) => {
    const last = steps.findLast((step) => step.vm === vm.vm)
    return last ? { ...vm, host: last.to, running: true } : vm
  })
  const touched = new Set([...problem.hostIds, ...steps.flatMap(({ from, to }) => (from ? [from, to] : [to]))])
  const hosts = [...problem.hosts].sort((a, b) => Number(touched.has(b.name)) - Number(touched.has(a.name)))
  const largest = Math.max(1, ...hosts.map(({ ramMib }) => ramMib))
  const on = (vms: PlacementVm[], host: string) => vms.filter((vm) => vm.host === host)
  const used = (vms: PlacementVm[]) => vms.reduce((sum, vm) => sum + (vm.running ? vm.ramMib : 0), 0)
  const blocks = (vms: PlacementVm[]): Block[] => {
    let x = 0
    return vms.map(({ vm, ramMib, running }) => {
      const width = (ramMib / largest) * barWidth
      const block = { vm, ramMib, running, step: stepOf.get(vm) ?? null, x, width }
      x += width
      return block
    })
  }
  return hosts.slice(0, maxHosts).map((host) => ({
    name: host.name,
    rack: host.rack,
    state: host.state,
    ramMib: host.ramMib,
    usedBefore: used(on(problem.vms, host.name)),
    usedAfter: used(on(after, host.name)),
    before: blocks(on(problem.vms, host.name)),
    after: blocks(on(after, host.name)),
  }))
}
