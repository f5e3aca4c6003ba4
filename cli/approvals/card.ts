import { formatEvidence } from '../../domain/approval.ts'
import { type CardSection, cardSections, formatApprovers, newestLookOf } from '../../domain/card-sections.ts'
import { formatSpan } from '../../domain/format.ts'
import { formatApprovalEnd, formatAttachment, parseRehearsal, pathOfAttachment } from '../../domain/format-approval.ts'
import { hostsToSay } from '../../domain/format-death.ts'
import { formatPlanProof, formatStanding } from '../../domain/format-plan.ts'
import { formatHypothesis } from '../../domain/hypothesis.ts'
import { type DryRunPlan, planOfDryRun } from '../../domain/placement.ts'
import type { ApiApproval } from '../read-api.ts'
import { formatMoment, formatSteps, paintState } from '../ui/table.ts'
import { getTerminalWidth, inert, inertJsonText, paint, wrap } from '../ui/terminal.ts'

type Line = (name: string, text: string) => string

/**
 * Formats everything that a decision needs: the sections of the card in their order, then the dry
 * run and exact arguments.
 */
export function formatApproval(approval: ApiApproval, now = Date.now()): string {
  const line: Line = (name, text) =>
    `  ${paint('dim', name.padEnd(10))} ${wrap(text, getTerminalWidth() - 14, '             ')}`
  const isOpen = approval.status === 'pending' && Date.parse(approval.expiresAt) > now
  return [
    paint('bold', wrap(`${inert(approval.tool)}: ${inert(approval.dryRun.summary)}`, getTerminalWidth() - 2, '  ')),
    '',
    line('approval', `${inert(approval.id)}`),
    line('incident', `${inert(approval.incidentId)}, attempt ${approval.attempt}`),
    line('status', paintState(approval.status)),
    line('risk', `${paintState(approval.risk)}, ${approval.reversible ? 'reversible' : 'NOT reversible'}`),
    line('approvals', `${approval.approvals} of ${approval.required} approvals given`),
    ...(isOpen && approval.approvers ? [line('may', inert(formatApprovers(approval.approvers, approval.asked)))] : []),
    ...approval.decisions.map((each) =>
      line(
        'decided',
        inert(`${each.decision} by ${each.operator} via ${each.via}${each.reason ? `: ${each.reason}` : ''}`),
      ),
    ),
    line('expires', describeExpiry(approval, now)),
    ...(approval.status === 'pending' ? [] : [line('so', formatApprovalEnd(approval) ?? '')]),
    ...cardSections(approval, {
      ...{ isOpen, moment: formatMoment, about: approval.about },
      ...{ lookedAt: newestLookOf(approval.evidence), deaths: approval.deaths ?? [] },
    }).flatMap((section) => [
      '',
      ...formatSection(section, section.name === 'reason' ? listGrounds(approval, line) : []),
    ]),
    ...(isOpen ? hostsToSay(approval.deaths ?? []) : []).map((host) => line('say', `--host-is-off ${inert(host)}`)),
    '',
    ...formatDryRun(approval, line),
    line('arguments', inertJsonText(approval.arguments)),
    ...listTogether(approval, line),
  ].join('\n')
}

/** Formats a section of the card: its title, then its sentences. */
function formatSection({ title, sentences, warns }: CardSection, more: string[]): string[] {
  const width = getTerminalWidth() - 4
  return [
    `  ${paint('bold', title)}`,
    ...sentences.map(
      (sentence) =>
        `    ${warns ? paint('bold', wrap(inert(sentence), width, '    ')) : wrap(inert(sentence), width, '    ')}`,
    ),
    ...more,
  ]
}

/** Lists the suspected cause, and the rows of the log on which the request is based. */
function listGrounds({ hypotheses = [], evidence = [] }: ApiApproval, line: Line): string[] {
  return [
    ...hypotheses.map((each) => line('cause', inert(formatHypothesis(each)))),
    ...evidence.map((row) => line(`row ${row.seq}`, inert(formatEvidence(row)))),
  ]
}

/**
 * Formats the dry run: a plan, a trial, or plain details. Everything that was not tried is listed
 * as a concern.
 */
function formatDryRun(approval: ApiApproval, line: Line): string[] {
  const { possible, summary, details } = approval.dryRun
  const plan = planOfDryRun(details)
  const rehearsal = parseRehearsal(details)
  const isAsItIs = !plan && !rehearsal && Object.keys(details).length > 0
  return [
    line('dry run', possible ? inert(summary) : 'not available for this action'),
    ...(plan ? formatPlan(plan, line) : []),
    ...(rehearsal?.lines ?? []).map((each) => line('', inert(each))),
    ...(isAsItIs ? [line('details', inertJsonText(details))] : []),
    ...listAttachments(approval, line),
  ]
}

/** Lists the other calls of the same model response, each with a separate id and decision. */
function listTogether({ together = [] }: ApiApproval, line: Line): string[] {
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
  return `${formatMoment(expiresAt)}${useBy ? `; must run before ${formatMoment(useBy)}` : ''}`
}

/**
 * Formats which VM moves where and when, what is proved, and what the failure of another host would
 * do.
 */
function formatPlan(plan: DryRunPlan, line: Line): string[] {
  const proof = formatPlanProof(plan, plan.proof)
  return [
    '',
    indent(formatSteps(plan.steps)),
    '',
    ...(proof === '' ? [] : [line('plan', proof)]),
    ...(plan.standing === null ? [] : [line('N-1', inert(formatStanding(plan.standing)))]),
  ]
}

/**
 * Lists the attachments of the dry run, with the API path of each, and the attachments that were
 * left out.
 */
function listAttachments({ id, dryRun }: ApiApproval, line: Line): string[] {
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
