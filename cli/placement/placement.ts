import { writeFileSync } from 'node:fs'
import { formatCount, formatList } from '../../domain/format.ts'
import type { PlacementProblem, Plan } from '../../domain/placement.ts'
import { certificateHolds, certifiedBound, listOverfullHosts } from '../../placement/certificate.ts'
import { findFalseClaim } from '../../placement/claims.ts'
import type { WrittenPlan } from '../../placement/plan-file.ts'
import { describeDown, findIdleRequest } from '../../placement/problem-file.ts'
import { nameFailureDomains } from '../../placement/rules.ts'
import { findTriageFault } from '../../placement/triage-certificate.ts'
import { describeReason, listReasons } from '../../placement/unplaced.ts'
import { verifyPlan } from '../../placement/verify.ts'
import type { CliCommand } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { formatTable } from '../ui/table.ts'
import { collectValues, getTerminalWidth, inert, paint, print, printJson, printNote, wrap } from '../ui/terminal.ts'
import { explainNodes, type NodeOptions } from './explain-nodes.ts'
import { readPlan, readProblem, readProblemInTime } from './read.ts'
import { drawOverview, drawWave, formatPlan, legend } from './render.ts'
import { exitByState, type SolveOptions, solveWithProgress, withGap, withSolveOptions } from './solve.ts'

type SimulateOptions = SolveOptions & Changes

function addSimulateCommand(parent: CliCommand): void {
  withSolveOptions(
    parent
      .command('simulate')
      .description(
        'kill or drain hosts of a file, and show the plan wave by wave; without --kill and --drain: try the loss of each host',
      )
      .argument('<file>', 'hosts and VMs as YAML or JSON; - for stdin')
      .option('--kill <host>', 'this host is down; repeatable', collectValues, [])
      .option('--drain <host>', 'this host must be emptied; repeatable', collectValues, []),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift placement simulate cluster.yaml\n  nightshift placement simulate cluster.yaml --kill host-3 --drain host-4\n\nExits as "placement plan" does; with 8 when the loss of a host would leave VMs without a place.',
    )
    .action(async (file: string, options: SimulateOptions) => {
      const [problem, left] = await readProblemInTime(file, options)
      if (options.kill.length + options.drain.length === 0) return await simulateEachDeath(problem, left)
      const changed = applyChanges(problem, options)
      const plan = await solveWithProgress(changed, left)
      if (options.json) printJson(withGap(plan))
      else print([formatPlan(changed, plan), ...formatWaves(changed, plan)].join('\n\n'))
      exitByState(plan, left)
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

/**
 * Simulates the failure of each live host, one at a time, or of each rack with rack constraints.
 */
async function simulateEachDeath(problem: PlacementProblem, options: SimulateOptions): Promise<void> {
  // Makes a plan for the present cluster, which reports the hosts whose VMs would simply restart.
  // Only failures of other hosts need separate plans.
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
      ? 'The cluster survives the loss of any one host.'
      : `The cluster does not survive the loss of ${bad} of ${deaths.length}: see --kill HOST.`,
  )
  const dead = hosts.filter(({ state }) => state === 'dead').map(({ name }) => name)
  if (dead.length > 0)
    printNote(`Hosts that are down in the file, so their VMs are left out: ${inert(formatList(dead))}.`)
}

function describeDeath(outcome: string, plan: Plan | null): string {
  if (outcome === 'restarted') return 'all restart without a migration'
  if (plan === null) return ''
  if (outcome === 'moved') return `all restart after ${formatCount(plan.migrations, 'migration')}`
  return outcome === 'left down' ? formatList(plan.unplaced.map(({ vm }) => vm)) : 'no plan was found in time'
}

/** Lists the racks or hosts that can fail, each with its live hosts, by name. */
function listFailureDomains(problem: PlacementProblem): [name: string, hosts: string[]][] {
  const live = problem.hosts.filter(({ state }) => state === 'live').sort((a, b) => (a.name < b.name ? -1 : 1))
  return nameFailureDomains(problem, live).map(({ name, hosts }) => [name, hosts.map((host) => host.name)])
}

type Changes = { kill: string[]; drain: string[] }

/**
 * Returns the cluster with these hosts dead or draining, and the intent for it. VMs that were
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
      // A VM without a host is started only if the request names it.
      return vm.running || problem.vmIds !== null ? { ...vm, running: false } : { ...vm, host: null }
    }),
  }
}

export function addPlacementCommand(program: CliCommand): void {
  const parent = program
    .command('placement')
    .description('where the VMs that a file lists could run: plan, verify, explain, simulate; Nightshift need not run')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift placement plan examples/placement.yaml --picture\n  nightshift placement simulate examples/placement.yaml --kill host-3',
    )
  addPlanCommand(parent)
  addVerifyCommand(parent)
  addExplainCommand(parent)
  addSimulateCommand(parent)
}

type PlanOptions = SolveOptions & { out?: string; picture?: boolean }

function addPlanCommand(parent: CliCommand): void {
  withSolveOptions(
    parent
      .command('plan')
      .description('a verified plan with the fewest live migrations, its proof, and the VMs that stay down')
      .argument('<file>', 'hosts and VMs as YAML or JSON; - for stdin')
      .option('--picture', 'draw the hosts before and after')
      .option('--out <file>', 'write the plan as JSON to this file, for "placement verify"'),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift placement plan examples/placement.yaml\n  nightshift placement plan --json - < cluster.yaml\n\nExits with 8 when some VMs stay down, 9 when it is proved that there is no plan, 10 when no plan was found in time.',
    )
    .action(async (file: string, options: PlanOptions) => {
      const [problem, left] = await readProblemInTime(file, options)
      refuseIdleRequest(file, problem)
      const plan = await solveWithProgress(problem, left)
      if (options.out) writePlan(options.out, withGap(plan))
      if (options.json) printJson(withGap(plan))
      else {
        print(formatPlan(problem, plan))
        const down = describeDown(problem, problem.hostIds)
        if (down !== null) print(`\n${wrap(inert(`Not in this plan: ${down}.`), getTerminalWidth())}`)
        if (options.picture) print(['', ...drawOverview(problem, plan.steps), legend].join('\n'))
      }
      exitByState(plan, left)
    })
}

/**
 * Refuses a problem that requests nothing. "There is nothing to do" would look like good news if
 * the file omits a dead host.
 */
function refuseIdleRequest(file: string, problem: PlacementProblem): void {
  const idle = findIdleRequest(problem)
  if (idle) throw new CommandFailed('usage', `${file} needs no plan:\n${idle.path}: ${idle.message}`)
}

function writePlan(file: string, value: unknown): void {
  try {
    writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`)
  } catch (error) {
    throw new CommandFailed('error', `${file} cannot be written: ${error instanceof Error ? error.message : error}`)
  }
}

function addVerifyCommand(parent: CliCommand): void {
  parent
    .command('verify')
    .description('replay a plan step by step against a problem, and check its certificate, without a solver')
    .argument('<problem>', 'hosts and VMs as YAML or JSON; - for stdin')
    .argument('<plan>', 'a plan file, as --out writes it')
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift placement plan cluster.yaml --out plan.json\n  nightshift placement verify cluster.yaml plan.json\n\nExits with 11 when the plan or its certificate does not hold.',
    )
    .action(async (file: string, planFile: string, options: { json?: boolean }) => {
      if (file === '-' && planFile === '-') throw new CommandFailed('usage', 'Only one of the two files can be stdin.')
      const problem = await readProblem(file)
      const plan = await readPlan(planFile)
      const replayed = replay(problem, plan)
      const { proof } = plan
      const certificate =
        proof.kind !== 'certificate'
          ? null
          : certifiedBound(problem, proof) >= plan.lowerBound && certificateHolds(problem, proof)
      const triage = checkTriage(problem, plan)
      if (options.json) printJson({ ...replayed, certificate, ...(triage && { triage: { ok: triage.ok } }) })
      else {
        print(describeReplay(plan, replayed))
        print(describeCertificate(problem, plan, certificate))
        if (triage) print(triage.line)
      }
      if (!replayed.ok || certificate === false || triage?.ok === false) throw new CommandFailed('broken', '')
    })
}

function replay(problem: PlacementProblem, plan: WrittenPlan): ReturnType<typeof verifyPlan> {
  const replayed = verifyPlan(problem, plan)
  const claim = replayed.ok ? findFalseClaim(problem, plan) : null
  return claim === null ? replayed : { ok: false, step: 0, reason: claim }
}

function describeReplay({ state, steps }: Plan, replayed: ReturnType<typeof verifyPlan>): string {
  if (!replayed.ok) {
    const where = replayed.step === 0 ? '' : `step ${replayed.step}: `
    return `${paint('red', 'NO')}  the plan: ${where}${inert(replayed.reason)}`
  }
  if (state === 'infeasible')
    return `${paint('dim', '--')}  the plan file states that no plan exists. This command cannot check this statement`
  if (state === 'not_found') return `${paint('dim', '--')}  no plan was found, so there is nothing to replay`
  return `${paint('green', 'OK')}  the plan: ${formatCount(steps.length, 'step')}, and each step can begin in this order`
}

function describeCertificate(
  problem: PlacementProblem,
  { lowerBound, proof }: Plan,
  certificate: boolean | null,
): string {
  if (certificate === true)
    return `${paint('green', 'OK')}  the certificate: every plan for all VMs needs at least ${formatCount(lowerBound, 'migration')}`
  const full = certificate === false ? listOverfullHosts(problem) : []
  if (full.length > 0)
    return `${paint('red', 'NO')}  the certificate proves nothing, as these hosts are over capacity: ${inert(formatList(full))}`
  if (certificate === false)
    return `${paint('red', 'NO')}  the certificate does not show that ${formatCount(lowerBound, 'migration')} ${lowerBound === 1 ? 'is' : 'are'} needed`
  if (lowerBound === 0) return `${paint('dim', '--')}  the plan claims no bound, so nothing needs proof`
  const by = `that the plan needs ${formatCount(lowerBound, 'migration')} is known by "${proof.kind}"`
  return `${paint('dim', '--')}  no certificate: ${by}, which cannot be checked here`
}

/**
 * Checks which VMs a plan leaves down, as far as the plan's certificate proves this choice. `ok` is
 * null for a choice that is proved only in part. Null for a plan without a certificate.
 */
function checkTriage(
  problem: PlacementProblem,
  { triage, unplaced }: Plan,
): { ok: boolean | null; line: string } | null {
  if (!triage) return null
  const down = unplaced.map(({ vm }) => vm)
  const levels = triage.proof === 'exhausted' ? [] : (triage.levels ?? [])
  const fault = down.length === 0 ? 'no VM stays down' : findTriageFault(problem, down, levels)
  if (levels.length > 0 && fault !== null)
    return { ok: false, line: `${paint('red', 'NO')}  the certificate of the VMs that stay down: ${inert(fault)}` }
  if (down.length === 0) return { ok: false, line: `${paint('red', 'NO')}  VMs that stay down: ${fault}` }
  const certified = levels.map(({ priority }) => priority)
  const shown = `the certificate of the VMs that stay down: no choice leaves fewer VMs of priority ${formatList(certified.map(String))} down without leaving more important VMs down`
  const lines = levels.length > 0 ? [`${paint('green', 'OK')}  ${shown}`] : []
  if (triage.proof !== 'certificate') {
    const what =
      levels.length > 0 ? 'that no choice leaves fewer of the other VMs down' : 'that no choice leaves fewer VMs down'
    lines.push(`${paint('dim', '--')}  ${what} is known by "${triage.proof}", which cannot be checked here`)
  }
  return { ok: triage.proof === 'certificate' ? true : null, line: lines.join('\n') }
}

type ExplainOptions = SolveOptions & NodeOptions & { all?: boolean }

/** The most hosts that are explained per VM: the hosts that lack the least for the VM. */
const maxHosts = 8

function addExplainCommand(parent: CliCommand): void {
  withSolveOptions(
    parent
      .command('explain')
      .description(
        'why some VMs cannot be placed: conflicting rules, what would help, what each host lacks; for a Kubernetes node, which pods would stay pending without the node',
      )
      .argument('[file]', 'hosts and VMs as YAML or JSON; - for stdin')
      .option('--all', `every host for every VM, not only the ${maxHosts} that lack least`)
      .option('--node <name>', 'instead of a file: this node of a connected cluster; repeatable', collectValues, [])
      .option('--fails', 'with --node: the node fails, instead of being drained')
      .option('--cluster <source>', 'with --node: the cluster, if several are connected'),
    { isConnected: true },
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift placement explain cluster.yaml\n  nightshift placement explain --node worker-3\n\nExits as "placement plan" does.',
    )
    .action(async (file: string | undefined, options: ExplainOptions) => {
      if (options.node.length > 0 && file === undefined) return await explainNodes(options)
      if (file === undefined || options.node.length > 0)
        throw new CommandFailed('usage', 'Name a file, or nodes of a cluster with --node, and not both.')
      const [problem, left] = await readProblemInTime(file, options)
      refuseIdleRequest(file, problem)
      const plan = await solveWithProgress(problem, left)
      const lacking = plan.unplaced.map((each) => ({ ...each, hosts: listReasons(problem, plan.steps, each.vm) }))
      if (options.json)
        printJson({ state: plan.state, reason: plan.reason, obstacle: plan.obstacle, unplaced: lacking })
      else print(formatExplanation(problem, plan, lacking, options.all ? Number.POSITIVE_INFINITY : maxHosts))
      exitByState(plan, left)
    })
}

type ExplainedVm = Plan['unplaced'][number] & { hosts: ReturnType<typeof listReasons> }

function formatExplanation(
  { intent }: PlacementProblem,
  { state, obstacle, reason, steps }: Plan,
  lacking: ExplainedVm[],
  max: number,
) {
  if (state === 'no_action') return 'Every VM has a place.'
  if (state === 'planned')
    return `All VMs have a place${intent === 'rebalance' ? ' that breaks no rule' : ''}. There is nothing to explain.`
  const more = obstacle?.repairs.slice(4) ?? []
  const blocks = [
    wrap(`${inert(obstacle?.text ?? reason ?? 'nothing was found')}.`, getTerminalWidth()),
    ...(more.length > 0
      ? [['Each of these changes would help as well:', ...more.map((each) => `  ${inert(each.text)}`)].join('\n')]
      : []),
    ...lacking.map((vm) => formatVm(vm, max)),
  ]
  const when = steps.length > 0 ? `after the ${formatCount(steps.length, 'step')} of the plan` : 'now'
  return [...blocks, paint('dim', `The lists show what each host lacks ${when}, with nothing else moved.`)].join('\n\n')
}

function formatVm({ vm, reason, hosts }: ExplainedVm, max: number): string {
  const columns = Math.min(24, Math.max(4, ...hosts.slice(0, max).map(({ host }) => inert(host).length)))
  const rows = hosts.slice(0, max).map(({ host, reasons }) => {
    const text = reasons.length > 0 ? reasons.map(describeReason).join('; ') : 'the VM could start there'
    return `  ${inert(host).padEnd(columns)}  ${wrap(inert(text), getTerminalWidth() - columns - 4, ' '.repeat(columns + 4))}`
  })
  const rest = hosts.length - rows.length
  return [
    paint(['bold', 'red'], wrap(`${inert(vm)}: ${inert(reason)}`, getTerminalWidth())),
    ...rows,
    ...(rest > 0 ? [paint('dim', `  and ${rest} more that lack more: --all`)] : []),
  ].join('\n')
}
