import { inertText } from '../../domain/inert-text.ts'
import type { Notification, RenderedMessage, RenderOptions } from '../../domain/notification.ts'
import { factsOf, headingOf, isCard, linesOfIncidents, linkWords, partsOf, resourceWords } from '../words.ts'

export type PlainText = { type: 'plain_text'; text: string; emoji: false }

/** Slack's limits. All blocks together may have about 13,200 characters, which nobody documents. */
export const slackLimits = {
  header: 150,
  section: 3_000,
  buttonText: 75,
  buttonUrl: 3_000,
  confirmTitle: 100,
  confirmText: 300,
} as const

/** A stranger's words where Slack reads no formatting, link or mention; `maxChars` as sent. */
export function plainText(text: string, maxChars: number, as?: { lines: boolean }): PlainText {
  return { type: 'plain_text', text: fallbackText(text, maxChars, as) || '-', emoji: false }
}

/** The same for the one place where Slack does read formatting: the text of a notification. */
export function fallbackText(text: string, maxChars: number, as?: { lines: boolean }): string {
  return escapeText(inertText(text, maxChars, as), maxChars)
}

/**
 * The text, if all of it shows unchanged within so many characters: not cut, nothing replaced, no
 * word broken. Null where the sight would not be the meaning.
 */
export function exactText(text: string, maxChars: number): PlainText | null {
  // What a screen leaves out, and what it has no picture for.
  if (/[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Co}\p{Cn}]/u.test(text)) return null
  const shown = plainText(text, maxChars)
  return unescaped(shown.text) === text ? shown : null
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** `&`, `<` and `>` for Slack, and no word that rings everybody. Never cut in an entity. */
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
const maxLineChars = 300
/** The limit of a question's section: all stay within Slack's limit for a message. */
const maxPartChars = 1_200

/** A message as Slack takes it, by webhook and by method alike. */
export type SlackMessage = { text: string; blocks: object[] } & typeof unread

/** Slack looks for nothing in our words: no formatting, names or pages to show. */
const unread = { mrkdwn: false, link_names: false, unfurl_links: false, unfurl_media: false } as const

export function slackMessage(text: string, blocks: object[]): SlackMessage {
  return { text: fallbackText(text, 1_000) || '-', ...unread, blocks }
}

/**
 * Block Kit for an incoming webhook. Strangers' words are in `plain_text` elements, where Slack
 * reads no formatting, link or mention; the fallback `text`, which it reads, is escaped. The
 * address is the credential: no signature.
 */
export function renderSlack(notification: Notification, _options: RenderOptions): RenderedMessage {
  return {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(renderNotification(notification)),
  }
}

/** News with a button to its page: a separate message, or an answer in a thread. */
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
 * One message that lists what people have and still fires, the most severe first; about no single
 * incident.
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

/** The card of a night or a shift: a line each, and a button where it leads somewhere. */
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

/** A section for a text of lines, such as a report or list: as many lines arrive as were sent. */
export function sectionOfLines(text: string, maxChars: number = slackLimits.section) {
  return section(plainText(text, maxChars, { lines: true }))
}

/** Calls a member by the ID that an admin set for them: no text of a stranger becomes a mention. */
function mention(member: string) {
  return { type: 'section', text: { type: 'mrkdwn', text: /^[UW][A-Z0-9]+$/.test(member) ? `<@${member}>` : '' } }
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
