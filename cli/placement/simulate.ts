import type { Command } from 'commander'
import { formatCount, formatList } from '../../domain/format.ts'
import type { PlacementProblem, Plan } from '../../domain/placement.ts'
import { nameFailureDomains } from '../../placement/rules.ts'
import { CommandFailed } from '../api.ts'
import { formatTable } from '../ui/table.ts'
import { collectValues, inert, paint, print, printJson, printNote } from '../ui/terminal.ts'
import { drawWave, formatPlan, legend } from './render.ts'
import {
  exitByState,
  readProblemInTime,
  type SolveOptions,
  solveWithProgress,
  withGap,
  withSolveOptions,
} from './solve.ts'

type SimulateOptions = SolveOptions & Changes

export function addSimulateCommand(parent: Command): void {
  withSolveOptions(
    parent
      .command('simulate')
      .description(
        'kill or drain hosts of a file, then show the plan wave by wave; without these: try the loss of each host',
      )
      .argument('<file>', 'hosts and VMs as YAML or JSON; - for stdin')
      .option('--kill <host>', 'this host is down; repeatable', collectValues, [])
      .option('--drain <host>', 'this host must be emptied; repeatable', collectValues, []),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift placement simulate cluster.yaml\n  nightshift placement simulate cluster.yaml --kill host-3 --drain host-4\n\nExits as "placement plan" does; with 8 when a death would leave VMs without a place.',
    )
    .action(async (file: string, options: SimulateOptions) => {
      const [problem, left] = await readProblemInTime(file, options)
      if (options.kill.length + options.drain.length === 0) return await simulateEachDeath(problem, left)
      const changed = applyChanges(problem, options)
      const plan = await solveWithProgress(changed, left)
      if (options.json) printJson(withGap(plan))
      else print([formatPlan(changed, plan), ...formatWaves(changed, plan)].join('\n\n'))
      exitByState(plan)
    })
}

function formatWaves(problem: PlacementProblem, { steps }: Plan): string[] {
  const waves = [...new Set(steps.map(({ wave }) => wave))].sort((a, b) => a - b)
  const pictures = waves.map((wave) => {
    const now = steps.filter((step) => step.wave === wave)
    const done = steps.filter((step) => step.wave < wave)
    const title = `Wave ${wave} of ${waves.length}, while ${now.length === 1 ? 'its step runs' : `its ${now.length} steps run`}`
    return [paint('bold', title), ...drawWave(problem, done, now)].join('\n')
  })
  return pictures.length > 0 ? [...pictures, legend] : []
}

type Death = { name: string; hosts: string[]; vms: number; outcome: string; plan: Plan | null }

/** Simulates the loss of each live host, or with rack constraints of each rack, one at a time. */
async function simulateEachDeath(problem: PlacementProblem, options: SimulateOptions): Promise<void> {
  // A plan for the present cluster already shows which hosts' VMs simply restart. Only the others
  // need a separate plan.
  const asIs = await solveWithProgress({ ...problem, intent: 'rebalance', hostIds: [], vmIds: null }, options)
  const known = new Map(asIs.standing?.before.map(({ name, outcome }) => [name, outcome]))
  const deaths: Death[] = []
  for (const [name, hosts] of listFailureDomains(problem)) {
    const vms = problem.vms.filter(({ host, running }) => running && host !== null && hosts.includes(host)).length
    if (known.get(name) === 'restarted') {
      deaths.push({ name, hosts, vms, outcome: 'restarted', plan: null })
      continue
    }
    const changed = applyChanges({ ...problem, vmIds: null, hostIds: [] }, { kill: hosts, drain: [] })
    const plan = await solveWithProgress({ ...changed, hostIds: hosts }, options, `${inert(name)}: `)
    deaths.push({ name, hosts, vms, outcome: toDeathOutcome(plan), plan })
  }
  if (options.json)
    printJson({ deaths: deaths.map(({ plan, ...death }) => ({ ...death, plan: plan && withGap(plan) })) })
  else printDeaths(deaths, problem)
  if (deaths.some(({ outcome }) => outcome === 'left down' || outcome === 'not found'))
    throw new CommandFailed('partial', '')
}

function toDeathOutcome({ state, migrations }: Plan): string {
  if (state === 'not_found') return 'not found'
  if (state === 'partial' || state === 'infeasible') return 'left down'
  return migrations === 0 ? 'restarted' : 'moved'
}

function printDeaths(deaths: Death[], { useRackConstraints, hosts }: PlacementProblem): void {
  const colour = { restarted: 'green', moved: 'yellow' } as Record<string, 'green' | 'yellow'>
  const rows = deaths.map(({ name, vms, outcome, plan }) => [
    inert(name),
    String(vms),
    paint(colour[outcome] ?? 'red', outcome),
    inert(describeDeath(outcome, plan)),
  ])
  print(formatTable([useRackConstraints ? 'RACK' : 'HOST', 'VMS', 'THEN', ''], rows, 3))
  const bad = deaths.filter(({ outcome }) => outcome !== 'restarted' && outcome !== 'moved').length
  printNote(
    bad === 0
      ? 'The cluster survives the loss of any one.'
      : `The cluster does not survive the loss of ${bad} of ${deaths.length}: see --kill HOST.`,
  )
  const dead = hosts.filter(({ state }) => state === 'dead').map(({ name }) => name)
  if (dead.length > 0) printNote(`Down in the file already, their VMs left out: ${inert(formatList(dead))}.`)
}

function describeDeath(outcome: string, plan: Plan | null): string {
  if (outcome === 'restarted') return 'all restart in the room there is'
  if (plan === null) return ''
  if (outcome === 'moved') return `all restart after ${formatCount(plan.migrations, 'migration')}`
  return outcome === 'left down' ? formatList(plan.unplaced.map(({ vm }) => vm)) : 'no plan was found in time'
}

/** The racks or hosts that can fail, each with its live hosts, by name. */
function listFailureDomains(problem: PlacementProblem): [name: string, hosts: string[]][] {
  const live = problem.hosts.filter(({ state }) => state === 'live').sort((a, b) => (a.name < b.name ? -1 : 1))
  return nameFailureDomains(problem, live).map(({ name, hosts }) => [name, hosts.map((host) => host.name)])
}

type Changes = { kill: string[]; drain: string[] }

/**
 * The cluster with these hosts dead or to be emptied, and the intent that this needs. VMs that were
 * switched off stay off. Throws CommandFailed for an unknown host.
 */
function applyChanges(problem: PlacementProblem, { kill, drain }: Changes): PlacementProblem {
  const known = new Set(problem.hosts.map(({ name }) => name))
  for (const name of [...kill, ...drain])
    if (!known.has(name)) throw new CommandFailed('usage', `There is no host ${name} in the file.`)
  const killed = new Set(kill)
  const drained = new Set(drain.filter((name) => !killed.has(name)))
  return {
    ...problem,
    intent: drained.size > 0 || (problem.intent === 'drain' && problem.hostIds.length > 0) ? 'drain' : 'recover',
    hostIds: [...new Set([...(problem.intent === 'rebalance' ? [] : problem.hostIds), ...killed, ...drained])],
    hosts: problem.hosts.map((host) =>
      killed.has(host.name)
        ? { ...host, state: 'dead' }
        : drained.has(host.name)
          ? { ...host, state: 'draining' }
          : host,
    ),
    vms: problem.vms.map((vm) => {
      if (vm.host === null || !killed.has(vm.host)) return vm
      // A VM without a host is not started unless it is asked for.
      return vm.running || problem.vmIds !== null ? { ...vm, running: false } : { ...vm, host: null }
    }),
  }
}
