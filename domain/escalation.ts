import { questionOf, sayAsked } from './asked-action.ts'
import type { IncidentEvent } from './event.ts'
import { formatMinute } from './format.ts'
import { formatVerification } from './format-approval.ts'
import { type Certainty, foldHypotheses, formatHypothesis, type Hypothesis } from './hypothesis.ts'
import type { Incident } from './incident.ts'
import { resourceKey } from './registry.ts'
import { plainWords } from './say.ts'

/** The report for a person who takes over an incident: plain sentences without raw data. */
export type EscalationReport = {
  name: string
  severity: string
  resource: string
  since: string
  found: string[]
  ruledOut: string[]
  /** Resources that were healthy at the last read. Rows of 0.2.0 list them in `ruledOut`. */
  checked?: string[]
  /** Actions that people denied. */
  denied?: string[]
  changed: string[]
  nextStep: string
  /**
   * The certainty of the cause. Absent if the agent stated none, and in rows of earlier versions.
   */
  certainty?: Certainty
}

/** Formats the report as text, one fact per line, for messages and terminals. */
export function reportText(report: EscalationReport, link: string | null = null): string {
  const list = (title: string, items: string[], none: string) =>
    items.length === 0
      ? [`${title}: ${none}`]
      : items.length === 1
        ? [`${title}: ${items[0]}`]
        : [`${title}:`, ...items.map((item) => `- ${item}`)]
  return [
    `${report.name} (${report.severity}), ${report.resource}, since ${report.since}`,
    ...list('Found', report.found, 'nothing yet'),
    ...list('Ruled out', report.ruledOut, 'nothing'),
    ...(report.checked?.length ? list('Checked', report.checked, 'nothing') : []),
    ...list('Changed', report.changed, 'nothing'),
    ...(report.denied?.length ? list('Denied', report.denied, 'nothing') : []),
    ...(report.certainty ? [`Certainty: ${report.certainty}`] : []),
    `Next step: ${report.nextStep}`,
    ...(link === null ? [] : [link]),
  ].join('\n')
}

const listed = 8

type Ending = {
  code: string
  said: string | null
  nextStep: string | null
  since: string | null
  certainty?: Certainty | null
}

/**
 * Computes the report for the person who takes over from the log rows of the newest attempt. Has no
 * side effect and never throws.
 */
export function escalationReport(
  incident: Pick<Incident, 'title' | 'severity' | 'resource' | 'attempt' | 'createdAt'>,
  events: readonly IncidentEvent[],
  ending: Ending,
): EscalationReport {
  const own = events.filter(({ attempt }) => attempt === incident.attempt)
  const causes = foldHypotheses(own, incident.attempt)
  const looks = healthSeen(own)
  const ill = looks.filter(({ health }) => health !== 'nominal')
  const well = looks.filter(({ health }) => health === 'nominal')
  return {
    name: incident.title,
    severity: incident.severity,
    resource: incident.resource ? `${incident.resource.kind} ${incident.resource.id}` : 'no known resource',
    since: formatMinute(ending.since ?? incident.createdAt),
    found: [
      ...(ending.said === null ? [] : [plainWords(ending.said)]),
      ...causes.filter(({ state }) => state !== 'refuted').map(tellCause),
      ...ill.map(({ key, health, said }) => said ?? `${key} was ${health} at the last check`),
      ...remarksOf(own),
    ].slice(0, listed),
    // Lists as ruled out only hypotheses that were refuted.
    ruledOut: causes
      .filter(({ state }) => state === 'refuted')
      .map(tellCause)
      .slice(0, listed),
    checked: well.map(({ key }) => `${key} was nominal at the last check`).slice(0, listed),
    changed: changes(own).slice(0, listed),
    denied: denials(own).slice(0, listed),
    ...(ending.certainty && { certainty: ending.certainty }),
    nextStep: ending.nextStep ?? nextSteps[ending.code] ?? nextSteps.UNKNOWN_OUTCOME ?? '',
  }
}

/** Describes a hypothesis in a sentence: its state, and the rows that show the state. */
function tellCause(cause: Hypothesis): string {
  return plainWords(formatHypothesis(cause))
}

/** Finds the newest health of each resource in the reads. */
function healthSeen(events: readonly IncidentEvent[]): { key: string; health: string; said: string | null }[] {
  const seen = new Map<string, { health: string; said: string | null }>()
  for (const event of events) {
    if (event.kind !== 'tool_finished' || !event.metadata.result.ok) continue
    const { discovered, said } = event.metadata
    const [only, ...others] = discovered.filter(({ health }) => health)
    for (const thing of discovered)
      if (thing.health)
        seen.set(resourceKey(thing), {
          health: thing.health,
          said: only === thing && others.length === 0 ? (said ?? null) : null,
        })
  }
  return [...seen].map(([key, { health, said }]) => ({ key, health, said }))
}

/** Lists the findings that the agent recorded in the log. */
function remarksOf(events: readonly IncidentEvent[]): string[] {
  return events.flatMap((event) =>
    event.kind === 'commented' &&
    event.actor.startsWith('agent:') &&
    event.metadata.action !== null &&
    !event.metadata.hypothesis
      ? [plainWords(event.metadata.text)]
      : [],
  )
}

function denials(events: readonly IncidentEvent[]): string[] {
  return events.flatMap((event) => {
    if (event.kind !== 'approval_decided' || event.metadata.decision !== 'deny') return []
    const what = sayAsked(questionOf(events, event))
    return [`${what} (${event.metadata.reason ?? 'no reason given'})`]
  })
}

function changes(events: readonly IncidentEvent[]): string[] {
  const verified = new Map<string, string>()
  for (const event of events) {
    if (event.kind === 'verification') verified.set(event.metadata.callId, event.metadata.outcome)
  }
  return events.flatMap((event) => {
    if (event.kind !== 'tool_started' || event.metadata.effect !== 'write') return []
    const { tool, targets, callId } = event.metadata
    const word = formatVerification(verified.get(callId) ?? 'open')
    return [`${tool} on ${targets.map(resourceKey).join(', ') || 'nothing named'}: ${word}`]
  })
}

/** The first step for a person, by the code of the ending, if the agent named no step. */
const nextSteps: Record<string, string> = {
  AGENT: 'Read the timeline and decide what the agent could not',
  PERSON: 'Ask the person who escalated the incident',
  TAKEN: 'The person who took the incident works on it',
  CONTEXT_FAILED: 'Check that the core API and the database answer, then start the investigation again',
  TRUST_LOST:
    'Read what the tool did in that incident, then decide on the page Trust whether it may act without approval again (nightshift trust)',
  MODEL_UNAVAILABLE: 'Check the model server (nightshift doctor), then start the investigation again',
  TURN_LIMIT:
    'Read the findings; if the cause was nearly found, start the investigation again with more turns (agent.max_turns)',
  TIME_BUDGET:
    'Read the findings; if the cause was nearly found, start the investigation again with more time (agent.time_budget)',
  TOKEN_BUDGET:
    'Read the findings; if the cause was nearly found, start the investigation again with more tokens (agent.token_budget)',
  MONEY_BUDGET:
    'Read the findings; to continue today, raise agent.budget_day or agent.budget_month and start the investigation again',
  BYTE_BUDGET: 'Read the findings, and look at the large results yourself',
  LOOP: 'The agent repeated itself: find out what it lacked',
  CORRECTION_LIMIT: 'Investigate by hand, and check whether this model can use tools',
  UNPROVEN_ANSWER: 'Investigate by hand: no row shows what the model said',
  APPROVAL_EXPIRED: 'Decide whether the requested action is right, then start the investigation again',
  APPROVAL_LOOP: 'Find out what keeps changing the platform, then start the investigation again',
  INDETERMINATE: 'Check by hand whether the last write took effect, before anything else is written',
  ACT_FAILED: 'Check the core API and the platform, then start the investigation again',
  UNKNOWN_OUTCOME: 'Read the timeline, then start the investigation again',
  ALERT_GOES_ON: 'Check the alert rule, and other reasons why it may fire',
  DOES_NOT_LAST: 'Find the cause that the repairs did not remove',
  WATCHDOG_SILENT: 'Check the worker and Temporal, then start the investigation again',
  WATCHDOG_UNEXPIRED: 'Check the worker and Temporal, then start the investigation again',
}
