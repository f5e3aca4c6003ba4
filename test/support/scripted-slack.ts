import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Notification } from '../../domain/notification.ts'
import type { SlackSettings } from '../../notify/slack/client.ts'
import { signatureOf } from '../../notify/slack/interaction.ts'

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
    lines: [],
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

/**
 * What Slack, as documented, would not take of a message or of blocks; and of ours what could ring,
 * link or hide. Empty: fine.
 */
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

type Button = { action_id: string; value?: string; url?: string }
type Block = { type: string; elements?: Button[] }
type Body = {
  channel?: string
  ts?: string
  thread_ts?: string
  user?: string
  text?: string
  blocks?: Block[]
} & Record<string, unknown>

type SlackCall = { method: string; body: Body; answer: string }
type PostedMessage = { ts: string; body: Body; edits: number }

/**
 * What Slack does with the next call (`method`: of this method) instead of what it is asked.
 * `after`: it does it, and then tells nobody.
 */
type Trouble = { method?: string; status?: number; error?: string; retryAfter?: number; after?: boolean }

export type ScriptedSlack = {
  settings: SlackSettings
  /** Every call, oldest first, with what came of it. */
  calls: SlackCall[]
  /** Messages in the channel. */
  messages: Map<string, PostedMessage>
  /** Taken one by one, by the calls they are for. */
  troubles: Trouble[]
  /**
   * From now on refuses what is posted sooner than this after the last message, as Slack does
   * within a second.
   */
  pace(ms: number): void
  /** Nothing is answered until this is let go. */
  hold(): () => void
  /** Opened modals, newest last. */
  views: { id: string; view: Record<string, unknown> }[]
  /** Ephemeral texts to a member. */
  whispers(user: string): string[]
  /** The buttons of a message by what they do. */
  buttons(ts: string): Record<string, Button>
  /** A press of a button as Slack sends it. */
  press(user: string, ts: string, actionId: string, more?: { value?: string }): URLSearchParams
  /** The newest modal as a member sends it. */
  submit(user: string, said: { category: string; words?: string }): URLSearchParams
  /** The headers by which Slack proves that it is Slack. */
  signed(body: string, more?: { atSeconds?: number; secret?: string }): Record<string, string>
  stop(): Promise<void>
}

const channelId = 'C0OPS'

/**
 * A workspace with one channel over real HTTP, as strict as the documentation: its limits, its pace
 * where a test sets one, times that are known, triggers that live once. It answers 200 with `ok:
 * false`, as Slack does.
 */
export async function startScriptedSlack(): Promise<ScriptedSlack> {
  let lastPostAt = 0
  let paceMs = 0
  let serial = 0
  let held: Promise<void> = Promise.resolve()
  const triggers = new Set<string>()
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const settings: SlackSettings = {
    botToken: 'xoxb-canary-of-the-bot',
    signingSecret: 'canary0f0the0signing0secret',
    channel: '#ops',
    apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`,
  }

  const slack: ScriptedSlack = {
    settings,
    calls: [],
    messages: new Map(),
    troubles: [],
    views: [],
    pace(ms) {
      paceMs = ms
      lastPostAt = 0
    },
    hold() {
      let release = () => {}
      held = new Promise((resolve) => {
        release = resolve
      })
      return () => release()
    },
    whispers: (user) =>
      slack.calls
        .filter(({ method, body }) => method === 'chat.postEphemeral' && body.user === user)
        .map(({ body }) => JSON.stringify([body.text, body.blocks])),
    buttons(ts) {
      const blocks = slack.messages.get(ts)?.body.blocks ?? []
      const elements = blocks.flatMap((block) => (block.type === 'actions' ? (block.elements ?? []) : []))
      return Object.fromEntries(elements.map((element) => [element.action_id, element]))
    },
    press(user, ts, actionId, { value = slack.buttons(ts)[actionId]?.value } = {}) {
      const trigger = randomUUID()
      triggers.add(trigger)
      const thread = slack.messages.get(ts)?.body.thread_ts
      return payload({
        type: 'block_actions',
        user: { id: user },
        trigger_id: trigger,
        channel: { id: channelId },
        container: { type: 'message', message_ts: ts, ...(thread && { thread_ts: thread }) },
        actions: [{ type: 'button', action_id: actionId, value }],
        response_url: 'https://hooks.slack.example/actions/never-used',
      })
    },
    submit(user, { category, words }) {
      const newest = slack.views.at(-1)
      return payload({
        type: 'view_submission',
        user: { id: user },
        view: {
          ...newest?.view,
          state: {
            values: {
              category: { category: { type: 'static_select', selected_option: { value: category } } },
              words: { words: { type: 'plain_text_input', value: words ?? null } },
            },
          },
        },
      })
    },
    signed(body, { atSeconds = Math.floor(Date.now() / 1000), secret = settings.signingSecret } = {}) {
      return {
        'content-type': 'application/x-www-form-urlencoded',
        'x-slack-request-timestamp': String(atSeconds),
        'x-slack-signature': signatureOf(secret, String(atSeconds), body),
      }
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    await held
    const method = (request.url ?? '').replace('/api/', '')
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Body
    const index = slack.troubles.findIndex((each) => each.method === undefined || each.method === method)
    const trouble = index >= 0 ? slack.troubles.splice(index, 1)[0] : undefined
    const isKnown = request.headers.authorization === `Bearer ${settings.botToken}`
    const isJson = /^application\/json/.test(request.headers['content-type'] ?? '')
    const said = !isKnown
      ? { error: 'invalid_auth' }
      : !isJson
        ? { error: 'invalid_form_data' }
        : trouble && !trouble.after
          ? { error: trouble.error ?? 'trouble' }
          : respond(method, body)
    slack.calls.push({ method, body, answer: 'error' in said ? String(said.error) : 'ok' })
    if (trouble?.after) return void request.socket.destroy()
    const limited = said.error === 'ratelimited'
    const retryAfter = trouble?.retryAfter ?? (limited ? 1 : undefined)
    response.writeHead(trouble?.status ?? (limited ? 429 : 200), {
      'content-type': 'application/json',
      ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }),
    })
    response.end(JSON.stringify({ ok: !('error' in said), ...said }))
  }

  function respond(method: string, body: Body): Record<string, unknown> {
    switch (method) {
      case 'chat.postMessage':
        return posted(body)
      case 'chat.update':
        return updated(body)
      case 'chat.postEphemeral':
        if (!body.user || body.channel !== channelId) return { error: 'user_not_in_channel' }
        return breaches(body).length > 0 ? { error: 'invalid_blocks' } : { message_ts: '1.1' }
      case 'views.open': {
        if (!triggers.delete(String(body.trigger_id))) return { error: 'expired_trigger_id' }
        slack.views.push({ id: `V${slack.views.length}`, view: body.view as Record<string, unknown> })
        return { view: {} }
      }
      default:
        return { error: 'unknown_method' }
    }
  }

  function posted(body: Body): Record<string, unknown> {
    if (Date.now() - lastPostAt < paceMs) return { error: 'ratelimited' }
    if (body.channel !== settings.channel && body.channel !== channelId) return { error: 'channel_not_found' }
    if (breaches(body).length > 0) return { error: 'invalid_blocks' }
    if (body.thread_ts !== undefined && !slack.messages.has(body.thread_ts)) return { error: 'thread_not_found' }
    lastPostAt = Date.now()
    serial += 1
    const ts = `1763690400.${String(serial).padStart(6, '0')}`
    slack.messages.set(ts, { ts, body, edits: 0 })
    return { channel: channelId, ts }
  }

  function updated(body: Body): Record<string, unknown> {
    const message = slack.messages.get(body.ts ?? '')
    if (body.channel !== channelId) return { error: 'channel_not_found' }
    if (!message) return { error: 'message_not_found' }
    if (breaches(body).length > 0) return { error: 'invalid_blocks' }
    message.body = { ...message.body, text: body.text, blocks: body.blocks }
    message.edits += 1
    return { channel: channelId, ts: message.ts }
  }

  return slack
}

function payload(content: object): URLSearchParams {
  return new URLSearchParams({ payload: JSON.stringify(content) })
}
