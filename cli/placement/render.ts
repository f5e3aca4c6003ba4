import { capitalize, formatCount, formatList } from '../../domain/format.ts'
import { formatDown, formatPlanProof, formatStanding, formatWhyDown, toTriageTold } from '../../domain/format-plan.ts'
import type { PlacementHost, PlacementProblem, PlacementVm, Plan, PlanStep } from '../../domain/placement.ts'
import { formatSteps } from '../ui/table.ts'
import { getTerminalWidth, inert, paint, wrap } from '../ui/terminal.ts'

const endingByState: Record<Plan['state'], string> = {
  no_action: 'There is nothing to do.',
  planned: 'All VMs have a place.',
  partial: 'Not all VMs have a place.',
  infeasible: 'It is proved that no plan exists.',
  not_found: 'No plan was found in time. A plan may still exist.',
}

/**
 * Formats a plan: steps by wave, the proof, the VMs that stay down and why, and the state
 * afterwards.
 */
export function formatPlan(problem: PlacementProblem, plan: Plan): string {
  const starts = plan.steps.length - plan.migrations
  const blocks = [
    `${paint('bold', formatHeadline(problem))} ${paint(plan.state === 'planned' ? 'green' : 'reset', endingByState[plan.state])}`,
    ...(plan.steps.length > 0 ? [formatSteps(plan.steps)] : []),
    ...(plan.steps.length > 0
      ? [wrapLine(`${formatCount(starts, 'start')}. ${capitalize(formatPlanProof(plan, plan.proof))}.`)]
      : []),
    ...(plan.unplaced.length > 0 ? [formatUnplaced(plan)] : []),
    ...(plan.unplaced.length > 0 && plan.state !== 'not_found'
      ? [
          wrapLine(
            inert(formatWhyDown({ ...plan, obstacle: plan.obstacle?.text ?? null, triage: toTriageTold(plan.triage) })),
          ),
        ]
      : []),
    ...(plan.standing && plan.steps.length > 0 ? [wrapLine(inert(formatStanding(plan.standing)))] : []),
  ]
  if (plan.isTimeUp && plan.steps.length > 0)
    blocks.push(wrapLine('The search ran out of time. With more time (--timeout) the search may find another plan.'))
  return blocks.join('\n\n')
}

/** Formats the first line of a plan, such as `Recover from host-1 and host-2.` */
function formatHeadline({ intent, hostIds }: PlacementProblem): string {
  const words = { recover: 'Recover from', drain: 'Drain', rebalance: 'Rebalance' }
  return `${words[intent]} ${intent === 'rebalance' ? 'the cluster' : inert(formatList(hostIds)) || 'no host'}.`
}

function formatUnplaced({ unplaced }: Plan): string {
  const rows = unplaced.map(
    ({ vm, reason }) => `  ${wrap(`${inert(vm)}: ${inert(reason)}`, getTerminalWidth() - 4, '    ')}`,
  )
  return [paint(['bold', 'red'], `${formatDown(unplaced.length)}:`), ...rows].join('\n')
}

function wrapLine(text: string): string {
  return wrap(text, getTerminalWidth())
}

const nameColumns = 17
const barColumns = 18

export const legend = '█ runs  ▓ comes  ▒ leaves  × down  · free'

type Kind = 'runs' | 'comes' | 'leaves' | 'down'
/** The VMs that use the memory of a host at one time, by what they do. */
type Load = Record<Kind, PlacementVm[]>

/** Draws the memory of every affected host, before and after all steps, in 80 columns. */
export function drawOverview(problem: PlacementProblem, steps: readonly PlanStep[]): string[] {
  const touched = listTouchedHosts(problem, steps)
  const head = ['', 'before', 'after']
  const lines = touched.flatMap((host) => {
    const before = computeLoad(problem, host, [], [])
    const after = computeLoad(problem, host, steps, [])
    const came = after.runs.filter(({ vm }) => !before.runs.some((each) => each.vm === vm))
    const left = before.runs.filter(({ vm }) => !after.runs.some((each) => each.vm === vm))
    const stays = before.runs.filter((vm) => !left.includes(vm))
    const bars = [
      drawBar(host, { ...before, runs: stays, leaves: left }),
      drawBar(host, { ...after, runs: stays, comes: came }),
    ]
    const numbers =
      host.state === 'dead'
        ? `${before.down.length} → ${after.down.length} VMs down`
        : `${formatGib(sumUsed(before))} → ${formatGib(sumUsed(after))} of ${formatGib(host.ramMib)} GiB`
    return [`${formatHostName(host)}${bars.join('  ')}  ${numbers}`, ...formatChanges(came, left)]
  })
  const rest = problem.hosts.length - touched.length
  return [
    paint('dim', `${head[0]!.padEnd(nameColumns)}${head[1]!.padEnd(barColumns + 2)}${head[2]}`),
    ...lines,
    ...(rest > 0 ? [paint('dim', `and ${rest} more that do not change`)] : []),
  ]
}

/** Draws the hosts of one wave while it runs. A migrating VM uses memory on both hosts. */
export function drawWave(problem: PlacementProblem, done: readonly PlanStep[], wave: readonly PlanStep[]): string[] {
  return listTouchedHosts({ ...problem, hostIds: [] }, wave).flatMap((host) => {
    const load = computeLoad(problem, host, done, wave)
    const numbers =
      host.state === 'dead'
        ? `${formatCount(load.down.length, 'VM')} down`
        : `${formatGib(sumUsed(load))} of ${formatGib(host.ramMib)} GiB`
    return [`${formatHostName(host)}${drawBar(host, load)}  ${numbers}`, ...formatChanges(load.comes, load.leaves)]
  })
}

function listTouchedHosts({ hosts, hostIds }: PlacementProblem, steps: readonly PlanStep[]): PlacementHost[] {
  const formatList = new Set([...hostIds, ...steps.flatMap(({ from, to }) => [from, to])])
  return hosts.filter(({ name }) => formatList.has(name))
}

function computeLoad(
  { vms, hosts, hostIds }: PlacementProblem,
  host: PlacementHost,
  done: readonly PlanStep[],
  now: readonly PlanStep[],
): Load {
  const dead = new Set(hosts.filter(({ state }) => state === 'dead').map(({ name }) => name))
  const goneTo = new Map(done.map(({ vm, to }) => [vm, to]))
  const goesTo = new Map(now.map(({ vm, to }) => [vm, to]))
  const load: Load = { runs: [], comes: [], leaves: [], down: [] }
  for (const vm of vms) {
    const isUp = goneTo.has(vm.vm) || (vm.running && vm.host !== null && !dead.has(vm.host))
    const at = goneTo.get(vm.vm) ?? vm.host
    if (goesTo.get(vm.vm) === host.name) load.comes.push(vm)
    else if (at !== host.name) continue
    else if (isUp) load[goesTo.has(vm.vm) ? 'leaves' : 'runs'].push(vm)
    else if (hostIds.includes(host.name) && dead.has(host.name) && !goesTo.has(vm.vm)) load.down.push(vm)
  }
  return load
}

function drawBar({ ramMib }: PlacementHost, load: Load): string {
  const marks = [
    { sign: '█', style: 'reset', vms: load.runs },
    { sign: '▒', style: 'yellow', vms: load.leaves },
    { sign: '▓', style: 'green', vms: load.comes },
    { sign: '×', style: 'red', vms: load.down },
  ] as const
  let used = 0
  let at = 0
  const parts = marks.map(({ sign, style, vms }) => {
    used += sumMemory(vms)
    // Makes every part of the bar at least one cell wide.
    const min = vms.length > 0 ? at + 1 : at
    const end = Math.min(barColumns, Math.max(min, Math.round((used / ramMib) * barColumns)))
    const cells = sign.repeat(Math.max(0, end - at))
    at = Math.max(at, end)
    return cells === '' ? '' : paint(style, cells)
  })
  return `${parts.join('')}${'·'.repeat(barColumns - at)}`
}

function formatChanges(came: PlacementVm[], left: PlacementVm[]): string[] {
  if (came.length + left.length === 0) return []
  const named = [...came.map(({ vm }) => `+${vm}`), ...left.map(({ vm }) => `−${vm}`)]
    .map((each) => inert(each))
    .join(' ')
  const counted = [came.length > 0 ? `+${came.length} VMs` : '', left.length > 0 ? `−${left.length} VMs` : '']
  const room = 80 - nameColumns
  return [`${' '.repeat(nameColumns)}${named.length <= room ? named : counted.filter(Boolean).join(' ')}`]
}

function formatHostName({ name, state }: PlacementHost): string {
  const text = inert(name)
  const room = nameColumns - 1 - (state === 'live' ? 0 : state.length + 1)
  const cut = text.length > room ? `${text.slice(0, room - 1)}…` : text
  return `${cut}${state === 'live' ? '' : ` ${state}`}`.padEnd(nameColumns)
}

function sumUsed({ runs, comes, leaves }: Load): number {
  return sumMemory(runs) + sumMemory(comes) + sumMemory(leaves)
}

function sumMemory(vms: readonly PlacementVm[]): number {
  return vms.reduce((total, { ramMib }) => total + ramMib, 0)
}

/** Formats GiB, with one decimal if needed. */
function formatGib(mib: number): string {
  return String(Math.round((mib / 1_024) * 10) / 10)
}
