import { tellEvidence } from '../domain/approval.ts'
import { type DryRunPlan, planOfDryRun } from '../domain/dry-run-plan.ts'
import { resourceKey } from '../domain/resource.ts'
import { tellConsequences, tellSettled } from '../domain/told-consequences.ts'
import { tellDown, tellProof, tellStanding, tellWhyDown } from '../domain/told-plan.ts'
import { toldRehearsal } from '../domain/told-rehearsal.ts'
import { tellProofOfWrite } from '../domain/told-verification.ts'
import type { AnApproval } from './core.ts'
import { inert, inertJsonText } from './inert.ts'
import { stepTable } from './step-table.ts'
import { paint, width } from './terminal.ts'
import { moment, span } from './time.ts'
import { word } from './word.ts'
import { wrap } from './wrap.ts'

/** VMs without a place that a card names. */
const downTold = 20

/** Everything a person needs in order to decide, in the order they ask for it. */
export function approvalCard(approval: AnApproval, now = Date.now()): string {
  const line = (name: string, text: string) =>
    `  ${paint('dim', name.padEnd(10))} ${wrap(text, width() - 14, '             ')}`
  const plan = planOfDryRun(approval.dryRun.details)
  const shown = approval.targets.slice(0, 6).map(resourceKey)
  const targets = [...shown, ...(approval.targets.length > 6 ? [`and ${approval.targets.length - 6} more`] : [])]
  return [
    paint('bold', wrap(`${inert(approval.tool)}: ${inert(approval.dryRun.summary)}`, width() - 2, '  ')),
    ...(plan && plan.unplaced.length > 0 ? ['', downText(plan)] : []),
    '',
    line('approval', `${inert(approval.id)}`),
    line('incident', `${inert(approval.incidentId)}, attempt ${approval.attempt}`),
    line('status', word(approval.status)),
    line('targets', inert(targets.join(', ')) || '(none named)'),
    line('risk', `${word(approval.risk)}, ${approval.reversible ? 'reversible' : 'NOT reversible'}`),
    line('people', `${approval.approvals} of ${approval.required} approvals given`),
    line('why', inert(approval.reason) || '(no reason given)'),
    ...(approval.evidence ?? []).map((row) => line(`row ${row.seq}`, inert(tellEvidence(row)))),
    line('arguments', inertJsonText(approval.arguments)),
    line('proof', inert(tellProofOfWrite(approval.dryRun.proof))),
    line('dry run', approval.dryRun.possible ? inert(approval.dryRun.summary) : 'there is none for this action'),
    ...(plan ? planLines(plan, line) : []),
    ...rehearsalLines(approval.dryRun.details, line),
    ...(plan || toldRehearsal(approval.dryRun.details) || Object.keys(approval.dryRun.details).length === 0
      ? []
      : [line('details', inertJsonText(approval.dryRun.details))]),
    ...approval.decisions.map((each) =>
      line(
        'decided',
        inert(`${each.decision} by ${each.operator} via ${each.via}${each.reason ? `: ${each.reason}` : ''}`),
      ),
    ),
    line('expires', expiry(approval, now)),
    ...consequenceLines(approval, now, line),
  ].join('\n')
}

function consequenceLines(approval: AnApproval, now: number, line: (name: string, text: string) => string): string[] {
  if (approval.status !== 'pending') return [line('so', tellSettled(approval) ?? '')]
  if (Date.parse(approval.expiresAt) <= now) return []
  const { approve, deny, wait } = tellConsequences(approval, moment)
  return ['', line('if yes', inert(approve)), line('if no', inert(deny)), line('if neither', inert(wait))]
}

function expiry({ status, expiresAt, useBy }: AnApproval, now: number): string {
  const left = Date.parse(expiresAt) - now
  if (status === 'pending')
    return left > 0 ? `${moment(expiresAt)}, in ${span(left)}` : `${moment(expiresAt)}, now past`
  return `${moment(expiresAt)}${useBy ? `; to be used by ${moment(useBy)}` : ''}`
}

/** Who has no place, before anything else: somebody may have to tell their owners. */
function downText({ unplaced, obstacle }: DryRunPlan): string {
  const told = unplaced.slice(0, downTold).map(({ vm, reason }) => {
    return `    ${wrap(`${inert(vm)}: ${inert(reason)}`, width() - 6, '      ')}`
  })
  const rest = unplaced.length - told.length
  return [
    `  ${paint(['bold', 'red'], tellDown(unplaced.length))}`,
    ...told,
    ...(rest > 0 ? [`    and ${rest} more, all of them with --json`] : []),
    `  ${wrap(inert(tellWhyDown(obstacle)), width() - 4, '  ')}`,
  ].join('\n')
}

/** Which VM goes where and when, what is proved of it, and what a further death would mean then. */
function planLines(plan: DryRunPlan, line: (name: string, text: string) => string): string[] {
  const proof = tellProof(plan, plan.proof)
  return [
    '',
    indented(stepTable(plan.steps)),
    '',
    ...(proof === '' ? [] : [line('plan', proof)]),
    ...(plan.standing === null ? [] : [line('N-1', inert(tellStanding(plan.standing)))]),
  ]
}

/** What was found out beforehand, and what was not tried; all of it with --json. */
function rehearsalLines(details: Record<string, unknown>, line: (name: string, text: string) => string): string[] {
  const told = toldRehearsal(details)
  if (!told) return []
  return [
    ...told.lines.map((each) => line('', inert(each))),
    ...told.untried.map((each) => line('not tried', inert(each))),
  ]
}

function indented(text: string): string {
  return text.replace(/^/gm, '    ')
}
