import { type ServedBrief, servedBrief } from '../../domain/brief.ts'
import { formatNumber, formatSpan } from '../../domain/format.ts'
import { formatAlsoAsked, formatShortConsequences } from '../../domain/format-approval.ts'
import { formatDollars } from '../../domain/price.ts'
import { alertWords, causeWords, describeLooks, doneWords } from '../../domain/status-words.ts'
import type { ApiClient, ApiIncident } from '../api.ts'
import { commandLine } from '../connection.ts'
import { formatMoment } from '../ui/table.ts'
import { getTerminalWidth, inert, paint, wrap } from '../ui/terminal.ts'

/** The brief of an incident; throws CommandFailed where the API has no such incident. */
export async function readBrief(api: ApiClient, id: string): Promise<ServedBrief> {
  return servedBrief.parse(await api.get(`/api/v1/incidents/${encodeURIComponent(id)}/brief`))
}

const width = 10

function formatLine(name: string, texts: readonly string[]): string[] {
  const room = getTerminalWidth() - width - 4
  return texts.map(
    (text, at) => `  ${paint('bold', (at === 0 ? name : '').padEnd(width))} ${wrap(text, room, ' '.repeat(width + 3))}`,
  )
}

const formatRows = (rows: readonly number[]) =>
  rows.length === 0
    ? ''
    : ` (${rows
        .slice(0, 4)
        .map((seq) => `#${seq}`)
        .join(', ')})`

/** The answer first: since when, cause, impact, what was done, what is asked, what comes next. Each sentence names its rows. */
export function formatBrief(brief: ServedBrief, { owner }: ApiIncident, now = Date.now()): string {
  const { since, alert, resource, cause, impact, done, asked, next, spent } = brief
  const how = [causeWords[cause.state], cause.certainty].filter(Boolean).join(', ')
  const looked = describeLooks(brief)
  const money = spent.dollars > 0 ? `, ${formatDollars(spent.dollars)}` : ''
  return [
    ...formatLine('since', [
      `${formatMoment(since.at)}, ${formatSpan(now - Date.parse(since.at))}; ${alertWords[alert.state]}`,
    ]),
    ...(resource ? formatLine('now', [inert(resource.text) + formatRows(resource.rows)]) : []),
    ...formatLine('cause', [`${inert(cause.text)}${how && ` [${how}]`}${formatRows(cause.rows)}`]),
    ...(impact ? formatLine('impact', [inert(impact.text) + formatRows(impact.rows)]) : []),
    ...formatLine('done', [
      ...(looked ? [looked] : []),
      ...done.map(({ text, outcome, rows }) => `${doneWords[outcome]}: ${inert(text)}${formatRows(rows)}`),
    ]),
    ...(asked ? formatAsked(asked, brief.alsoAsked) : formatLine('next', [inert(next.text) + formatRows(next.rows)])),
    ...formatLine('owner', [owner ? inert(owner.name) : 'nobody']),
    ...formatLine('spent', [
      `${spent.turns} ${spent.turns === 1 ? 'turn' : 'turns'}, ${formatNumber(spent.tokens)} tokens${money}`,
    ]),
  ].join('\n')
}

function formatAsked(asked: NonNullable<ServedBrief['asked']>, alsoAsked: number): string[] {
  const { id, dryRun, risk, reversible } = asked
  const { approve, deny, wait } = formatShortConsequences(asked, formatMoment)
  return [
    ...formatLine('approval', [
      `${inert(dryRun.summary)}${formatAlsoAsked(alsoAsked)} [${risk} risk, ${reversible ? 'reversible' : 'cannot be undone'}]`,
      commandLine(`approvals show ${inert(id)}`),
    ]),
    ...formatLine('if yes', [approve]),
    ...formatLine('if no', [deny]),
    ...formatLine('if nobody', [wait]),
  ]
}
