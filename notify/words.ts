import { formatMinute } from '../domain/format.ts'
import { formatAlsoAsked } from '../domain/format-approval.ts'
import type { Notification, Trigger } from '../domain/notification.ts'
import { categoryWords, outcomeWords } from '../domain/status-words.ts'

/**
 * Builds the text of a notification, the same for every receiver that people read. Escapes nothing
 * here, because each receiver needs a different escaping.
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

/** Returns one line that names the subject of the notification. */
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

/**
 * Lists facts that show how urgent the notification is, by name. The exact arguments of an action
 * are on the page of the approval.
 */
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

/** Returns the parts of the text: the sections of an approval's card, or else the reason. */
export function partsOf({ reason, approval }: Notification): string[] {
  // Lets only a title begin a line. Untrusted text at the beginning of a line could look like
  // another section.
  if (approval?.sections) return approval.sections.map(({ title, text }) => `${title}: ${oneLine(text)}`)
  return [reason, approval?.cause].flatMap((each) => (each?.trim() ? [each] : []))
}

/** Joins all lines of a text into one. */
export function oneLine(words: string): string {
  return words.replaceAll(/\s+/g, ' ')
}

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
/**
 * The maximum length of a title in a list of incidents. Twenty lines with such titles fit one
 * section of Slack.
 */
const maxListedChars = 100

/** Formats one line for each incident, in the given order (the most severe first). */
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

/**
 * Whether the notification is the card of a night or a shift, which has lines and no facts about an
 * incident.
 */
export function isCard(trigger: Trigger): boolean {
  return trigger === 'morning' || trigger === 'hand_over'
}

/**
 * Whether a notification is about several incidents or the whole installation, and so does not
 * belong in the thread of one incident.
 */
export function isAboutSeveral({ trigger, incidents }: Notification): boolean {
  return trigger === 'notice' || trigger === 'duty' || isCard(trigger) || incidents.length > 0
}

/** Returns the text of the button or line that opens the page of the notification. */
export function linkWords({ trigger, approval, incidents }: Notification): string {
  if (approval) return 'Review request'
  if (trigger === 'duty') return 'Open Health'
  if (isCard(trigger)) return 'Open Nightshift'
  return incidents.length > 1 ? 'Open incidents' : 'Open incident'
}

/** Breaks up addresses in untrusted text, so that no client turns them into links. */
export function withoutLinks(words: string): string {
  return words.replaceAll(/\b([a-z][a-z0-9+.-]{1,20}):\/\//gi, '$1:// ').replaceAll(/\bwww\./gi, 'www .')
}
