import { inertText } from '../../domain/inert-text.ts'
import type { Notification, RenderedMessage, RenderOptions } from '../../domain/notification.ts'
import { factsOf, headingOf, isCard, linesOfIncidents, linkWords, partsOf, resourceWords } from '../words.ts'

export type PlainText = { type: 'plain_text'; text: string; emoji: false }

/**
 * Limits of Slack. All blocks of a message together may have about 13,200 characters, which Slack
 * does not document.
 */
export const slackLimits = {
  header: 150,
  section: 3_000,
  buttonText: 75,
  buttonUrl: 3_000,
  confirmTitle: 100,
  confirmText: 300,
} as const

/**
 * Puts untrusted text into an element in which Slack reads no formatting, link or mention.
 * `maxChars`: the limit after escaping.
 */
export function plainText(text: string, maxChars: number, as?: { lines: boolean }): PlainText {
  return { type: 'plain_text', text: fallbackText(text, maxChars, as) || '-', emoji: false }
}

/** Escapes text for Slack, such as the text of a notification, in which Slack reads formatting. */
export function fallbackText(text: string, maxChars: number, as?: { lines: boolean }): string {
  return escapeText(inertText(text, maxChars, as), maxChars)
}

/**
 * Returns the text if Slack shows it unchanged within `maxChars`: not cut, and no character
 * replaced. Null if the visible text would differ.
 */
export function exactText(text: string, maxChars: number): PlainText | null {
  // Refuses characters that a screen leaves out or cannot draw.
  if (/[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Co}\p{Cn}]/u.test(text)) return null
  const shown = plainText(text, maxChars)
  return unescaped(shown.text) === text ? shown : null
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/**
 * Escapes `&`, `<` and `>` for Slack, and breaks up words such as `@here` that would notify
 * everybody. Never cuts within an entity.
 */
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

/** Whether a button can have this address: an http(s) address within Slack's limit. */
export function isLink(url: string): boolean {
  const parsed = url.length <= slackLimits.buttonUrl ? URL.parse(url) : null
  return parsed !== null && (parsed.protocol === 'https:' || parsed.protocol === 'http:')
}

const maxFieldChars = 300
const maxLineChars = 300
/**
 * Characters of one section of an approval, so that all sections stay within Slack's limit for a
 * message.
 */
const maxPartChars = 1_200

/** A message in the form that Slack's webhooks and API methods accept. */
export type SlackMessage = { text: string; blocks: object[] } & typeof unread

/** Options that make Slack find no formatting, names or pages in a message. */
const unread = { mrkdwn: false, link_names: false, unfurl_links: false, unfurl_media: false } as const

export function slackMessage(text: string, blocks: object[]): SlackMessage {
  return { text: fallbackText(text, 1_000) || '-', ...unread, blocks }
}

/**
 * Renders a message in Slack's Block Kit for an incoming webhook. Untrusted text is in `plain_text`
 * elements, in which Slack reads no formatting, link or mention. The fallback `text`, in which
 * Slack does read formatting, is escaped. The message is not signed, because the address of the
 * webhook is the credential.
 */
export function renderSlack(notification: Notification, _options: RenderOptions): RenderedMessage {
  return {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(renderNotification(notification)),
  }
}

/**
 * Renders a notification with a button that opens its page, as a separate message or as a reply in
 * a thread.
 */
export function renderNotification(notification: Notification): SlackMessage {
  if (notification.incidents.length > 0) return renderDigest(notification)
  if (isCard(notification.trigger)) return renderLines(notification)
  const { incident, approval, url, at } = notification
  const heading = headingOf(notification)
  return slackMessage(`${heading.slice(0, 1_000)} (${resourceWords(incident).slice(0, 200)})`, [
    header(heading),
    ...(heading.length > slackLimits.header ? [section(incident.title)] : []),
    ...(approval?.of?.slackUserId ? [mention(approval.of.slackUserId)] : []),
    { type: 'section', fields: factsOf(notification).map(([name, value]) => field(`${name}: ${value}`)) },
    ...partsOf(notification).map((part) => sectionOfLines(part, approval ? maxPartChars : slackLimits.section)),
    ...actions(linkButton(linkWords(notification), url)),
    context(`Nightshift, ${incident.id}, ${at}`),
  ])
}

/**
 * Renders one message that lists incidents that people must handle and that still fire, the most
 * severe first.
 */
function renderDigest(notification: Notification): SlackMessage {
  const { incidents, reason, url, at } = notification
  const heading = headingOf(notification)
  const lines = linesOfIncidents(incidents)
  return slackMessage(heading, [
    header(heading),
    ...(reason?.trim() ? [sectionOfLines(reason)] : []),
    ...(lines.length > 0 ? [sectionOfLines(lines.join('\n'))] : []),
    ...actions(linkButton(linkWords(notification), url)),
    context(`Nightshift, ${at}`),
  ])
}

/**
 * Renders the card of a night or a shift, one line for each entry, with a button if the line has a
 * link.
 */
function renderLines(notification: Notification): SlackMessage {
  const { lines, url, at } = notification
  const heading = headingOf(notification)
  return slackMessage(heading, [
    header(heading),
    ...lines.map(({ text, url: to }) => {
      const [accessory] = to === null ? [] : linkButton('Open', to)
      return { ...section(text, maxLineChars), ...(accessory && { accessory }) }
    }),
    ...actions(linkButton(linkWords(notification), url)),
    context(`Nightshift, ${at}`),
  ])
}

export function header(text: string) {
  return { type: 'header', text: plainText(text, slackLimits.header) }
}

export function section(text: string | PlainText, maxChars: number = slackLimits.section) {
  return { type: 'section', text: typeof text === 'string' ? plainText(text, maxChars) : text }
}

/**
 * Makes a section for a text of several lines, such as a report or list, and keeps the lines
 * separate.
 */
export function sectionOfLines(text: string, maxChars: number = slackLimits.section) {
  return section(plainText(text, maxChars, { lines: true }))
}

/** Mentions a member by the id that an admin configured. Untrusted text never becomes a mention. */
function mention(member: string) {
  return { type: 'section', text: { type: 'mrkdwn', text: /^[UW][A-Z0-9]+$/.test(member) ? `<@${member}>` : '' } }
}

export function field(text: string): PlainText {
  return plainText(text, maxFieldChars)
}

export function context(text: string) {
  return { type: 'context', elements: [field(text)] }
}

/** Makes a button that opens a page. Empty if the address is not a URL. */
export function linkButton(text: string, url: string): object[] {
  if (!isLink(url)) return []
  return [{ type: 'button', text: plainText(text, slackLimits.buttonText), action_id: 'open', url }]
}

/** Makes a row of buttons. Empty if there are no buttons. */
export function actions(elements: object[]): object[] {
  return elements.length > 0 ? [{ type: 'actions', elements }] : []
}
