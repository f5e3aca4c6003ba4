import { type EscalationReport, plainWords } from './escalation.ts'
import type { IncidentEvent } from './event.ts'
import type { Incident } from './incident.ts'
import { resourceKey } from './resource.ts'
import { tellOutcome } from './told-verification.ts'

const listed = 8

/** What a person who is handed an incident needs, folded from the rows of its newest attempt. Pure and total. */
export function escalationReport(
  incident: Pick<Incident, 'title' | 'severity' | 'resource' | 'attempt' | 'createdAt'>,
  events: readonly IncidentEvent[],
  ending: { code: string; said: string | null; nextStep: string | null; since: string | null },
): EscalationReport {
  const own = events.filter(({ attempt }) => attempt === incident.attempt)
  const looks = healthSeen(own)
  const ill = looks.filter(({ health }) => health !== 'nominal')
  const well = looks.filter(({ health }) => health === 'nominal')
  return {
    name: incident.title,
    severity: incident.severity,
    resource: incident.resource ? `${incident.resource.kind} ${incident.resource.id}` : 'no known resource',
    since: minute(ending.since ?? incident.createdAt),
    found: [
      ...(ending.said === null ? [] : [plainWords(ending.said)]),
      ...ill.map(({ key, health }) => `${key} was ${health} when it was looked at last`),
      ...remarksOf(own),
    ].slice(0, listed),
    ruledOut: [...well.map(({ key }) => `${key} was nominal when it was looked at last`), ...denials(own)].slice(
      0,
      listed,
    ),
    changed: changes(own).slice(0, listed),
    nextStep: ending.nextStep ?? nextSteps[ending.code] ?? nextSteps.UNKNOWN_OUTCOME ?? '',
  }
}

function minute(time: string): string {
  return `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`
}

/** The newest health that a read showed of each resource. */
function healthSeen(events: readonly IncidentEvent[]): { key: string; health: string }[] {
  const seen = new Map<string, string>()
  for (const event of events) {
    if (event.kind !== 'tool_finished' || !event.metadata.result.ok) continue
    for (const thing of event.metadata.discovered) if (thing.health) seen.set(resourceKey(thing), thing.health)
  }
  return [...seen].map(([key, health]) => ({ key, health }))
}

/** Findings that the agent recorded on its way. */
function remarksOf(events: readonly IncidentEvent[]): string[] {
  return events.flatMap((event) =>
    event.kind === 'commented' && event.actor.startsWith('agent:') && event.metadata.action !== null
      ? [plainWords(event.metadata.text)]
      : [],
  )
}

function denials(events: readonly IncidentEvent[]): string[] {
  return events.flatMap((event) => {
    if (event.kind !== 'approval_decided' || event.metadata.decision !== 'deny') return []
    const asked = events.find(
      (each) => each.kind === 'approval_requested' && each.metadata.approvalId === event.metadata.approvalId,
    )
    const what = asked?.kind === 'approval_requested' ? asked.metadata.summary : 'an action'
    return [`A person denied: ${what} (${event.metadata.reason ?? 'no reason given'})`]
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
    const word = tellOutcome(verified.get(callId) ?? 'open')
    return [`${tool} on ${targets.map(resourceKey).join(', ') || 'nothing named'}: ${word}`]
  })
}

/** What the person does first, where the agent did not say. By the code of the ending. */
const nextSteps: Record<string, string> = {
  AGENT: 'Read the timeline and decide what the agent could not',
  PERSON: 'Ask the person who escalated it',
  TAKEN: 'It is with the person who took it',
  CONTEXT_FAILED: 'Check that the core API and the database answer, then start the investigation again',
  MODEL_UNAVAILABLE: 'Check the model server (nightshift doctor), then start the investigation again',
  TURN_LIMIT: 'Read what was found so far; start it again with more turns if it was on its way (agent.max_turns)',
  TIME_BUDGET: 'Read what was found so far; start it again with more time if it was on its way (agent.time_budget)',
  TOKEN_BUDGET: 'Read what was found so far; start it again with more tokens if it was on its way (agent.token_budget)',
  BYTE_BUDGET: 'Read what was found so far, and look at the large results yourself',
  LOOP: 'Look for what the agent lacked: it repeated itself',
  CORRECTION_LIMIT: 'Investigate by hand, and check whether this model can use tools',
  UNPROVEN_ANSWER: 'Investigate by hand: what the model said is shown by nothing',
  APPROVAL_EXPIRED: 'Decide whether the action that was asked for is right, then start the investigation again',
  APPROVAL_LOOP: 'Find out what keeps changing the platform, then start the investigation again',
  INDETERMINATE: 'Find out by hand whether the last write took effect before anything else is written',
  ACT_FAILED: 'Check the core API and the platform, then start the investigation again',
  UNKNOWN_OUTCOME: 'Read the timeline, then start the investigation again',
  ALERT_GOES_ON: 'Look at the alert rule, or at what else may raise it',
  DOES_NOT_LAST: 'Find the cause behind what the attempts repaired',
  WATCHDOG_SILENT: 'Check the worker and Temporal, then start the investigation again',
  WATCHDOG_UNEXPIRED: 'Check the worker and Temporal, then start the investigation again',
}
