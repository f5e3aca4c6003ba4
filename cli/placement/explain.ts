import type { Command } from 'commander'
import type { PlacementProblem, Plan } from '../../domain/placement.ts'
import { many } from '../../domain/told-plan.ts'
import { reasonsFor, tellReason } from '../../placement/reasons.ts'
import { inert } from '../inert.ts'
import { paint, print, printJson, terminalWidth } from '../terminal.ts'
import { wrap } from '../wrap.ts'
import { exitByState, readProblemInTime, type SolveOptions, solveWithProgress, withSolveOptions } from './solving.ts'

type ExplainOptions = SolveOptions & { all?: boolean }

/** Hosts told of per VM: those with the least in the way. */
const maxHosts = 8

export function addExplainCommand(parent: Command): void {
  withSolveOptions(
    parent
      .command('explain')
      .description('why not all can be placed: what contradicts what, what would help, what each host lacks')
      .argument('<file>', 'hosts and VMs as YAML or JSON; - for stdin')
      .option('--all', `every host for every VM, not only the ${maxHosts} that lack least`),
  )
    .addHelpText('after', '\nExample:\n  nightshift placement explain cluster.yaml\n\nExits as "placement plan" does.')
    .action(async (file: string, options: ExplainOptions) => {
      const [problem, left] = await readProblemInTime(file, options)
      const plan = await solveWithProgress(problem, left)
      const lacking = plan.unplaced.map((each) => ({ ...each, hosts: reasonsFor(problem, plan.steps, each.vm) }))
      if (options.json)
        printJson({ state: plan.state, reason: plan.reason, obstacle: plan.obstacle, unplaced: lacking })
      else print(formatExplanation(problem, plan, lacking, options.all ? Number.POSITIVE_INFINITY : maxHosts))
      exitByState(plan)
    })
}

type ExplainedVm = Plan['unplaced'][number] & { hosts: ReturnType<typeof reasonsFor> }

function formatExplanation(
  { intent }: PlacementProblem,
  { state, obstacle, reason, steps }: Plan,
  lacking: ExplainedVm[],
  most: number,
) {
  if (state === 'no_action') return 'Nothing is without a place.'
  if (state === 'planned')
    return `All have a place${intent === 'rebalance' ? ' that breaks no rule' : ''}: nothing to explain.`
  const more = obstacle?.repairs.slice(4) ?? []
  const blocks = [
    wrap(`${inert(obstacle?.text ?? reason ?? 'nothing was found')}.`, terminalWidth()),
    ...(more.length > 0 ? [['Each of these as well:', ...more.map((each) => `  ${inert(each.text)}`)].join('\n')] : []),
    ...lacking.map((vm) => formatVm(vm, most)),
  ]
  const when = steps.length > 0 ? `after the ${many(steps.length, 'step')} of the plan` : 'as things are'
  return [...blocks, paint('dim', `What each host lacks is told ${when}, nothing else moved.`)].join('\n\n')
}

function formatVm({ vm, reason, hosts }: ExplainedVm, most: number): string {
  const columns = Math.min(24, Math.max(4, ...hosts.slice(0, most).map(({ host }) => inert(host).length)))
  const rows = hosts.slice(0, most).map(({ host, reasons }) => {
    const told = reasons.length > 0 ? reasons.map(tellReason).join('; ') : 'it could start there'
    return `  ${inert(host).padEnd(columns)}  ${wrap(inert(told), terminalWidth() - columns - 4, ' '.repeat(columns + 4))}`
  })
  const rest = hosts.length - rows.length
  return [
    paint(['bold', 'red'], wrap(`${inert(vm)}: ${inert(reason)}`, terminalWidth())),
    ...rows,
    ...(rest > 0 ? [paint('dim', `  and ${rest} more that lack more: --all`)] : []),
  ].join('\n')
}
