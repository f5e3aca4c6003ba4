import type { DoneOutcome, IncidentBrief } from './brief.ts'
import type { ModelAbilities } from './chat.ts'
import type { IncidentEvent, Verdict } from './event.ts'
import { formatMinute, formatNumber, formatSpan, withSpaces } from './format.ts'
import { formatAlsoAsked, hastySeconds } from './format-approval.ts'
import type { EscalationCategory, Incident, ResolveOutcome } from './incident.ts'
import type { Home, NeedLine, WorkLine } from './incident-detail.ts'
import type { MeshHealth } from './mesh.ts'
import type { Passport } from './passport.ts'
import { formatDollars } from './price.ts'
import type { ReportLine, Spread } from './report.ts'
import { wilson } from './trust.ts'
import { formatInterval } from './trust-words.ts'

type Standing = Pick<
  Incident,
  | 'status'
  | 'outcome'
  | 'category'
  | 'alerts'
  | 'reopened'
  | 'owner'
  | 'keptReason'
  | 'cancelledUntil'
  | 'reviewWantedAt'
>

/** An incident's state as people say it: its status, and what its alert and people do now. */
export function statusWords(incident: Standing): string {
  return [withSpaces(incident.status), ...remarks(incident)].join(', ')
}

/** A title with the name that the sender gives the alert, where the title does not say it. */
export function withAlertName(title: string, alertName: string | null): string {
  return alertName === null || title.includes(alertName) ? title : `${title} [${alertName}]`
}

/** A mark beside a status. Pages show it as one. */
export function remarks(incident: Standing): string[] {
  const { status, outcome, category, alerts, reopened, owner, keptReason, cancelledUntil } = incident
  const said: string[] = []
  if (status === 'resolved' && outcome === 'expected') said.push('expected')
  if (status === 'resolved' && outcome === 'unproven') said.push('quiet, unproven: nothing shows that it is over')
  if (status === 'escalated' && category === 'mitigated') said.push('mitigated: the impact is gone, the cause is left')
  if (status === 'cancelled' && cancelledUntil) said.push(`until ${formatMinute(cancelledUntil)}`)
  const isClosed = status === 'resolved' || status === 'escalated' || status === 'cancelled'
  if (isClosed && alerts.firing > 0) said.push('its alert still fires')
  else if (isClosed && alerts.unknown > 0) said.push('whether its alert fires is unknown')
  if (reopened > 0 && !isClosed) said.push(reopened === 1 ? 'it came back' : `it came back ${reopened} times`)
  if (owner) said.push(`${owner.name} has it`)
  if (keptReason !== null) said.push('not investigated')
  if (incident.reviewWantedAt !== null) said.push('done alone, waits for its review by a second person')
  return said
}

/** What the policy check said of a call, for people. */
export const verdictWords: Record<Verdict, string> = { run: 'allowed', ask: 'requires approval', refuse: 'refused' }

/** How it was resolved, as people say it. */
export const outcomeWords: Record<ResolveOutcome, string> = {
  repaired: 'repaired',
  self_resolved: 'gone by itself',
  no_fault: 'no fault',
  answered: 'answered',
  expected: 'expected',
  changed: 'changed by a person',
  unproven: 'quiet, unproven',
}

/** Why it was escalated, as people say it. */
export const categoryWords: Record<EscalationCategory, string> = {
  no_fault_found: 'no fault found',
  needs_approval: 'needs an approval',
  no_tool: 'no tool for it',
  does_not_last: 'repairs do not last',
  alert_goes_on: 'the write held, the alert fires on',
  mitigated: 'mitigated',
  unknown: 'unknown',
}

const closerWords = { agent: 'by the agent', person: 'by a person', code: 'by Nightshift' } as const

/** How it ended in a word, and by whom where the word does not say it; null while it is open. */
export function describeClosure({ outcome, category, closedBy }: Incident): string | null {
  const word = outcome ? outcomeWords[outcome] : category ? categoryWords[category] : null
  if (outcome === 'changed') return word
  const by = closedBy && closerWords[closedBy]
  return [word, by].filter(Boolean).join(', ') || null
}

type ReportFigure = { name: string; figure: string; more: string }

/** The cost of models; of one severity it is not known. */
export function formatCost({ dollars }: Pick<ReportLine, 'dollars'>): string {
  return dollars === null ? '–' : formatDollars(dollars)
}

/** A line of a report, with a remark on each figure, the same on page and terminal. */
export function describeReport(line: ReportLine): ReportFigure[] {
  const { incidents, closed, autoResolved, approvals, escalated, repairs, repairsNotLasting, unshownClaims } = line
  const { pagesHeld, questionsHeld, wakesAvoided } = line
  const timed = (name: string, spread: Spread): ReportFigure => ({
    name,
    figure: spread === null ? '–' : formatSpan(spread.p50 * 1000),
    more: spread === null ? '' : `median; p90 ${formatSpan(spread.p90 * 1000)}`,
  })
  return [
    { name: 'Incidents', figure: formatNumber(incidents), more: `${formatNumber(closed)} closed` },
    {
      name: 'Auto-resolved',
      figure: formatShare(line),
      more: closed === 0 ? '' : `${formatNumber(autoResolved)} of ${formatNumber(closed)} closed`,
    },
    ...(line.unproven > 0
      ? [{ name: 'Quiet, unproven', figure: formatNumber(line.unproven), more: 'not counted as resolved' }]
      : []),
    timed('Time to acknowledge', line.acknowledgeSeconds),
    timed('Time to resolve', line.resolveSeconds),
    timed('Wait for a decision', line.approvalSeconds),
    { name: 'Approvals', figure: formatNumber(approvals), more: 'asked for' },
    ...(line.approvalsWithinSeconds > 0
      ? [
          {
            name: `Approved within ${hastySeconds} s`,
            figure: formatNumber(line.approvalsWithinSeconds),
            more: 'perhaps unread',
          },
        ]
      : []),
    { name: 'Escalated', figure: formatNumber(escalated), more: 'to people' },
    { name: 'Repairs that did not last', figure: formatNumber(repairsNotLasting), more: `of ${formatNumber(repairs)}` },
    ...(pagesHeld + questionsHeld > 0
      ? [
          {
            name: 'Wakes avoided',
            figure: formatNumber(wakesAvoided),
            more: `of ${formatNumber(pagesHeld + questionsHeld)} held${questionsHeld > 0 ? `; questions: ${formatNumber(questionsHeld)}` : ''}`,
          },
        ]
      : []),
    { name: 'Unshown claims', figure: formatNumber(unshownClaims), more: 'refused or marked' },
    ...tellCauses(line),
    { name: 'Cost', figure: formatCost(line), more: line.dollars === null ? 'not kept by severity' : 'of models' },
  ]
}

/** People's grades of the agent's causes, with the share's interval; empty without any. */
function tellCauses(line: ReportLine): ReportFigure[] {
  const of = line.causesRight + line.causesPartly + line.causesWrong
  const interval = wilson(line.causesRight, of)
  if (interval === null) return []
  const more = `of ${formatNumber(of)} graded; ${formatInterval(interval)} with 95 %`
  return [{ name: 'Causes called right', figure: formatNumber(line.causesRight), more }]
}

/** The same in a cell: `9 of 12, 46 to 92 %`. */
export function formatCauses({ causesRight, causesPartly, causesWrong }: ReportLine): string {
  const of = causesRight + causesPartly + causesWrong
  const interval = wilson(causesRight, of)
  return interval === null ? '–' : `${causesRight} of ${of}, ${formatInterval(interval)}`
}

/** The share of closed ones that was resolved without a person. */
export function formatShare({ autoResolved, closed }: Pick<ReportLine, 'autoResolved' | 'closed'>): string {
  return closed === 0 ? '–' : `${Math.round((100 * autoResolved) / closed)} %`
}

/** `84 s, p90 10 min`. */
export function formatSpread(spread: Spread): string {
  return spread === null ? '–' : `${formatSpan(spread.p50 * 1000)}, p90 ${formatSpan(spread.p90 * 1000)}`
}

/** How an attempt ended: `resolved: repaired`, `escalated: no tool for it`, `cancelled`. */
export function describeEnd(event: IncidentEvent<'resolved' | 'escalated' | 'cancelled'>): string {
  if (event.kind === 'resolved') return `resolved: ${outcomeWords[event.metadata.outcome] ?? event.metadata.outcome}`
  if (event.kind === 'cancelled') return 'cancelled'
  const { category, code } = event.metadata
  const why =
    category && category !== 'unknown'
      ? categoryWords[category]
      : code === 'AGENT'
        ? ''
        : withSpaces(code).toLowerCase()
  return why ? `escalated: ${why}` : 'escalated'
}

/** What became of an action, beside its sentence. */
export const doneWords: Record<DoneOutcome, string> = {
  verified: 'verified',
  verification_failed: 'verification failed',
  unproven: 'not proved',
  open: 'not verified yet',
  running: 'runs now',
  failed: 'failed',
  indeterminate: 'unknown whether it took effect',
  refused: 'refused',
  denied: 'denied',
  expired: 'expired, nothing was changed',
}

/** Whether the alerts of an incident fire. */
export const alertWords: Record<IncidentBrief['alert']['state'], string> = {
  firing: 'its alert fires',
  resolved: 'its alert has ended',
  unproven: 'its alert is quiet, and nothing shows that it is over',
  unknown: 'whether its alert fires is unknown',
  none: 'no alert',
}

/** A resource that looks well while its alert fires: one does not hide the other. */
export function withItsAlert(
  observed: string,
  isWell: boolean,
  { state }: Pick<IncidentBrief['alert'], 'state'>,
): string {
  return isWell && state === 'firing' ? `${observed.replace(/\.$/, '')}, and its alert fires` : observed
}

/** It is closed, and what it was about goes on, which no person called expected. */
export function isClosedAndFiring(
  { closedAt, outcome }: Pick<Incident, 'closedAt' | 'outcome'>,
  { state }: Pick<IncidentBrief['alert'], 'state'>,
): boolean {
  return closedAt !== null && outcome !== 'expected' && state === 'firing'
}

/** How the cause is known. Empty where the sentence says it. */
export const causeWords: Record<IncidentBrief['cause']['state'], string> = {
  supported: 'quoted',
  survived: 'survived a check that could refute it',
  held: 'its repair held',
  proposed: 'proposed',
  ending: '',
  stated: 'as the agent says',
  requested: 'as the person says who asks',
  unknown: '',
}

/** The words before a cause: of an escalation without a hypothesis, why it went to people. */
export function nameOfCause({ state }: Pick<IncidentBrief['cause'], 'state'>, status: Incident['status']): string {
  if (state !== 'ending') return 'Cause'
  return status === 'escalated'
    ? 'Escalated because'
    : status === 'cancelled'
      ? 'Cancelled because'
      : 'Cause and repair'
}

/** What stands under "done" where nothing was written, refused or denied. */
export function describeLooks({ done, looks }: Pick<IncidentBrief, 'done' | 'looks'>): string | null {
  if (done.some(({ outcome }) => !['refused', 'denied', 'expired'].includes(outcome))) return null
  return looks === 0 ? 'Nothing yet.' : `Looked only (${looks === 1 ? 'once' : `${looks} times`}): nothing was changed.`
}

/** Points that one probe of the passport may give. */
export const maxPoints = 10

/** One line for people: `grade B, 101 of 120 points, 41 tokens a second`. */
export function describePassport({
  grade,
  points,
  outOf,
  tokensPerSecond,
  withdrawn = null,
}: Pick<Passport, 'grade' | 'points' | 'outOf' | 'tokensPerSecond'> & { withdrawn?: string | null }): string {
  const speed = tokensPerSecond === null ? '' : `, ${formatNumber(Math.round(tokensPerSecond))} tokens a second`
  const standing = withdrawn === null ? '' : ` (withdrawn: ${withdrawn})`
  return `grade ${grade}${standing}, ${formatNumber(points)} of ${formatNumber(outOf)} points${speed}`
}

const abilityWords: Record<keyof ModelAbilities, string> = {
  tools: 'tool calls',
  parallel: 'several at once',
  schema: 'JSON schema',
  grammar: 'grammar',
  usage: 'counts tokens',
  streaming: 'streams',
}

/** `tool calls, streams; not: several at once`; what is not known is left out. */
export function describeAbilities(abilities: ModelAbilities): string {
  const named = (word: 'yes' | 'no') =>
    (Object.keys(abilityWords) as (keyof ModelAbilities)[])
      .filter((name) => abilities[name] === word)
      .map((name) => abilityWords[name])
      .join(', ')
  return [named('yes'), named('no') && `not: ${named('no')}`].filter(Boolean).join('; ') || 'not known yet'
}

/** What came in and what became of it, without the figures that stand beside it on Home. */
export function describeCounts(tonight: Home['tonight']): string {
  return describeNight(tonight, { share: '', figures: [] })
}

/**
 * A night in one line: `12 incidents · 9 resolved, 7 of 11 closed without a person (64 %) · median
 * 41 s · 0 failed repairs · 182,000 tokens`.
 */
export function describeTonight(tonight: Home['tonight']): string {
  const { closed, resolvedAlone, medianSeconds, failedRepairs } = tonight
  const alone = `${formatNumber(resolvedAlone)} of ${formatNumber(closed)} closed without a person`
  return describeNight(tonight, {
    share: closed > 0 ? `, ${alone} (${formatShare({ autoResolved: resolvedAlone, closed })})` : '',
    figures: [
      ...(medianSeconds !== null ? [`median ${formatSpan(medianSeconds * 1_000)}`] : []),
      failedRepairs === 1 ? '1 failed repair' : `${formatNumber(failedRepairs)} failed repairs`,
    ],
  })
}

function describeNight(tonight: Home['tonight'], more: { share: string; figures: string[] }): string {
  const { incidents, resolved, unproven, escalated, tokens, dollars } = tonight
  return [
    incidents === 1 ? '1 incident' : `${formatNumber(incidents)} incidents`,
    `${formatNumber(resolved)} resolved${more.share}`,
    ...(escalated > 0 ? [`${formatNumber(escalated)} escalated`] : []),
    ...(unproven > 0 ? [`${formatNumber(unproven)} quiet, unproven`] : []),
    ...more.figures,
    `${formatNumber(tokens)} tokens${dollars > 0 ? `, ${formatDollars(dollars)}` : ''}`,
  ].join(' · ')
}

/** Why a line of Home needs its reader. */
export function describeNeed({ need, category, count, incident, approval }: NeedLine): string {
  const isSaid = category === 'alert_goes_on' && need === 'escalated'
  const firing = incident.alerts.firing > 0 && count === 1 && !isSaid ? ', its alert still fires' : ''
  if (approval) return `Approve or deny: ${approval.summary}${formatAlsoAsked(approval.alsoAsked)}`
  if (need === 'review') return 'Done alone: somebody else reviews it'
  if (need === 'yours') return `You have it${firing}`
  if (need === 'kept') return 'Not investigated: agent.investigate leaves it to people'
  // The newest of several names the person; the others may name different ones.
  const by = count === 1 && incident.closedBy ? closerWords[incident.closedBy] : 'without a category'
  return `Escalated: ${category ? categoryWords[category] : by}${firing}`
}

/** How far the incidents of a line of Home are. */
export function describeWork({ incident, count, investigating, queued, owned }: WorkLine): string {
  if (count === 1 && incident.owner) return `${incident.owner.name} has it`
  if (count === 1) return investigating === 1 ? 'investigating' : 'queued'
  return [
    ...(investigating > 0 ? [`${formatNumber(investigating)} at work`] : []),
    ...(queued > 0 ? [`${formatNumber(queued)} queued`] : []),
    ...(owned > 0 ? [`${formatNumber(owned)} with people`] : []),
  ].join(', ')
}

/** What ends the questions of a device that does not confine what it reads. */
export const sandboxRemedy =
  'install bubblewrap on it, or let the user of its agent make namespaces; the agent tries again every hour, and when mounts change'

/** Why a device does not confine what it reads, in words; null where it does, or was not asked. */
export function findSandboxLack(health: Pick<MeshHealth, 'sandbox' | 'unavailable'> | null): string | null {
  return health?.sandbox === 'none' ? (health.unavailable?.sandbox ?? 'its agent does not say why') : null
}
