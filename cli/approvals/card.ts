import { tellEvidence } from '../../domain/approval.ts'
import { type DryRunPlan, planOfDryRun } from '../../domain/dry-run-plan.ts'
import { resourceKey } from '../../domain/resource.ts'
import { tellConsequences, tellSettled } from '../../domain/told-consequences.ts'
import { tellDown, tellProof, tellStanding, tellWhyDown } from '../../domain/told-plan.ts'
import { toldRehearsal } from '../../domain/told-rehearsal.ts'
import { tellProofOfWrite } from '../../domain/told-verification.ts'
import type { ApiApproval } from '../api.ts'
import { formatMoment, formatSpan, paintState } from '../ui/format.ts'
import { formatSteps } from '../ui/table.ts'
import { paint, terminalWidth } from '../ui/terminal.ts'
import { inert, inertJsonText, wrap } from '../ui/text.ts'

/** VMs without a place that a card names. */
const maxUnplacedShown = 20

/** Everything a person needs in order to decide, in the order they ask for it. */
export function formatApproval(approval: ApiApproval, now = Date.now()): string {
  const line = (name: string, text: string) =>
    `  ${paint('dim', name.padEnd(10))} ${wrap(text, terminalWidth() - 14, '             ')}`
  const plan = planOfDryRun(approval.dryRun.details)
  const shown = approval.targets.slice(0, 6).map(resourceKey)
  const targets = [...shown, ...(approval.targets.length > 6 ? [`and ${approval.targets.length - 6} more`] : [])]
  return [
    paint('bold', wrap(`${inert(approval.tool)}: ${inert(approval.dryRun.summary)}`, terminalWidth() - 2, '  ')),
    ...(plan && plan.unplaced.length > 0 ? ['', formatUnplaced(plan)] : []),
    '',
    line('approval', `${inert(approval.id)}`),
    line('incident', `${inert(approval.incidentId)}, attempt ${approval.attempt}`),
    line('status', paintState(approval.status)),
    line('targets', inert(targets.join(', ')) || '(none named)'),
    line('risk', `${paintState(approval.risk)}, ${approval.reversible ? 'reversible' : 'NOT reversible'}`),
    line('people', `${approval.approvals} of ${approval.required} approvals given`),
    line('why', inert(approval.reason) || '(no reason given)'),
    ...(approval.evidence ?? []).map((row) => line(`row ${row.seq}`, inert(tellEvidence(row)))),
    line('arguments', inertJsonText(approval.arguments)),
    line('proof', inert(tellProofOfWrite(approval.dryRun.proof))),
    line('dry run', approval.dryRun.possible ? inert(approval.dryRun.summary) : 'there is none for this action'),
    ...(plan ? formatPlan(plan, line) : []),
    ...formatRehearsal(approval.dryRun.details, line),
    ...(plan || toldRehearsal(approval.dryRun.details) || Object.keys(approval.dryRun.details).length === 0
      ? []
      : [line('details', inertJsonText(approval.dryRun.details))]),
    ...approval.decisions.map((each) =>
      line(
        'decided',
        inert(`${each.decision} by ${each.operator} via ${each.via}${each.reason ? `: ${each.reason}` : ''}`),
      ),
    ),
    line('expires', describeExpiry(approval, now)),
    ...formatConsequences(approval, now, line),
  ].join('\n')
}

function formatConsequences(
  approval: ApiApproval,
  now: number,
  line: (name: string, text: string) => string,
): string[] {
  if (approval.status !== 'pending') return [line('so', tellSettled(approval) ?? '')]
  if (Date.parse(approval.expiresAt) <= now) return []
  const { approve, deny, wait } = tellConsequences(approval, formatMoment)
  return ['', line('if yes', inert(approve)), line('if no', inert(deny)), line('if neither', inert(wait))]
}

function describeExpiry({ status, expiresAt, useBy }: ApiApproval, now: number): string {
  const left = Date.parse(expiresAt) - now
  if (status === 'pending')
    return left > 0 ? `${formatMoment(expiresAt)}, in ${formatSpan(left)}` : `${formatMoment(expiresAt)}, now past`
  return `${formatMoment(expiresAt)}${useBy ? `; to be used by ${formatMoment(useBy)}` : ''}`
}

/** Who has no place, before anything else: somebody may have to tell their owners. */
function formatUnplaced({ unplaced, obstacle }: DryRunPlan): string {
  const told = unplaced.slice(0, maxUnplacedShown).map(({ vm, reason }) => {
    return `    ${wrap(`${inert(vm)}: ${inert(reason)}`, terminalWidth() - 6, '      ')}`
  })
  const rest = unplaced.length - told.length
  return [
    `  ${paint(['bold', 'red'], tellDown(unplaced.length))}`,
    ...told,
    ...(rest > 0 ? [`    and ${rest} more, all of them with --json`] : []),
    `  ${wrap(inert(tellWhyDown(obstacle)), terminalWidth() - 4, '  ')}`,
  ].join('\n')
}

/** Which VM goes where and when, what is proved of it, and what a further death would mean then. */
function formatPlan(plan: DryRunPlan, line: (name: string, text: string) => string): string[] {
  const proof = tellProof(plan, plan.proof)
  return [
    '',
    indent(formatSteps(plan.steps)),
    '',
    ...(proof === '' ? [] : [line('plan', proof)]),
    ...(plan.standing === null ? [] : [line('N-1', inert(tellStanding(plan.standing)))]),
  ]
}

/** What was found out beforehand, and what was not tried; all of it with --json. */
function formatRehearsal(details: Record<string, unknown>, line: (name: string, text: string) => string): string[] {
  const told = toldRehearsal(details)
  if (!told) return []
  return [
    ...told.lines.map((each) => line('', inert(each))),
    ...told.untried.map((each) => line('not tried', inert(each))),
  ]
}

function indent(text: string): string {
  return text.replace(/^/gm, '    ')
}
