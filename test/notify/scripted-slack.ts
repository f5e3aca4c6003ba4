import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { SlackSettings } from '../../slack/client.ts'
import { signatureOf } from '../../slack/interaction.ts'
import { breaches } from './notifications.ts'

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

/** What Slack does with the next call (`method`: of this method) instead of what it is asked. `after`: it does it, and then tells nobody. */
type Trouble = { method?: string; status?: number; error?: string; retryAfter?: number; after?: boolean }

export type ScriptedSlack = {
  settings: SlackSettings
  /** Every call, oldest first, with what came of it. */
  calls: SlackCall[]
  /** What is in the channel. */
  messages: Map<string, PostedMessage>
  /** Taken one by one, by the calls they are for. */
  troubles: Trouble[]
  /** From now on refuses what is posted sooner than this after the last message, as Slack does within a second. */
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
 * A workspace with one channel over real HTTP, as strict as the documentation: its limits, its pace where a test sets one,
 * times that are known, triggers that live once. It answers 200 with `ok: false`, as Slack does.
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
    ...{ settings, calls: [], messages: new Map(), troubles: [], views: [] },
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
        ...{ type: 'block_actions', user: { id: user }, trigger_id: trigger, channel: { id: channelId } },
        container: { type: 'message', message_ts: ts, ...(thread && { thread_ts: thread }) },
        actions: [{ type: 'button', action_id: actionId, value }],
        response_url: 'https://hooks.slack.example/actions/never-used',
      })
    },
    submit(user, { category, words }) {
      const newest = slack.views.at(-1)
      return payload({
        ...{ type: 'view_submission', user: { id: user } },
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
