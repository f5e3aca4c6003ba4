import type { PlacementProblem, Plan } from '../../domain/placement.ts'
import { many, names, tellDown, tellProof, tellStanding, tellWhyDown } from '../../domain/told-plan.ts'
import { inert } from '../inert.ts'
import { stepTable } from '../step-table.ts'
import { paint, width } from '../terminal.ts'
import { wrap } from '../wrap.ts'

const ends: Record<Plan['state'], string> = {
  no_action: 'There is nothing to do.',
  planned: 'All have a place.',
  partial: 'Not all have a place.',
  infeasible: 'There is no plan: that is proved.',
  not_found: 'No plan was found in the time there was. That does not prove that there is none.',
}

/** Steps by wave, what is proved of their number, who stays down and why, and what still stands afterwards. */
export function planText(problem: PlacementProblem, plan: Plan): string {
  const starts = plan.steps.length - plan.migrations
  const blocks = [
    `${paint('bold', headline(problem))} ${paint(plan.state === 'planned' ? 'green' : 'reset', ends[plan.state])}`,
    ...(plan.steps.length > 0 ? [stepTable(plan.steps)] : []),
    ...(plan.steps.length > 0 ? [line(`${many(starts, 'start')}. ${capital(tellProof(plan, plan.proof))}.`)] : []),
    ...(plan.unplaced.length > 0 ? [downText(plan)] : []),
    ...(plan.unplaced.length > 0 && plan.state !== 'not_found'
      ? [line(inert(tellWhyDown(plan.obstacle?.text ?? null)))]
      : []),
    ...(plan.standing && plan.steps.length > 0 ? [line(inert(tellStanding(plan.standing)))] : []),
  ]
  if (plan.isTimeUp && plan.steps.length > 0)
    blocks.push(line('Time ended the search: with more of it (--timeout) another plan may be found.'))
  return blocks.join('\n\n')
}

/** `Recover from host-1 and host-2.` */
function headline({ intent, hostIds }: PlacementProblem): string {
  const words = { recover: 'Recover from', drain: 'Drain', rebalance: 'Rebalance' }
  return `${words[intent]} ${intent === 'rebalance' ? 'the cluster' : inert(names(hostIds)) || 'no host'}.`
}

function downText({ unplaced }: Plan): string {
  const rows = unplaced.map(({ vm, reason }) => `  ${wrap(`${inert(vm)}: ${inert(reason)}`, width() - 4, '    ')}`)
  return [paint(['bold', 'red'], `${tellDown(unplaced.length)}:`), ...rows].join('\n')
}

function line(text: string): string {
  return wrap(text, width())
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
