import type { Notification } from '../../domain/notification.ts'

export function notification(more: Partial<Notification> & { title?: string } = {}): Notification {
  const { title, ...fields } = more
  return {
    trigger: 'critical',
    incident: {
      id: 'inc_1',
      type: 'replication_lag',
      severity: 'critical',
      status: 'open',
      title: title ?? 'MySQL replication lag exceeded 30s',
      resource: { kind: 'shard', id: 'db-osl-1' },
    },
    reason: null,
    approval: null,
    page: true,
    alertsFiring: 0,
    incidents: [],
    url: 'https://nightshift.example/incidents/inc_1',
    at: '2026-11-21T02:00:00.000Z',
    headHash: 'a'.repeat(64),
    ...fields,
  }
}

export const hostileTitles = [
  '<!channel> <!here> <!everyone> <!subteam^S1> <@U123> <#C1>',
  '@channel @here @everyone @CHANNEL',
  '<https://evil.example|click to approve>',
  '&lt;!channel&gt; &amp;lt;',
  '*bold* _it_ ~s~ `code` ```block```\n> quote',
  '\u202Egnp.exe \u001b[31m\u0007 \u0000 \ud800',
  '<'.repeat(5_000),
  '😀'.repeat(5_000),
  '"}],"blocks":[{"type":"image"',
  '',
]

type Json = { [key: string]: unknown }

/** What Slack, as documented, would not take of a message or of blocks; and of ours what could ring, link or hide. Empty: fine. */
export function breaches(message: { text?: unknown; blocks?: unknown }): string[] {
  const found: string[] = []
  const blocks = (message.blocks ?? []) as Json[]
  const say = (is: boolean, what: string) => void (is && found.push(what))
  say(typeof message.text !== 'string' || message.text.length === 0 || message.text.length > 4_000, 'text')
  say(blocks.length > 45, 'blocks')
  say(JSON.stringify(blocks).length > 12_000, 'characters of all blocks')
  for (const block of blocks) found.push(...ofBlock(block))
  for (const text of [message.text, ...textsOf(blocks)]) found.push(...ofText(String(text)))
  return found
}

function ofBlock(block: Json): string[] {
  const found: string[] = []
  const within = (value: unknown, maximum: number, what: string) => {
    const text = typeof value === 'string' ? value : (value as Json | undefined)?.text
    if (value === undefined) return
    if (typeof text !== 'string' || text.length < 1 || text.length > maximum) found.push(`${block.type}: ${what}`)
  }
  within(block.text, block.type === 'header' ? 150 : 3_000, 'text')
  const fields = (block.fields ?? []) as Json[]
  if (fields.length > 10) found.push('fields')
  for (const field of fields) within(field, 2_000, 'field')
  const elements = (block.elements ?? []) as Json[]
  if (elements.length > (block.type === 'context' ? 10 : 25)) found.push('elements')
  if (block.type === 'actions' && elements.length === 0) found.push('actions without buttons')
  for (const element of elements) {
    if (element.type !== 'button') continue
    within(element.text, 75, 'button')
    within(element.value, 2_000, 'value')
    within(element.url, 3_000, 'url')
    within(element.action_id, 255, 'action_id')
    const { title, text, confirm, deny } = (element.confirm ?? {}) as Json
    within(title, 100, 'confirm title')
    within(text, 300, 'confirm text')
    within(confirm, 30, 'confirm')
    within(deny, 30, 'confirm deny')
  }
  return found
}

/** Every text object below; one in which Slack would read formatting is named as such. */
function textsOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(textsOf)
  if (value === null || typeof value !== 'object') return []
  const { type, text } = value as Json
  if (type === 'mrkdwn') return ['<mrkdwn>']
  if (type === 'plain_text') return [String(text)]
  return Object.values(value).flatMap(textsOf)
}

function ofText(text: string): string[] {
  const found: string[] = []
  const never = (pattern: RegExp, what: string) =>
    void (pattern.test(text) && found.push(`${what} in ${text.slice(0, 60)}`))
  never(/[<>]/, 'a mark of Slack')
  never(/@(channel|here|everyone|group)/i, 'a word that rings')
  never(/&(?!amp;|lt;|gt;)/, 'a cut entity')
  never(/[^\P{Cc}\n]|[\u202A-\u202E\u2066-\u2069]/u, 'a control or direction mark')
  if (!text.isWellFormed()) found.push('half a character')
  return found
}
