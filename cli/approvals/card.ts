import { formatEvidence } from '../../domain/approval.ts'
import { formatSpan } from '../../domain/format.ts'
import {
  formatApprovalEnd,
  formatAttachment,
  formatConsequences,
  formatProof,
  formatReason,
  parseRehearsal,
  pathOfAttachment,
} from '../../domain/format-approval.ts'
import { formatDown, formatObstacle, formatPlanProof, formatStanding } from '../../domain/format-plan.ts'
import { formatHypothesis } from '../../domain/hypothesis.ts'
import { type DryRunPlan, planOfDryRun } from '../../domain/placement.ts'
import { resourceKey } from '../../domain/registry.ts'
import type { ApiApproval } from '../read-api.ts'
import { formatMoment, formatSteps, paintState } from '../ui/table.ts'
import { getTerminalWidth, inert, inertJsonText, paint, wrap } from '../ui/terminal.ts'

/** How many VMs without a place the card names. */
const maxUnplacedShown = 20

/** All that a person needs to decide, in the order of their questions. */
export function formatApproval(approval: ApiApproval, now = Date.now()): string {
  const line = (name: string, text: string) =>
    `  ${paint('dim', name.padEnd(10))} ${wrap(text, getTerminalWidth() - 14, '             ')}`
  const plan = planOfDryRun(approval.dryRun.details)
  const shown = approval.targets.slice(0, 6).map(resourceKey)
  const targets = [...shown, ...(approval.targets.length > 6 ? [`and ${approval.targets.length - 6} more`] : [])]
  return [
    paint('bold', wrap(`${inert(approval.tool)}: ${inert(approval.dryRun.summary)}`, getTerminalWidth() - 2, '  ')),
    ...(plan && plan.unplaced.length > 0 ? ['', formatUnplaced(plan)] : []),
    '',
    line('approval', `${inert(approval.id)}`),
    line('incident', `${inert(approval.incidentId)}, attempt ${approval.attempt}`),
    line('status', paintState(approval.status)),
    line('targets', inert(targets.join(', ')) || '(none named)'),
    line('risk', `${paintState(approval.risk)}, ${approval.reversible ? 'reversible' : 'NOT reversible'}`),
    line('approvals', `${approval.approvals} of ${approval.required} approvals given`),
    line('why', inert(formatReason(approval))),
    ...(approval.hypotheses ?? []).map((each) => line('cause', inert(formatHypothesis(each)))),
    ...(approval.evidence ?? []).map((row) => line(`row ${row.seq}`, inert(formatEvidence(row)))),
    line('arguments', inertJsonText(approval.arguments)),
    line('proof', inert(formatProof(approval.dryRun.proof))),
    line('dry run', approval.dryRun.possible ? inert(approval.dryRun.summary) : 'not available for this action'),
    ...(plan ? formatPlan(plan, line) : []),
    ...formatRehearsal(approval.dryRun.details, line),
    ...(plan || parseRehearsal(approval.dryRun.details) || Object.keys(approval.dryRun.details).length === 0
      ? []
      : [line('details', inertJsonText(approval.dryRun.details))]),
    ...listAttachments(approval, line),
    ...approval.decisions.map((each) =>
      line(
        'decided',
        inert(`${each.decision} by ${each.operator} via ${each.via}${each.reason ? `: ${each.reason}` : ''}`),
      ),
    ),
    line('expires', describeExpiry(approval, now)),
    ...listConsequences(approval, now, line),
    ...listTogether(approval, line),
  ].join('\n')
}

function listConsequences(approval: ApiApproval, now: number, line: (name: string, text: string) => string): string[] {
  if (approval.status !== 'pending') return [line('so', formatApprovalEnd(approval) ?? '')]
  if (Date.parse(approval.expiresAt) <= now) return []
  const { approve, deny, wait, after } = formatConsequences(approval, formatMoment)
  const cost = after === null ? [] : [line('afterwards', inert(after))]
  return ['', line('if yes', inert(approve)), ...cost, line('if no', inert(deny)), line('if neither', inert(wait))]
}

/** The other calls of its answer, each with its own id and decision. */
function listTogether({ together = [] }: ApiApproval, line: (name: string, text: string) => string): string[] {
  if (together.length === 0) return []
  const each = together.map(({ id, risk, status, tool, dryRun }) =>
    line('also asks', inert(`${tool}: ${dryRun.summary} [${risk} risk, ${status}] ${id}`)),
  )
  return ['', ...each]
}

function describeExpiry({ status, expiresAt, useBy }: ApiApproval, now: number): string {
  const left = Date.parse(expiresAt) - now
  if (status === 'pending')
    return left > 0 ? `${formatMoment(expiresAt)}, in ${formatSpan(left)}` : `${formatMoment(expiresAt)}, now past`
  return `${formatMoment(expiresAt)}${useBy ? `; to be used by ${formatMoment(useBy)}` : ''}`
}

/** The VMs without a place. They come first, because their owners may have to be informed. */
function formatUnplaced({ unplaced, obstacle }: DryRunPlan): string {
  const shown = unplaced.slice(0, maxUnplacedShown).map(({ vm, reason }) => {
    return `    ${wrap(`${inert(vm)}: ${inert(reason)}`, getTerminalWidth() - 6, '      ')}`
  })
  const rest = unplaced.length - shown.length
  return [
    `  ${paint(['bold', 'red'], formatDown(unplaced.length))}`,
    ...shown,
    ...(rest > 0 ? [`    and ${rest} more, all of them with --json`] : []),
    `  ${wrap(inert(formatObstacle(obstacle)), getTerminalWidth() - 4, '  ')}`,
  ].join('\n')
}

/** Which VM moves where and when, what is proved, and what the loss of another host would mean. */
function formatPlan(plan: DryRunPlan, line: (name: string, text: string) => string): string[] {
  const proof = formatPlanProof(plan, plan.proof)
  return [
    '',
    indent(formatSteps(plan.steps)),
    '',
    ...(proof === '' ? [] : [line('plan', proof)]),
    ...(plan.standing === null ? [] : [line('N-1', inert(formatStanding(plan.standing)))]),
  ]
}

/** What the rehearsal found, and what it did not try. --json has all of it. */
function formatRehearsal(details: Record<string, unknown>, line: (name: string, text: string) => string): string[] {
  const rehearsal = parseRehearsal(details)
  if (!rehearsal) return []
  return [
    ...rehearsal.lines.map((each) => line('', inert(each))),
    ...rehearsal.untried.map((each) => line('not tried', inert(each))),
  ]
}

/** What the dry run brought along, with the path that answers it, and what was not taken. */
function listAttachments({ id, dryRun }: ApiApproval, line: (name: string, text: string) => string): string[] {
  const { attachments = [], leftOut = [] } = dryRun
  return [
    ...attachments.flatMap((each) => [
      line('attached', inert(`${each.name} (${formatAttachment(each)})`)),
      `             ${inert(pathOfAttachment(id, each))}`,
    ]),
    ...leftOut.map((sentence) => line('left out', inert(sentence))),
  ]
}

function indent(text: string): string {
  return text.replace(/^/gm, '    ')
}
