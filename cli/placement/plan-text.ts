import type { PlacementProblem, Plan } from '../../domain/placement.ts'
import { many, names, tellDown, tellProof, tellStanding, tellWhyDown } from '../../domain/told-plan.ts'
import { inert } from '../inert.ts'
import { formatSteps } from '../step-table.ts'
import { paint, terminalWidth } from '../terminal.ts'
import { wrap } from '../wrap.ts'

const endingByState: Record<Plan['state'], string> = {
  no_action: 'There is nothing to do.',
  planned: 'All have a place.',
  partial: 'Not all have a place.',
  infeasible: 'There is no plan: that is proved.',
  not_found: 'No plan was found in the time there was. That does not prove that there is none.',
}

/** Steps by wave, what is proved of their number, who stays down and why, and what still stands afterwards. */
export function formatPlan(problem: PlacementProblem, plan: Plan): string {
  const starts = plan.steps.length - plan.migrations
  const blocks = [
    `${paint('bold', formatHeadline(problem))} ${paint(plan.state === 'planned' ? 'green' : 'reset', endingByState[plan.state])}`,
    ...(plan.steps.length > 0 ? [formatSteps(plan.steps)] : []),
    ...(plan.steps.length > 0
      ? [wrapLine(`${many(starts, 'start')}. ${capitalize(tellProof(plan, plan.proof))}.`)]
      : []),
    ...(plan.unplaced.length > 0 ? [formatUnplaced(plan)] : []),
    ...(plan.unplaced.length > 0 && plan.state !== 'not_found'
      ? [wrapLine(inert(tellWhyDown(plan.obstacle?.text ?? null)))]
      : []),
    ...(plan.standing && plan.steps.length > 0 ? [wrapLine(inert(tellStanding(plan.standing)))] : []),
  ]
  if (plan.isTimeUp && plan.steps.length > 0)
    blocks.push(wrapLine('Time ended the search: with more of it (--timeout) another plan may be found.'))
  return blocks.join('\n\n')
}

/** `Recover from host-1 and host-2.` */
function formatHeadline({ intent, hostIds }: PlacementProblem): string {
  const words = { recover: 'Recover from', drain: 'Drain', rebalance: 'Rebalance' }
  return `${words[intent]} ${intent === 'rebalance' ? 'the cluster' : inert(names(hostIds)) || 'no host'}.`
}

function formatUnplaced({ unplaced }: Plan): string {
  const rows = unplaced.map(
    ({ vm, reason }) => `  ${wrap(`${inert(vm)}: ${inert(reason)}`, terminalWidth() - 4, '    ')}`,
  )
  return [paint(['bold', 'red'], `${tellDown(unplaced.length)}:`), ...rows].join('\n')
}

function wrapLine(text: string): string {
  return wrap(text, terminalWidth())
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
