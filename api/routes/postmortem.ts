import type { AlertRow } from '../../db/tables.ts'
import type { Approval } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import { isUnshown, notShown, rowsOf } from '../../domain/stored-claim.ts'

type Story = { incident: Incident; events: IncidentEvent[]; approvals: Approval[]; alerts: AlertRow[] }

/** What happened, as a page that people finish: facts are filled in, judgement is left to them. */
export function postmortem({ incident, events, approvals, alerts }: Story): string {
  const closing = events.findLast((event) => ['resolved', 'escalated', 'cancelled'].includes(event.kind))
  const resource = incident.resource ? `${incident.resource.kind} ${incident.resource.id}` : 'none named'
  const durationSeconds = incident.closedAt
    ? Math.round((Date.parse(incident.closedAt) - Date.parse(incident.createdAt)) / 1000)
    : null
  return [
    `# ${plain(incident.title)}`,
    '',
    '## Summary',
    '',
    '| | |',
    '| --- | --- |',
    row('Incident', incident.id),
    row('Type', incident.type),
    row('Severity', incident.severity),
    row('Resource', resource),
    row('Status', incident.status),
    row('Began (UTC)', utc(incident.createdAt)),
    row('Ended (UTC)', incident.closedAt ? utc(incident.closedAt) : 'not yet'),
    row('Lasted', durationSeconds === null ? 'not over' : `${durationSeconds} s`),
    row('Attempts', String(incident.attempt)),
    '',
    '## Root cause and resolution',
    '',
    closing ? plain(closing.detail) : 'Not closed yet.',
    '',
    ...claims(closing),
    '## Timeline (UTC)',
    '',
    '| time | # | who | what |',
    '| --- | --- | --- | --- |',
    ...events.map((event) => `| ${utc(event.at)} | ${event.seq} | ${plain(event.actor)} | ${plain(event.detail)} |`),
    '',
    '## Approvals',
    '',
    ...(approvals.length === 0 ? ['Nobody was asked.'] : approvals.flatMap(approvalLines)),
    '',
    '## Alerts',
    '',
    ...(alerts.length === 0
      ? ['No alert: opened by hand.']
      : alerts.map(
          (alert) =>
            `- ${plain(alert.name)} (${plain(alert.source)}, ${alert.status}): since ${utc(alert.startsAt)}${alert.endsAt ? `, ended ${utc(alert.endsAt)}` : ''}, seen ${alert.count} times`,
        )),
    '',
    '## What we change',
    '',
    '- ',
    '',
  ].join('\n')
}

function claims(closing: IncidentEvent | undefined): string[] {
  if (closing?.kind !== 'resolved' || closing.metadata.claims.length === 0) return []
  const lines = closing.metadata.claims.map((each) => {
    const rows = rowsOf(each).map((seq) => `#${seq}`)
    const mark = isUnshown(each) ? ` **${notShown}**` : ''
    return `- ${plain(each.text)} (rows ${rows.join(', ')})${mark}`
  })
  return [`Outcome: ${closing.metadata.outcome}. Claims and their evidence:`, '', ...lines, '']
}

function approvalLines(approval: Approval): string[] {
  const { tool, dryRun, status, risk, requestedAt, decisions } = approval
  return [
    `- ${utc(requestedAt)} ${plain(tool)} (risk ${risk}): ${plain(dryRun.summary)}: **${status}**`,
    ...decisions.map(
      ({ operator, decision, reason, at }) =>
        `  - ${utc(at)} ${plain(operator)}: ${decision}${reason ? `: ${plain(reason)}` : ''}`,
    ),
  ]
}

function row(name: string, value: string): string {
  return `| ${name} | ${plain(value)} |`
}

function utc(time: string): string {
  return time.slice(0, 19).replace('T', ' ')
}

/** Text from outside as plain text: no markup, no link, no table cell, no new line. */
function plain(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .replace(/[\\`*_{}[\]<>#|!~]/g, (character) => `\\${character}`)
    .trim()
}
