import { formatMinute } from '../../domain/format.ts'
import { formatAlsoAsked } from '../../domain/format-approval.ts'
import { inertText } from '../../domain/inert-text.ts'
import type { AskedApproval, Notification, RenderedMessage, RenderOptions } from '../../domain/notification.ts'
import { categoryWords, outcomeWords } from '../../domain/status-words.ts'

export type PlainText = { type: 'plain_text'; text: string; emoji: false }

/** What Slack takes at most. Of all blocks together it takes about 13,200 characters, which nobody documents. */
export const slackLimits = {
  header: 150,
  section: 3_000,
  buttonText: 75,
  buttonUrl: 3_000,
  confirmTitle: 100,
  confirmText: 300,
} as const

/** A stranger's words where Slack reads no formatting, link or mention; at most `maxChars` as they are sent. */
export function plainText(text: string, maxChars: number, as?: { lines: boolean }): PlainText {
  return { type: 'plain_text', text: fallbackText(text, maxChars, as) || '-', emoji: false }
}

/** The same for the one place where Slack does read formatting: the text of a notification. */
export function fallbackText(text: string, maxChars: number, as?: { lines: boolean }): string {
  return escapeText(inertText(text, maxChars, as), maxChars)
}

/**
 * The text, if all of it can be shown as it is within so many characters: not cut, nothing replaced, no word broken. Null
 * where what is seen would not be what is meant.
 */
export function exactText(text: string, maxChars: number): PlainText | null {
  // What a screen leaves out, and what it has no picture for.
  if (/[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Co}\p{Cn}]/u.test(text)) return null
  const shown = plainText(text, maxChars)
  return unescaped(shown.text) === text ? shown : null
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** `&`, `<` and `>` as Slack wants them, and no word that rings everybody. Never cut inside an entity. */
function escapeText(text: string, maxChars: number): string {
  let escaped = ''
  for (const char of text.replaceAll(/@(?=channel|here|everyone|group)/giu, '@ ')) {
    const next = entities[char] ?? char
    if (escaped.length + next.length > maxChars - 1) return `${escaped}…`
    escaped += next
  }
  return escaped
}

function unescaped(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}

/** A button's address: a web address within Slack's limit. */
export function isLink(url: string): boolean {
  const parsed = url.length <= slackLimits.buttonUrl ? URL.parse(url) : null
  return parsed !== null && (parsed.protocol === 'https:' || parsed.protocol === 'http:')
}

const maxFieldChars = 300

/** A message as Slack takes it, by webhook and by method alike. */
export type SlackMessage = { text: string; blocks: object[] } & typeof unread

/** Slack looks for nothing in our words: no formatting, names or pages to show. */
const unread = { mrkdwn: false, link_names: false, unfurl_links: false, unfurl_media: false } as const

export function slackMessage(text: string, blocks: object[]): SlackMessage {
  return { text: fallbackText(text, 1_000) || '-', ...unread, blocks }
}

/**
 * Block Kit for an incoming webhook. Every stranger's word is in a `plain_text` element, where Slack reads no formatting,
 * link or mention; the fallback `text`, which it does read, is escaped. Slack's own address is the credential: no signature.
 */
export function renderSlack(notification: Notification, _options: RenderOptions): RenderedMessage {
  return {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(renderNotification(notification)),
  }
}

/** What there is to tell, with a button that leads to where a person looks: a separate message, or an answer in a thread. */
export function renderNotification(notification: Notification): SlackMessage {
  if (notification.incidents.length > 0) return renderDigest(notification)
  const { incident, reason, approval, url, at } = notification
  const heading = headingOf(notification)
  const resource = incident.resource ? `${incident.resource.kind} ${incident.resource.id}` : 'unknown'
  return slackMessage(`${heading.slice(0, 1_000)} (${resource.slice(0, 200)})`, [
    header(heading),
    ...(heading.length > slackLimits.header ? [section(incident.title)] : []),
    {
      type: 'section',
      fields: [
        field(`Severity: ${incident.severity}`),
        field(`Status: ${standingOf(notification)}`),
        field(`Type: ${incident.type}`),
        field(`Resource: ${resource}`),
        ...(approval ? askedFields(approval) : []),
      ],
    },
    ...(reason?.trim() ? [sectionOfLines(reason)] : []),
    ...(approval?.cause ? [section(approval.cause)] : []),
    ...actions(linkButton(approval ? 'Review request' : 'Open incident', url)),
    context(`Nightshift, ${incident.id}, ${at}`),
  ])
}

const maxListed = 20
/** Of each title in a list; twenty of them fit one section, with what stands around them. */
const maxListedChars = 100

/** One message that lists what people have and still fires, the most severe first; it is about no single incident. */
function renderDigest({ trigger, incidents, reason, url, at }: Notification): SlackMessage {
  const heading = `${headings[trigger]}: ${incidents.length === 1 ? '1 incident' : `${incidents.length} incidents`}`
  const lines = incidents
    .slice(0, maxListed)
    .map(({ severity, title, since }) => `• ${severity}: ${cut(title)} (since ${formatMinute(since)})`)
  const rest = incidents.length - maxListed
  return slackMessage(heading, [
    header(heading),
    ...(reason?.trim() ? [sectionOfLines(reason)] : []),
    ...(lines.length > 0 ? [sectionOfLines([...lines, ...(rest > 0 ? [`and ${rest} more`] : [])].join('\n'))] : []),
    ...actions(linkButton(incidents.length === 1 ? 'Open incident' : 'Open incidents', url)),
    context(`Nightshift, ${at}`),
  ])
}

function cut(title: string): string {
  const line = title.replace(/\s+/g, ' ')
  return line.length > maxListedChars ? `${line.slice(0, maxListedChars - 1)}…` : line
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

function headingOf({ trigger, incident, approval }: Notification): string {
  if (approval)
    return `${reminders[approval.reminder] ?? 'Approval needed'}: ${approval.summary}${formatAlsoAsked(approval.alsoAsked)}`
  const isMitigated = trigger === 'escalated' && incident.category === 'mitigated'
  return `${isMitigated ? 'Mitigated' : headings[trigger]}: ${incident.title}`
}

const headings: Record<Notification['trigger'], string> = {
  critical: 'Critical',
  escalated: 'Escalated',
  approval: 'Approval needed',
  resolved: 'Resolved',
  watch: 'Repaired, but its alert still fires',
  reopened: 'Reopened',
  reminder: 'Still firing',
  quiet: 'Quiet now',
  owner: 'Your incident fires again',
  digest: 'Still firing, escalated',
  notice: 'Notice',
  late: 'Told late, together',
  undelivered: 'Could not be told elsewhere',
  duty: 'Health',
}

const reminders = ['Approval needed', 'Approval still needed', 'Expires soon']

/** What decides whether somebody gets up; the exact arguments are on the card. */
function askedFields({ tool, risk, reversible, required, expiresAt }: AskedApproval) {
  return [
    field(`Tool: ${tool}`),
    field(`Risk: ${risk}, ${reversible ? 'reversible' : 'not reversible'}`),
    field(`Approvals needed: ${required}`),
    field(`Until: ${expiresAt}`),
  ]
}

export function header(text: string) {
  return { type: 'header', text: plainText(text, slackLimits.header) }
}

export function section(text: string | PlainText, maxChars: number = slackLimits.section) {
  return { type: 'section', text: typeof text === 'string' ? plainText(text, maxChars) : text }
}

/** A section for a text that is made of lines, such as a report or a list: as many lines arrive as were sent. */
export function sectionOfLines(text: string, maxChars: number = slackLimits.section) {
  return section(plainText(text, maxChars, { lines: true }))
}

export function field(text: string): PlainText {
  return plainText(text, maxFieldChars)
}

export function context(text: string) {
  return { type: 'context', elements: [field(text)] }
}

/** A button that leads to a page; left out where the address is no URL. */
export function linkButton(text: string, url: string): object[] {
  if (!isLink(url)) return []
  return [{ type: 'button', text: plainText(text, slackLimits.buttonText), action_id: 'open', url }]
}

/** A row of buttons; none where there is no button. */
export function actions(elements: object[]): object[] {
  return elements.length > 0 ? [{ type: 'actions', elements }] : []
}
