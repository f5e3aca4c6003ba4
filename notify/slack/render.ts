import type { AskedApproval, Notification } from '../../domain/notification.ts'
import { inertText, type Rendered, type RenderOptions } from '../render.ts'

// Slack's limits: header 150, section 3,000, field 2,000 and ten of them, button address 3,000, 50 blocks, and about
// 13,200 characters in all, which nobody documents.
const maxHeaderChars = 150
const maxSectionChars = 3_000
const maxFieldChars = 300
const maxButtonUrlChars = 3_000

/**
 * Block Kit for an incoming webhook. Every stranger's word is in a `plain_text` element, where Slack reads no formatting,
 * link or mention; the fallback `text`, which it does read, is escaped. Slack's own address is the credential: no signature.
 */
export function renderSlack(notification: Notification, _options: RenderOptions): Rendered {
  const { incident, reason, approval, url, at } = notification
  const heading = headingOf(notification)
  const resource = incident.resource ? `${incident.resource.kind} ${incident.resource.id}` : 'unknown'
  const blocks: object[] = [
    { type: 'header', text: plainText(heading, maxHeaderChars) },
    ...(heading.length > maxHeaderChars ? [{ type: 'section', text: plainText(incident.title, maxSectionChars) }] : []),
    {
      type: 'section',
      fields: [
        plainText(`Severity: ${incident.severity}`, maxFieldChars),
        plainText(`Status: ${incident.status}`, maxFieldChars),
        plainText(`Type: ${incident.type}`, maxFieldChars),
        plainText(`Resource: ${resource}`, maxFieldChars),
        ...(approval ? askedFields(approval) : []),
      ],
    },
    ...(reason?.trim() ? [{ type: 'section', text: plainText(reason, maxSectionChars) }] : []),
    ...(isLink(url)
      ? [
          {
            type: 'actions',
            elements: [
              {
                type: 'button',
                text: plainText(approval ? 'Look and decide' : 'Open incident', 75),
                action_id: 'open',
                url,
              },
            ],
          },
        ]
      : []),
    { type: 'context', elements: [plainText(`Nightshift, ${incident.id}, ${at}`, maxFieldChars)] },
  ]
  const text = escapeText(inertText(`${heading} (${resource})`, 400), 1_000)
  return {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ text, mrkdwn: false, link_names: false, unfurl_links: false, unfurl_media: false, blocks }),
  }
}

function headingOf({ trigger, incident, approval }: Notification): string {
  if (approval) return `${reminders[approval.reminder] ?? 'Approval wanted'}: ${approval.summary}`
  return `${trigger === 'critical' ? 'Critical' : 'Escalated'}: ${incident.title}`
}

const reminders = ['Approval wanted', 'Still wanted', 'Expires soon']

/** What decides whether somebody gets up; the exact arguments are on the card. */
function askedFields({ tool, risk, reversible, required, expiresAt }: AskedApproval) {
  return [
    plainText(`Tool: ${tool}`, maxFieldChars),
    plainText(`Risk: ${risk}, ${reversible ? 'reversible' : 'not reversible'}`, maxFieldChars),
    plainText(`People needed: ${required}`, maxFieldChars),
    plainText(`Until: ${expiresAt}`, maxFieldChars),
  ]
}

function plainText(text: string, maxChars: number) {
  return { type: 'plain_text', text: escapeText(inertText(text, maxChars), maxChars) || '-', emoji: false }
}

/** `&`, `<` and `>` as Slack wants them, and no word that rings everybody. Never cut inside an entity. */
function escapeText(text: string, maxChars: number): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }
  let escaped = ''
  for (const char of text.replaceAll(/@(?=channel|here|everyone|group)/giu, '@ ')) {
    const next = entities[char] ?? char
    if (escaped.length + next.length > maxChars - 1) return `${escaped}…`
    escaped += next
  }
  return escaped
}

function isLink(url: string): boolean {
  const parsed = url.length <= maxButtonUrlChars ? URL.parse(url) : null
  return parsed !== null && (parsed.protocol === 'https:' || parsed.protocol === 'http:')
}
