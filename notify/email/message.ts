import { inertText } from '../../domain/inert-text.ts'
import type { CardLine, Notification } from '../../domain/notification.ts'
import {
  factsOf,
  headingOf,
  isAboutSeveral,
  isCard,
  linesOfIncidents,
  linkWords,
  partsOf,
  withoutLinks,
} from '../words.ts'

/**
 * A mail about a notification: plain text and simple HTML. All mails of an incident are one thread.
 */

export type MailMessage = {
  subject: string
  messageId: string
  /** The id of the first mail of the thread; null if this mail begins or has no thread. */
  inReplyTo: string | null
  text: string
  html: string
  isUrgent: boolean
}

/** The place of a mail. `isFirst`: true for the destination's first mail about this incident. */
type MailPlace = { deliveryId: string; destination: string; domain: string; isFirst: boolean }

const maxSubjectChars = 150
const maxReasonChars = 20_000

export function renderMail(
  notification: Notification,
  { deliveryId, destination, domain, isFirst }: MailPlace,
): MailMessage {
  const { incident, page } = notification
  const isApart = isAboutSeveral(notification)
  const root = `<${incident.id}.${destination}@${domain}>`
  const startsThread = isFirst && !isApart
  const title = isApart ? headingOf(notification) : incident.title
  return {
    // Keeps the subject the same in a thread, because some mail programs would otherwise begin
    // another thread.
    subject: `[Nightshift] ${inertText(title, maxSubjectChars)}`,
    messageId: startsThread ? root : `<${deliveryId}.${destination}@${domain}>`,
    inReplyTo: startsThread || isApart ? null : root,
    ...bodiesOf(notification),
    isUrgent: page,
  }
}

const foot =
  'To answer, open the link above and sign in. Nobody reads replies to this mail, and a reply approves nothing.'

function bodiesOf(notification: Notification): Pick<MailMessage, 'text' | 'html'> {
  const { incident, incidents, lines, url, at } = notification
  const heading = line(headingOf(notification), 300)
  const facts =
    incidents.length > 0 ? [] : factsOf(notification).map(([name, value]) => [name, line(value, 300)] as const)
  const lists = linesOfIncidents(incidents).map((each) => line(each, 300))
  const said = partsOf(notification).map(paragraphs)
  const last =
    incidents.length > 0 || isCard(notification.trigger) ? `Nightshift, ${at}` : `Nightshift, ${incident.id}, ${at}`
  const text = [
    heading,
    facts.map(([name, value]) => `${name}: ${value}`).join('\n'),
    ...said,
    lists.join('\n'),
    lines.map((each) => `• ${line(each.text, 300)}${each.url ? `\n  ${each.url}` : ''}`).join('\n'),
    `${linkWords(notification)}: ${url}`,
    `${foot}\n${last}`,
  ]
  const html = [
    `<h2>${escapeHtml(heading)}</h2>`,
    facts.length > 0 &&
      `<table>${facts.map(([name, value]) => `<tr><td><b>${escapeHtml(name)}</b></td><td>${escapeHtml(value)}</td></tr>`).join('')}</table>`,
    ...said.map((each) => `<p style="white-space: pre-wrap">${escapeHtml(each)}</p>`),
    lists.length > 0 && `<ul>${lists.map((each) => `<li>${escapeHtml(each.replace(/^• /, ''))}</li>`).join('')}</ul>`,
    lines.length > 0 && `<ul>${lines.map(toItem).join('')}</ul>`,
    isLink(url) && `<p><a href="${escapeHtml(url)}">${escapeHtml(linkWords(notification))}</a></p>`,
    `<p><small>${escapeHtml(foot)}<br>${escapeHtml(last)}</small></p>`,
  ]
  return {
    text: `${text.filter(Boolean).join('\n\n')}\n`,
    html: `<!doctype html><html lang="en"><body>${html.filter(Boolean).join('')}</body></html>`,
  }
}

function toItem({ text, url }: CardLine): string {
  const words = escapeHtml(line(text, 300))
  return url !== null && isLink(url) ? `<li><a href="${escapeHtml(url)}">${words}</a></li>` : `<li>${words}</li>`
}

function line(words: string, maxChars: number): string {
  return withoutLinks(inertText(words, maxChars))
}

function paragraphs(words: string): string {
  return withoutLinks(inertText(words, maxReasonChars, { lines: true }))
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function escapeHtml(words: string): string {
  return words.replaceAll(/[&<>"']/g, (sign) => entities[sign] as string)
}

function isLink(url: string): boolean {
  return /^https?:$/.test(URL.parse(url)?.protocol ?? '')
}
