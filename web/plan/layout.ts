import type {
  BarredVm,
  PlacementHost,
  PlacementProblem,
  PlacementVm,
  PlanStep,
  Proposal,
} from '../../domain/placement.ts'
import { usableCapacity } from '../../domain/usable-capacity.ts'
import { inertText } from '../inert.tsx'

/**
 * The mark of a VM. `still` and `stopped` are not in the plan, and `down` has no place. `waits` is
 * the place before its step, `leaves` and `comes` are the two ends of a running step, and `moved`
 * is the place afterwards.
 */
type VmMark = 'still' | 'stopped' | 'down' | 'waits' | 'leaves' | 'comes' | 'moved'
/** The start and length of a block, in parts of the bar of the largest host. */
export type VmBlock = Piece & { x: number; width: number }
/** Free capacity in MiB and thousandths of a CPU. Negative if the host is over its capacity. */
type Bar = { blocks: VmBlock[]; freeRamMib: number; freeCpuMc: number }
export type PictureHost = {
  name: string
  rack: string | null
  state: PlacementHost['state']
  ramMib: number
  isTouched: boolean
  before: Bar
  now: Bar
  /**
   * VMs staying down that this host cannot take, in a few words each: `db-2: region osl only`, and
   * as sentences.
   */
  rules: { short: string; text: string }[]
}
export type PlanToDraw = Pick<Proposal, 'intent' | 'steps' | 'unplaced'> & { barred?: readonly BarredVm[] }

type Piece = { vm: string; ramMib: number; cpuMc: number; running: boolean; look: VmMark; step: number | null }

/** The most hosts that are drawn. Only hosts that the plan does not touch are left out. */
const maxHosts = 14

/**
 * Returns the last position of a plan. Position 0 is before the plan, position k is while step k
 * runs and the earlier ones are done, and the position after the last step is after all steps.
 */
export function lastPosition(steps: readonly PlanStep[]): number {
  return steps.length + 1
}

/**
 * Arranges hosts as bars of memory, before the plan and at a position. Hosts that the plan touches
 * come first.
 */
export function layout(problem: PlacementProblem, plan: PlanToDraw, position: number): PictureHost[] {
  const { steps } = plan
  const touched = listAffectedHosts(problem, plan)
  const running = steps[position - 1]
  const shown = shownHosts(problem.hosts, touched, running ? [running.from, running.to] : [])
  const scale = 1 / Math.max(1, ...problem.hosts.map(({ ramMib }) => ramMib))
  const before = listPieces(problem, plan, 0)
  const now = listPieces(problem, plan, position)
  const toBar = (host: PlacementHost, pieces: Piece[]) => bar(pieces, usableCapacity(problem, host), scale)
  return shown.map((host) => ({
    name: host.name,
    rack: host.rack,
    state: host.state,
    ramMib: host.ramMib,
    isTouched: touched.has(host.name),
    before: toBar(host, before.get(host.name) ?? []),
    now: toBar(host, now.get(host.name) ?? []),
    rules: listRules(plan, host.name),
  }))
}

/** Groups the VMs that a host cannot take for the same reason. */
function listRules({ barred = [] }: PlanToDraw, name: string): PictureHost['rules'] {
  const here = barred.filter(({ host }) => host === name)
  return [...Map.groupBy(here, ({ short }) => short)].map(([short, each]) => ({
    short: `not ${each.map(({ vm }) => inertText(vm)).join(', ')}: ${inertText(short)}`,
    text: each.map(({ text }) => inertText(text)).join(' '),
  }))
}

/** Lists the hosts that the plan names or touches. */
export function listAffectedHosts({ hostIds }: PlacementProblem, { steps }: PlanToDraw): Set<string> {
  return new Set([...hostIds, ...steps.flatMap(({ from, to }) => (from ? [from, to] : [to]))])
}

/**
 * Lists the hosts to draw, those that the plan touches first. Both ends of the running step are
 * always included.
 */
function shownHosts(hosts: PlacementHost[], touched: Set<string>, needed: (string | null)[]): PlacementHost[] {
  const sorted = [...hosts].sort((a, b) => Number(touched.has(b.name)) - Number(touched.has(a.name)))
  const must = sorted.filter(({ name }) => needed.includes(name))
  const others = sorted.filter((host) => !must.includes(host)).slice(0, maxHosts - must.length)
  return sorted.filter((host) => must.includes(host) || others.includes(host))
}

/**
 * Lists the VMs on each host at a position: the VMs that were there in the order of the inventory,
 * then those that arrived in the order of the steps.
 */
function listPieces(
  { vms }: PlacementProblem,
  { steps, unplaced }: PlanToDraw,
  position: number,
): Map<string, Piece[]> {
  const now = steps[position - 1]
  const isDone = (step: PlanStep) => steps.indexOf(step) < position - 1
  const ofVm = Map.groupBy(steps, ({ vm }) => vm)
  const down = new Set(unplaced.map(({ vm }) => vm))
  const here: { host: string; order: number; piece: Piece }[] = []
  for (const vm of vms) {
    const own = ofVm.get(vm.vm) ?? []
    const last = own.findLast(isDone)
    const next = own.find((step) => !isDone(step))
    const place = last ? last.to : vm.host
    const piece = { ...getSize(vm), running: last !== undefined || vm.running, step: (next ?? last)?.step ?? null }
    if (next && next === now) {
      here.push({ host: next.to, order: next.step, piece: { ...piece, running: true, look: 'comes' } })
      if (place !== null) here.push({ host: place, order: last?.step ?? 0, piece: { ...piece, look: 'leaves' } })
    } else if (place !== null) {
      const rest = down.has(vm.vm) ? 'down' : vm.running ? 'still' : 'stopped'
      const look = last ? 'moved' : next ? 'waits' : rest
      here.push({ host: place, order: last?.step ?? 0, piece: { ...piece, look } })
    }
  }
  const inOrder = here.sort((a, b) => a.order - b.order)
  return new Map(
    [...Map.groupBy(inOrder, ({ host }) => host)].map(([host, list]) => [host, list.map(({ piece }) => piece)]),
  )
}

function getSize({ vm, ramMib, cpuMc }: PlacementVm) {
  return { vm, ramMib, cpuMc }
}

function bar(pieces: Piece[], capacity: { ramMib: number; cpuMc: number }, scale: number): Bar {
  let x = 0
  const blocks = pieces.map((piece) => {
    const block = { ...piece, x, width: piece.ramMib * scale }
    x += block.width
    return block
  })
  const used = (size: 'ramMib' | 'cpuMc') => pieces.reduce((sum, piece) => sum + (piece.running ? piece[size] : 0), 0)
  return { blocks, freeRamMib: capacity.ramMib - used('ramMib'), freeCpuMc: capacity.cpuMc - used('cpuMc') }
}

/**
 * Formats the free capacity of a live host as `3.5 GiB, 2 CPU free`. Empty for other hosts. With
 * `was`: `12 → 3.5 GiB, 4 → 2 CPU free`.
 */
export function formatFree({ state }: PictureHost, { freeRamMib, freeCpuMc }: Bar, was?: Bar): string {
  if (state !== 'live') return ''
  const isFree = freeRamMib >= 0 && freeCpuMc >= 0
  const change = (from: number | undefined, to: number, unit: number) =>
    from === undefined || from === to || from < 0 ? tenth(to / unit) : `${tenth(from / unit)} → ${tenth(to / unit)}`
  return isFree
    ? `${change(was?.freeRamMib, freeRamMib, 1_024)} GiB, ${change(was?.freeCpuMc, freeCpuMc, 1_000)} CPU free`
    : `over by ${tenth(Math.max(0, -freeRamMib) / 1_024)} GiB, ${tenth(Math.max(0, -freeCpuMc) / 1_000)} CPU`
}

/**
 * Formats a number with one decimal if needed, rounded down, so that the shown free capacity really
 * exists.
 */
function tenth(value: number): string {
  return String(Math.floor(value * 10) / 10)
}

/** Pixels that are enough for every letter of the small type in pictures. */
const letterWidth = 6.7

/** Cuts a text in small type to fit. */
export function fitText(text: string, width: number): string {
  const max = Math.max(1, Math.floor(width / letterWidth))
  return text.length > max ? `${text.slice(0, max - 1)}…` : text
}

/**
 * Returns the text of a block: its name, the number of its step if there is no room for the name,
 * or nothing.
 */
export function getLabel({ vm, step }: VmBlock, width: number): string {
  const name = inertText(vm)
  if (width > name.length * letterWidth + 4) return name
  return step !== null && width > String(step).length * letterWidth + 3 ? String(step) : ''
}

/** Lists the VMs of the plan on a bar by step number, as many as fit: `2 db-1 · 3 web-1`. */
export function listPlanned(blocks: readonly VmBlock[], width: number): string {
  const planned = blocks.filter(({ step }) => step !== null).sort((a, b) => Number(a.step) - Number(b.step))
  const names = planned.map(({ vm, step }) => `${step} ${inertText(vm)}`)
  let shown = names.length
  const write = () => [...names.slice(0, shown), ...(shown < names.length ? [`${names.length - shown} more`] : [])]
  while (shown > 1 && write().join(' · ').length * letterWidth > width) shown -= 1
  return write().join(' · ')
}
