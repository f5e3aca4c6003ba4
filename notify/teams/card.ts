import { inertText } from '../../domain/inert-text.ts'
import type { Notification, RenderedMessage } from '../../domain/notification.ts'
import { factsOf, headingOf, isCard, linesOfIncidents, linkWords, partsOf, withoutLinks } from '../words.ts'

/** Renders a message for a webhook of Microsoft Teams' Workflows: one adaptive card. */

/**
 * Limits of Teams. Teams refuses a message over 28 KB, and counts more than the bytes that are
 * sent. `maxBytes` therefore keeps the message smaller.
 */
export const teamsLimits = { message: 28 * 1_024 } as const
const maxBytes = 20_000
/**
 * Maximum lengths of the reason, tried in this order until the message fits. One character may need
 * twelve bytes.
 */
const reasonChars = [6_000, 3_000, 1_500, 600, 200]

/**
 * Renders a notification as a card. Untrusted text is only in text runs, in which no client reads
 * Markdown. Mentions and dates, which cards read everywhere, are broken up. People decide after
 * they follow the link and sign in.
 */
export function renderCard(notification: Notification): RenderedMessage {
  let body = ''
  for (const chars of reasonChars) {
    body = JSON.stringify(toMessage(notification, chars))
    if (Buffer.byteLength(body) <= maxBytes) break
  }
  return { headers: { 'content-type': 'application/json' }, body }
}

function toMessage(notification: Notification, maxReasonChars: number): object {
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: toCard(notification, maxReasonChars),
      },
    ],
  }
}

function toCard(notification: Notification, maxReasonChars: number): object {
  const { incident, incidents, lines: said, url, at } = notification
  const facts = incidents.length > 0 ? [] : factsOf(notification)
  const lines = incidents.length > 0 ? linesOfIncidents(incidents) : []
  return {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    msteams: { width: 'Full' },
    body: [
      text([run(headingOf(notification), 200, { size: 'Large', weight: 'Bolder' })]),
      ...facts.map(([name, value]) => text([run(`${name}: ${value}`, 240)], 'None')),
      ...partsOf(notification).flatMap((part) => toLines(part, maxReasonChars)),
      ...lines.map((line) => text([run(line, 160)], 'None')),
      ...said.map((line) => text([run(line.text, 300)], 'Small')),
      text([
        run(
          incidents.length > 0 || isCard(notification.trigger)
            ? `Nightshift, ${at}`
            : `Nightshift, ${incident.id}, ${at}`,
          100,
          {
            isSubtle: true,
            size: 'Small',
          },
        ),
      ]),
    ],
    ...(isLink(url) && { actions: [{ type: 'Action.OpenUrl', title: linkWords(notification), url }] }),
  }
}

const maxLines = 40

/** Makes a block for each line of a part, because clients may join the lines of one text run. */
function toLines(part: string, maxChars: number): object[] {
  const lines = inertText(part, maxChars, { lines: true })
    .split('\n')
    .filter((line) => line.trim() !== '')
  const shown = lines.length > maxLines ? [...lines.slice(0, maxLines), '…'] : lines
  return shown.map((line, index) => text([run(line, maxChars)], index === 0 ? 'Small' : 'None'))
}

function text(inlines: object[], spacing?: 'None' | 'Small'): object {
  return { type: 'RichTextBlock', inlines, ...(spacing && { spacing }) }
}

function run(words: string, maxChars: number, style: object = {}): object {
  return { type: 'TextRun', text: withoutForms(inertText(words, maxChars)) || '-', ...style }
}

/** Breaks up `<at>` (a mention) and `{{DATE(…)}}` (a date). */
function withoutForms(words: string): string {
  return withoutLinks(words)
    .replaceAll(/<(?=\/?at)/gi, '< ')
    .replaceAll('{{', '{ {')
    .replaceAll('}}', '} }')
}

function isLink(url: string): boolean {
  return /^https?:$/.test(URL.parse(url)?.protocol ?? '')
}
