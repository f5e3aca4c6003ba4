import { z } from 'zod'
import { tellEvidence } from '../domain/approval.ts'
import { planStep } from '../domain/placement.ts'
import { resourceKey } from '../domain/resource.ts'
import type { AnApproval } from './core.ts'
import { inert, inertJsonText } from './inert.ts'
import { table } from './table.ts'
import { paint, width } from './terminal.ts'
import { moment, span } from './time.ts'
import { word } from './word.ts'
import { wrap } from './wrap.ts'

/** Everything a person needs in order to decide, in the order they ask for it. */
export function approvalCard(approval: AnApproval, now = Date.now()): string {
  const line = (name: string, text: string) =>
    `  ${paint('dim', name.padEnd(10))} ${wrap(text, width() - 14, '             ')}`
  const plan = stepsOf(approval)
  const shown = approval.targets.slice(0, 6).map(resourceKey)
  const targets = [...shown, ...(approval.targets.length > 6 ? [`and ${approval.targets.length - 6} more`] : [])]
  return [
    paint('bold', wrap(`${inert(approval.tool)}: ${inert(approval.dryRun.summary)}`, width() - 2, '  ')),
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
    line('dry run', approval.dryRun.possible ? inert(approval.dryRun.summary) : 'there is none for this action'),
    ...(plan ? ['', indented(plan), ''] : []),
    ...(plan || Object.keys(approval.dryRun.details).length === 0
      ? []
      : [line('details', inertJsonText(approval.dryRun.details))]),
    ...approval.decisions.map((each) =>
      line(
        'decided',
        inert(`${each.decision} by ${each.operator} via ${each.via}${each.reason ? `: ${each.reason}` : ''}`),
      ),
    ),
    line('expires', expiry(approval, now)),
  ].join('\n')
}

function expiry({ status, expiresAt, useBy }: AnApproval, now: number): string {
  const left = Date.parse(expiresAt) - now
  if (status === 'pending')
    return left > 0 ? `${moment(expiresAt)}, in ${span(left)}` : `${moment(expiresAt)}, now past`
  return `${moment(expiresAt)}${useBy ? `; to be used by ${moment(useBy)}` : ''}`
}

/** Which VM goes where, when the dry run is a plan. */
function stepsOf({ dryRun }: AnApproval): string | null {
  const parsed = z.array(planStep).min(1).safeParse(dryRun.details.steps)
  if (!parsed.success) return null
  const rows = parsed.data.map(({ step, action, vm, from, to }) =>
    [String(step), action, vm, from ?? '(nowhere)', '→', to].map((cell) => inert(cell)),
  )
  return table(['STEP', 'DO', 'VM', 'FROM', '', 'TO'], rows, 3)
}

function indented(text: string): string {
  return text.replace(/^/gm, '    ')
}
