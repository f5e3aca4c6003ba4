import { formatMinute } from '../domain/format.ts'
import { formatAlsoAsked } from '../domain/format-approval.ts'
import type { Notification, Trigger } from '../domain/notification.ts'
import { categoryWords, outcomeWords } from '../domain/status-words.ts'

/**
 * A notification's words, alike for every receiver that shows people. Nothing here is made inert:
 * each receiver can be misled in its own ways.
 */

const headings: Record<Trigger, string> = {
  critical: 'Critical',
  escalated: 'Escalated',
  approval: 'Approval needed',
  resolved: 'Resolved',
  watch: 'Repaired, but its alert still fires',
  reopened: 'Reopened',
  reminder: 'Still firing',
  quiet: 'Quiet now',
  owner: 'Your incident fires again',
  taken: 'Taken',
  closed: 'Closed',
  digest: 'Still firing, escalated',
  spared: 'No page was needed',
  morning: 'Morning',
  hand_over: 'Hand-over',
  follow_up: 'Follow-up',
  notice: 'Notice',
  late: 'Messages that had to wait',
  undelivered: 'Messages that reached nobody',
  duty: 'Health',
}

const reminders = ['Approval needed', 'Approval still needed', 'Expires soon']

/** One line that says what it is about. */
export function headingOf({ trigger, incident, approval, incidents }: Notification): string {
  if (incidents.length > 0)
    return `${headings[trigger]}: ${incidents.length === 1 ? '1 incident' : `${incidents.length} incidents`}`
  if (approval)
    return `${reminders[approval.reminder] ?? 'Approval needed'}${approval.of ? ` of ${approval.of.name}` : ''}: ${approval.summary}${formatAlsoAsked(approval.alsoAsked)}`
  if (isCard(trigger)) return incident.title
  const isMitigated = trigger === 'escalated' && incident.category === 'mitigated'
  return `${isMitigated ? 'Mitigated' : headings[trigger]}: ${incident.title}`
}

export function resourceWords({ resource }: Notification['incident']): string {
  return resource ? `${resource.kind} ${resource.id}` : 'unknown'
}

/** Facts that decide whether somebody gets up, by name; the card has the exact arguments. */
export function factsOf(notification: Notification): [name: string, value: string][] {
  const { incident, approval } = notification
  if (isCard(notification.trigger)) return []
  return [
    ['Severity', incident.severity],
    ['Status', standingOf(notification)],
    ['Type', incident.type],
    ['Resource', resourceWords(incident)],
    ...(approval
      ? ([
          ['Tool', approval.tool],
          ['Risk', `${approval.risk}, ${approval.reversible ? 'reversible' : 'not reversible'}`],
          ['Approvals needed', String(approval.required)],
          ['Until', approval.expiresAt],
        ] as [string, string][])
      : []),
  ]
}

/** Everything to say, part by part: a question's card sections, else the reason. */
export function partsOf({ reason, approval }: Notification): string[] {
  // Its title begins a line, and no stranger's words do: they would pass for another section.
  if (approval?.sections) return approval.sections.map(({ title, text }) => `${title}: ${oneLine(text)}`)
  return [reason, approval?.cause].flatMap((each) => (each?.trim() ? [each] : []))
}

/** What breaks a line is a blank. */
export function oneLine(words: string): string {
  return words.replaceAll(/\s+/g, ' ')
}

/** Where the incident stood when there was this to tell. */
function standingOf({ trigger, incident, alertsFiring }: Notification): string {
  const { status, outcome, category } = incident
  return [
    status.replaceAll('_', ' '),
    ...(outcome ? [outcomeWords[outcome]] : []),
    ...(category && category !== 'unknown' ? [categoryWords[category]] : []),
    ...(alertsFiring > 0 && trigger !== 'critical' ? ['its alert still fires'] : []),
  ].join(', ')
}

const maxListed = 20
/** The length of a title in a list; twenty fit one section of Slack, with their surroundings. */
const maxListedChars = 100

/** A line for each of several incidents, the most severe first. */
export function linesOfIncidents(incidents: Notification['incidents']): string[] {
  const lines = incidents
    .slice(0, maxListed)
    .map(({ severity, title, since }) => `• ${severity}: ${cut(title)} (since ${formatMinute(since)})`)
  const rest = incidents.length - maxListed
  return [...lines, ...(rest > 0 ? [`and ${rest} more`] : [])]
}

function cut(title: string): string {
  const line = title.replace(/\s+/g, ' ')
  return line.length > maxListedChars ? `${line.slice(0, maxListedChars - 1)}…` : line
}

/** A card of a night or a shift is about no incident: it has lines, and no facts of one. */
export function isCard(trigger: Trigger): boolean {
  return trigger === 'morning' || trigger === 'hand_over'
}

/** Is it about more than the incident that carries it? Then it is not part of that one's thread. */
export function isAboutSeveral({ trigger, incidents }: Notification): boolean {
  return trigger === 'notice' || trigger === 'duty' || isCard(trigger) || incidents.length > 0
}

/** What the button or the line says that leads to a person's page. */
export function linkWords({ trigger, approval, incidents }: Notification): string {
  if (approval) return 'Review request'
  if (trigger === 'duty') return 'Open Health'
  if (isCard(trigger)) return 'Open Nightshift'
  return incidents.length > 1 ? 'Open incidents' : 'Open incident'
}

/** A stranger's words in which no client finds an address to make a link of. */
export function withoutLinks(words: string): string {
  return words.replaceAll(/\b([a-z][a-z0-9+.-]{1,20}):\/\//gi, '$1:// ').replaceAll(/\bwww\./gi, 'www .')
}
