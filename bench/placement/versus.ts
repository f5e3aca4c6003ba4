import { writeFileSync } from 'node:fs'
import type { Plan } from '../../domain/placement.ts'
import { solve } from '../../placement/solve.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { median } from '../stage.ts'
import { findBreaks } from './checker.ts'
import { watchCpu } from './cpu.ts'
import { type Drawn, drawCluster, familyNames, type Scale, takesScale, toFile } from './drawn.ts'
import { findOrder, type Order, toSequentialPlan } from './order.ts'
import { askCpSat, type CpSatAnswer, findPython, howToInstall } from './rival.ts'
import { readWorld, type World } from './world.ts'

/**
 * Compares plans for generated clusters with CP-SAT in the same run. CP-SAT solves each cluster in
 * two usual ways: the whole model at once, and in stages. `SEED` repeats a run. `FAMILIES`,
 * `SCALES` (small, middle, large, big) and `EACH` select the clusters. `ORDER_SECONDS` limits the
 * search for an order.
 */
export async function versus(): Promise<void> {
  const firstSeed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e6))
  const scales = (process.env.SCALES ?? 'small,middle').split(',') as Scale[]
  const chosen = process.env.FAMILIES?.split(',') ?? familyNames
  const each = Number(process.env.EACH ?? 3)
  const python = findPython()
  console.log(
    `\nplacement: drawn clusters, SEED=${firstSeed}, ${seconds} s each, ${python ? 'CP-SAT with 2 workers beside' : howToInstall}`,
  )
  // Plans once before measuring, because a running product has a warm process.
  for (const scale of scales)
    await solve(drawCluster('hetero', scale === 'big' ? 'large' : scale, 1)!.problem, { timeoutMs: 2_000 })
  const all: Outcome[] = []
  for (const scale of scales) {
    for (const family of chosen.filter((name) => takesScale(name, scale))) {
      const own: Outcome[] = []
      for (let seed = firstSeed; own.length < each && seed < firstSeed + 10 * each; seed += 1) {
        const drawn = drawCluster(family, scale, seed)
        if (drawn) own.push(await compareOne(drawn, python))
      }
      if (own.length > 0) printRow(`${family} ${scale}`, own)
      else console.log(`${family} ${scale}: no cluster that holds before its failure was found`)
      all.push(...own)
    }
  }
  printRow('all', all)
  for (const { name, told } of all) for (const line of told) console.log(`  ${name}: ${line}`)
}

const seconds = Number(process.env.SECONDS ?? 15)
/**
 * The outcome for one cluster. `verdict` compares the migrations, or, if the cluster is overfull,
 * the VMs left down.
 */
type Outcome = {
  name: string
  isTriage: boolean
  verdict: 'equal' | 'better' | 'dearer' | 'missed' | 'worse' | 'no order' | 'open'
  cpu: number
  rival: number | null
  breaks: number
  told: string[]
}

async function compareOne(drawn: Drawn, python: string | null): Promise<Outcome> {
  const { name, problem, isOverfull } = drawn
  const watch = watchCpu()
  const plan = await solve(problem, { timeoutMs: seconds * 1_000, seed: 1 })
  const cpu = watch.stop()
  const breaks = findBreaks(problem, plan)
  const world = readWorld(problem)
  const isTriage = isOverfull || plan.state === 'infeasible' || plan.obstacle !== null
  const shared = { name, isTriage, cpu, breaks: breaks.length, told: breaks.map((each) => `BREAKS ${each}`) }
  if (!python) return { ...shared, verdict: 'open', rival: null }
  const answers = (['whole', 'stages'] as const).map((ask) =>
    askCpSat(python, world, { ask, triage: isOverfull, seconds }),
  )
  const proved = answers.filter(({ status, proved }) => status === 'OPTIMAL' || proved)
  const rival = Math.min(...(proved.length > 0 ? proved : answers).map(({ cpu }) => cpu))
  const best = (proved[0] ?? answers.find(({ place }) => place)) as CpSatAnswer | undefined
  if (!best?.place) return { ...shared, verdict: 'open', rival }
  const alone = answers.find((answer) => answer.alone)?.alone ?? null
  const found = best.status === 'TRIAGE' ? judgeTriage(drawn, plan, best, alone) : judgeMigrations(drawn, plan, best)
  return { ...shared, isTriage: best.status === 'TRIAGE', ...found, rival, told: [...shared.told, ...found.told] }
}

type Judged = Pick<Outcome, 'verdict' | 'told'>

const orderSeconds = Number(process.env.ORDER_SECONDS ?? 60)

function judgeMigrations(drawn: Drawn, plan: Plan, { place, status }: CpSatAnswer): Judged {
  const [world, { hostIds }] = [readWorld(drawn.problem), drawn.problem]
  const ends = place as number[]
  const theirs = world.units.reduce(
    (sum, { stranded, home, weight }, unit) => sum + (!stranded && home !== ends[unit] ? weight : 0),
    0,
  )
  // Leaves out VMs on a drained host, because they move in every plan.
  const ours = plan.steps.filter(({ action, from }) => action === 'migrate' && !hostIds.includes(from ?? '')).length
  const forced = world.units.reduce((sum, { stranded, vms }) => sum + (stranded && vms[0]?.running ? vms.length : 0), 0)
  const said =
    plan.lowerBound > theirs + forced
      ? [`CONTRADICTS at least ${plan.lowerBound} (${plan.proof.kind}): ${theirs + forced} end places`]
      : []
  if (plan.state === 'planned' && ours < theirs)
    return {
      verdict: 'better',
      told: status === 'OPTIMAL' ? [...said, `CONTRADICTS CP-SAT: ${ours} of ${theirs}`] : said,
    }
  if (plan.state === 'planned' && ours === theirs) return { verdict: 'equal', told: said }
  const order = findSoundOrder(drawn, world, ends)
  const what = plan.state === 'planned' ? `${ours} migrations` : `${plan.state}, ${plan.unplaced.length} down`
  if (!order || (plan.state === 'planned' && order.migrations >= ours))
    return {
      verdict: 'no order',
      told: [
        ...said,
        `${what}; ${theirs} ${status}, but ${order ? `an order takes ${order.migrations}` : 'no order was found'}`,
      ],
    }
  return {
    verdict: plan.state === 'planned' ? 'dearer' : 'missed',
    told: [
      ...said,
      ...(plan.obstacle ? ['CONTRADICTS that there is no place for all'] : []),
      `${what}; ${order.migrations} do, in an order`,
    ],
  }
}

/**
 * Finds an order that the bench's checker and the planner's replay both accept. Writes the cluster
 * and the plan into the folder `OUT`, if set, for `nightshift placement verify`.
 */
function findSoundOrder({ name, problem }: Drawn, world: World, ends: readonly number[]): Order | null {
  const order = findOrder(world, ends, orderSeconds)
  if (!order) return null
  const plan = toSequentialPlan(world, order)
  const replayed = verifyPlan(problem, plan)
  const breaks = [...findBreaks(problem, plan), ...(replayed.ok ? [] : [replayed.reason])]
  if (breaks.length > 0) throw new Error(`${name}: the order that this bench found is none: ${breaks[0]}`)
  if (process.env.OUT) {
    writeFileSync(`${process.env.OUT}/${name}.json`, JSON.stringify(toFile(problem)))
    writeFileSync(`${process.env.OUT}/${name}.plan.json`, JSON.stringify(plan))
  }
  return order
}

function judgeTriage(
  drawn: Drawn,
  plan: Plan,
  { place, proved }: CpSatAnswer,
  alone: readonly number[] | null,
): Judged {
  const world = readWorld(drawn.problem)
  const ends = place as number[]
  const isDown = new Set(plan.unplaced.map(({ vm }) => vm))
  const ours = countDown(world, (vm) => isDown.has(vm))
  const theirs = countDown(world, (_, unit) => ends[unit]! < 0)
  const [us, them] = [ours, theirs].map((each) => each.map(([priority, count]) => `${priority}: ${count}`).join(', '))
  const isWorseThanAlone =
    alone !== null &&
    compareDown(
      ours,
      countDown(world, (_, unit) => alone[unit]! < 0),
    ) > 0
  const said = isWorseThanAlone ? ['WORSE THAN STARTS ALONE'] : []
  const order = compareDown(ours, theirs)
  if (order === 0) return { verdict: 'equal', told: said }
  const told = `down by priority ${us}; CP-SAT ${them}${proved ? ' (proved)' : ''}`
  if (order < 0) return { verdict: proved ? 'worse' : 'better', told: [...said, proved ? `CONTRADICTS ${told}` : told] }
  const found = findSoundOrder(drawn, world, ends)
  const how = found ? `with an order of ${found.moves.length} moves` : 'no order was found'
  return { verdict: found ? 'worse' : 'no order', told: [...said, `${told}, ${how}`] }
}

type Down = [priority: number, count: number][]

/** Counts how many VMs of each priority are left down, the most important first. */
function countDown({ units }: World, isLeft: (vm: string, unit: number) => boolean): Down {
  const stranded = units.flatMap(({ vms, stranded: is }, unit) => (is ? vms.map((vm) => ({ ...vm, unit })) : []))
  const byPriority = Map.groupBy(stranded, ({ priority }) => priority)
  const down = [...byPriority].map(([priority, vms]): Down[number] => [
    priority,
    vms.filter(({ vm, unit }) => isLeft(vm, unit)).length,
  ])
  return down.sort(([a], [b]) => b - a)
}

/** Compares two counts of VMs left down. Above 0 if the first leaves more important VMs down. */
function compareDown(one: Down, other: Down): number {
  return one.map(([, count], level) => count - other[level]![1]).find((difference) => difference !== 0) ?? 0
}

const head = [
  'family',
  'n',
  'equal',
  'better',
  'dearer',
  'missed',
  'worse',
  'no order',
  'open',
  'breaks',
  'claims',
  'CPU s',
  'CP-SAT',
  'ratio',
  '75 %',
  '90 %',
]
let hasHead = false

/**
 * Prints one row of the table. The ratio is the planner's CPU time divided by CP-SAT's, in the
 * cheaper of the methods that proved their result.
 */
function printRow(name: string, own: Outcome[]): void {
  const pad = (cells: (string | number)[]) =>
    cells.map((cell, index) => (index === 0 ? String(cell).padEnd(16) : String(cell).padStart(9))).join('')
  if (!hasHead) console.log(pad(head))
  hasHead = true
  const of = (verdict: Outcome['verdict']) => own.filter((each) => each.verdict === verdict).length
  const ratios = own.flatMap(({ cpu, rival }) => (rival ? [cpu / rival] : [])).sort((a, b) => a - b)
  const at = (share: number) =>
    ratios.length > 0 ? ratios[Math.min(ratios.length - 1, Math.ceil(share * ratios.length) - 1)]!.toFixed(2) : '-'
  const rivals = own.flatMap(({ rival }) => rival ?? [])
  console.log(
    pad([
      name,
      own.length,
      ...(['equal', 'better', 'dearer', 'missed', 'worse', 'no order', 'open'] as const).map(of),
      own.reduce((sum, { breaks }) => sum + breaks, 0),
      own.reduce((sum, { told }) => sum + told.filter((line) => line.startsWith('CONTRADICTS')).length, 0),
      median(own.map(({ cpu }) => cpu)).toFixed(3),
      rivals.length > 0 ? median(rivals).toFixed(3) : '-',
      at(0.5),
      at(0.75),
      at(0.9),
    ]),
  )
}
