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

/** Describes the state of an incident for people: its status, its alert, and what people do. */
export function statusWords(incident: Standing): string {
  return [withSpaces(incident.status), ...remarks(incident)].join(', ')
}

/** Adds the name of the alert to a title that does not contain it. */
export function withAlertName(title: string, alertName: string | null): string {
  return alertName === null || title.includes(alertName) ? title : `${title} [${alertName}]`
}

/** Lists remarks that are shown beside a status. */
export function remarks(incident: Standing): string[] {
  const { status, outcome, category, alerts, reopened, owner, keptReason, cancelledUntil } = incident
  const said: string[] = []
  if (status === 'resolved' && outcome === 'expected') said.push('expected')
  if (status === 'resolved' && outcome === 'unproven')
    said.push('quiet, unproven: nothing shows that the problem is over')
  if (status === 'escalated' && category === 'mitigated') said.push('mitigated: the impact is gone, the cause remains')
  if (status === 'cancelled' && cancelledUntil) said.push(`until ${formatMinute(cancelledUntil)}`)
  const isClosed = status === 'resolved' || status === 'escalated' || status === 'cancelled'
  if (isClosed && alerts.firing > 0) said.push('its alert still fires')
  else if (isClosed && alerts.unknown > 0) said.push('whether its alert fires is unknown')
  if (reopened > 0 && !isClosed) said.push(reopened === 1 ? 'it came back' : `it came back ${reopened} times`)
  if (owner) said.push(`${owner.name} has it`)
  if (keptReason !== null) said.push('not investigated')
  if (incident.reviewWantedAt !== null) said.push('done without a second person, waits for a review')
  return said
}

/** Words for people for what the policy check decided about a call. */
export const verdictWords: Record<Verdict, string> = { run: 'allowed', ask: 'requires approval', refuse: 'refused' }

/** Words for people for how an incident was resolved. */
export const outcomeWords: Record<ResolveOutcome, string> = {
  repaired: 'repaired',
  self_resolved: 'ended by itself',
  no_fault: 'no fault',
  answered: 'answered',
  expected: 'expected',
  changed: 'changed by a person',
  unproven: 'quiet, unproven',
}

/** Words for people for why an incident was escalated. */
export const categoryWords: Record<EscalationCategory, string> = {
  no_fault_found: 'no fault found',
  needs_approval: 'needs an approval',
  no_tool: 'no suitable tool',
  does_not_last: 'repairs do not last',
  alert_goes_on: 'the write was verified, but the alert still fires',
  mitigated: 'mitigated',
  unknown: 'unknown',
}

const closerWords = { agent: 'by the agent', person: 'by a person', code: 'by Nightshift' } as const

/**
 * Describes how an incident ended, and by whom if the outcome leaves this open; null while open.
 */
export function describeClosure({ outcome, category, closedBy }: Incident): string | null {
  const word = outcome ? outcomeWords[outcome] : category ? categoryWords[category] : null
  if (outcome === 'changed') return word
  const by = closedBy && closerWords[closedBy]
  return [word, by].filter(Boolean).join(', ') || null
}

type ReportFigure = { name: string; figure: string; more: string }

/** Formats the cost of models. The cost is unknown in a report about one severity. */
export function formatCost({ dollars }: Pick<ReportLine, 'dollars'>): string {
  return dollars === null ? '–' : formatDollars(dollars)
}

/**
 * Describes a line of a report, with a remark on each figure. Page and terminal use these texts.
 */
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
    { name: 'Claims without evidence', figure: formatNumber(unshownClaims), more: 'refused or marked' },
    ...tellCauses(line),
    { name: 'Cost', figure: formatCost(line), more: line.dollars === null ? 'not kept by severity' : 'of models' },
  ]
}

/**
 * Describes how people graded the causes that the agent found, with the interval of the share.
 * Empty if there are no grades.
 */
function tellCauses(line: ReportLine): ReportFigure[] {
  const of = line.causesRight + line.causesPartly + line.causesWrong
  const interval = wilson(line.causesRight, of)
  if (interval === null) return []
  const more = `of ${formatNumber(of)} graded; ${formatInterval(interval)} with 95 %`
  return [{ name: 'Causes graded right', figure: formatNumber(line.causesRight), more }]
}

/** Formats the grades of causes for the cell of a table: `9 of 12, 46 to 92 %`. */
export function formatCauses({ causesRight, causesPartly, causesWrong }: ReportLine): string {
  const of = causesRight + causesPartly + causesWrong
  const interval = wilson(causesRight, of)
  return interval === null ? '–' : `${causesRight} of ${of}, ${formatInterval(interval)}`
}

/** Formats the share of closed incidents that were resolved without a person. */
export function formatShare({ autoResolved, closed }: Pick<ReportLine, 'autoResolved' | 'closed'>): string {
  return closed === 0 ? '–' : `${Math.round((100 * autoResolved) / closed)} %`
}

/** Formats the median and the 90th percentile of a duration: `84 s, p90 10 min`. */
export function formatSpread(spread: Spread): string {
  return spread === null ? '–' : `${formatSpan(spread.p50 * 1000)}, p90 ${formatSpan(spread.p90 * 1000)}`
}

/**
 * Describes how an attempt ended: `resolved: repaired`, `escalated: no tool for it`, `cancelled`.
 */
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

/** Words for the outcome of an action, shown beside its sentence. */
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

/** Sentences about whether the alerts of an incident fire. */
export const alertWords: Record<IncidentBrief['alert']['state'], string> = {
  firing: 'its alert fires',
  resolved: 'its alert has ended',
  unproven: 'its alert is quiet, and nothing shows that it is over',
  unknown: 'whether its alert fires is unknown',
  none: 'no alert',
}

/**
 * Adds to the state of a healthy resource that its alert fires, so that neither fact hides the
 * other.
 */
export function withItsAlert(
  observed: string,
  isWell: boolean,
  { state }: Pick<IncidentBrief['alert'], 'state'>,
): string {
  return isWell && state === 'firing' ? `${observed.replace(/\.$/, '')}, and its alert fires` : observed
}

/**
 * Whether an incident is closed although its alert still fires, and no person marked this as
 * expected.
 */
export function isClosedAndFiring(
  { closedAt, outcome }: Pick<Incident, 'closedAt' | 'outcome'>,
  { state }: Pick<IncidentBrief['alert'], 'state'>,
): boolean {
  return closedAt !== null && outcome !== 'expected' && state === 'firing'
}

/** Words for how the cause is known. Empty if the sentence about the cause already says so. */
export const causeWords: Record<IncidentBrief['cause']['state'], string> = {
  supported: 'quoted',
  survived: 'survived a check that could refute it',
  held: 'its repair held',
  proposed: 'proposed',
  ending: '',
  stated: 'as the agent says',
  requested: 'as the requesting person says',
  unknown: '',
}

/**
 * Returns the heading of a cause. For an ending without a hypothesis, the heading introduces the
 * reason of the ending.
 */
export function nameOfCause({ state }: Pick<IncidentBrief['cause'], 'state'>, status: Incident['status']): string {
  if (state !== 'ending') return 'Cause'
  return status === 'escalated'
    ? 'Escalated because'
    : status === 'cancelled'
      ? 'Cancelled because'
      : 'Cause and repair'
}

/** Returns the text for the part "done" if no write ran; null if one ran. */
export function describeLooks({ done, looks }: Pick<IncidentBrief, 'done' | 'looks'>): string | null {
  if (done.some(({ outcome }) => !['refused', 'denied', 'expired'].includes(outcome))) return null
  return looks === 0 ? 'Nothing yet.' : `Only reads (${looks === 1 ? 'one' : looks}): nothing was changed.`
}

/** Maximum points for one probe of a model in its passport. */
export const maxPoints = 10

/** Formats a model's passport as a line: `grade B, 101 of 120 points, 41 tokens a second`. */
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

/** Formats a model's abilities: `tool calls, streams; not: several at once`. Omits unknown ones. */
export function describeAbilities(abilities: ModelAbilities): string {
  const named = (word: 'yes' | 'no') =>
    (Object.keys(abilityWords) as (keyof ModelAbilities)[])
      .filter((name) => abilities[name] === word)
      .map((name) => abilityWords[name])
      .join(', ')
  return [named('yes'), named('no') && `not: ${named('no')}`].filter(Boolean).join('; ') || 'not known yet'
}

/** Counts a night's incidents and outcomes. Leaves out figures that Home shows beside the text. */
export function describeCounts(tonight: Home['tonight']): string {
  return describeNight(tonight, { share: '', figures: [] })
}

/**
 * Summarizes a night: `12 incidents · 9 resolved, 7 of 11 closed without a person (64 %) · median
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

/** Explains why a line of Home needs the reader. */
export function describeNeed({ need, category, count, incident, approval }: NeedLine): string {
  const isSaid = category === 'alert_goes_on' && need === 'escalated'
  const firing = incident.alerts.firing > 0 && count === 1 && !isSaid ? ', its alert still fires' : ''
  if (approval) return `Approve or deny: ${approval.summary}${formatAlsoAsked(approval.alsoAsked)}`
  if (need === 'review') return 'Done without a second person: somebody else must review it'
  if (need === 'yours') return `You own it${firing}`
  if (need === 'kept') return 'Not investigated: agent.investigate leaves it to people'
  // Says who escalated only for a single incident, because several incidents may have been
  // escalated by different people.
  const by = count === 1 && incident.closedBy ? closerWords[incident.closedBy] : 'without a category'
  return `Escalated: ${category ? categoryWords[category] : by}${firing}`
}

/** Describes the progress of the incidents in a line of Home. */
export function describeWork({ incident, count, investigating, queued, owned }: WorkLine): string {
  if (count === 1 && incident.owner) return `${incident.owner.name} has it`
  if (count === 1) return investigating === 1 ? 'investigating' : 'queued'
  return [
    ...(investigating > 0 ? [`${formatNumber(investigating)} at work`] : []),
    ...(queued > 0 ? [`${formatNumber(queued)} queued`] : []),
    ...(owned > 0 ? [`${formatNumber(owned)} with people`] : []),
  ].join(', ')
}

/** Explains how to isolate the reads of a device, after which they need no approval. */
export const sandboxRemedy =
  'install bubblewrap on the device, or let the user of its agent create namespaces; the agent tries again every hour, and when mounts change'

/** Explains why a device does not isolate its reads; null if it does, or if nothing is known. */
export function findSandboxLack(health: Pick<MeshHealth, 'sandbox' | 'unavailable'> | null): string | null {
  return health?.sandbox === 'none' ? (health.unavailable?.sandbox ?? 'its agent gives no reason') : null
}
