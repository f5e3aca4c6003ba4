import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { type DenialCategory, denialCategory } from '../../domain/approval.ts'

/**
 * Seconds by which Slack's clock and this machine's clock may differ. An older request may be a
 * replay, and a request from the future may be prepared for a replay.
 */
const toleranceSeconds = 300

/**
 * Returns Slack's signature: `v0=` and the HMAC of the version, the time and the unchanged body.
 */
export function signatureOf(secret: string, timestamp: string, body: Uint8Array | string): string {
  return `v0=${createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex')}`
}

type SignedRequest = { timestamp: string | undefined; signature: string | undefined; body: Uint8Array }

/**
 * Verifies a request's signature. `stale`: a valid signature of a request that is too old or too
 * new. Compares in constant time, before the body is parsed.
 */
export function judgeSignature(secret: string, signed: SignedRequest, nowMs: number): 'good' | 'forged' | 'stale' {
  const { timestamp, signature, body } = signed
  if (!timestamp || !signature || !/^\d{1,12}$/.test(timestamp)) return 'forged'
  const expected = Buffer.from(signatureOf(secret, timestamp, body))
  const given = Buffer.from(signature)
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return 'forged'
  return Math.abs(nowMs / 1000 - Number(timestamp)) > toleranceSeconds ? 'stale' : 'good'
}

type Asked = { id: string; actionDigest: string }

/**
 * Builds the value of a button: the id of its approval, and a nonce that only Nightshift can make
 * for this approval and the action shown. The value gives no permission: the rights of the person
 * who presses the button are checked.
 */
export function buttonValue(secret: string, approval: Asked): string {
  return `${approval.id}.${nonceOf(secret, approval)}`
}

/**
 * Returns the id of the approval from the value of a button; null if the value does not have the
 * form of Nightshift's buttons.
 */
export function approvalOfButton(value: string): string | null {
  return /^(apr_[0-9a-z]{1,60})\.[A-Za-z0-9_-]{43}$/.exec(value)?.[1] ?? null
}

/** Whether Nightshift made this button for exactly this approval and action. */
export function isButtonOf(secret: string, approval: Asked, value: string): boolean {
  const [expected, given] = [Buffer.from(buttonValue(secret, approval)), Buffer.from(value)]
  return given.length === expected.length && timingSafeEqual(given, expected)
}

function nonceOf(secret: string, { id, actionDigest }: Asked): string {
  return createHmac('sha256', secret).update(`nightshift button\n${id}\n${actionDigest}`).digest('base64url')
}

/**
 * Builds the value of an incident's button: the id of the incident, the attempt if the button
 * grades a cause, and a nonce that only Nightshift can make for this incident, attempt and button.
 */
export function incidentButton(secret: string, { id, attempt }: AskedIncident, action: IncidentPress): string {
  const of = attempt !== null && isAboutCause(action) ? `${id}.${attempt}` : id
  const nonce = createHmac('sha256', secret).update(`nightshift ${action}\n${of}`).digest('base64url')
  return `${of}.${nonce}`
}

type AskedIncident = { id: string; attempt: number | null }
const isAboutCause = (action: IncidentPress): boolean => action.startsWith('cause_')

const incidentPresses = ['take', 'give_back', 'cause_right', 'cause_partly', 'cause_wrong'] as const
export type IncidentPress = (typeof incidentPresses)[number]

/**
 * Returns the incident and the attempt from the value of a button; null if the value does not have
 * the form of Nightshift's buttons.
 */
export function incidentOfButton(value: string): AskedIncident | null {
  const [, id, attempt] = /^(inc_[0-9a-z]{1,60})(?:\.(\d{1,6}))?\.[A-Za-z0-9_-]{43}$/.exec(value) ?? []
  return id === undefined ? null : { id, attempt: attempt === undefined ? null : Number(attempt) }
}

/** Whether Nightshift made this button for this incident and action. */
export function isIncidentButton(secret: string, asked: AskedIncident, action: IncidentPress, value: string): boolean {
  const [expected, given] = [Buffer.from(incidentButton(secret, asked, action)), Buffer.from(value)]
  return given.length === expected.length && timingSafeEqual(given, expected)
}

/** The place for a reply: the channel, and the thread if the message was in one. */
export type SlackSpot = { channel: string; thread: string | null }

export type Press = {
  kind: 'press'
  user: string
  action: 'approve' | 'deny'
  button: string
  trigger: string
  spot: SlackSpot
}

export type SlackDenial = {
  kind: 'denial'
  user: string
  button: string
  category: DenialCategory
  words: string | null
  spot: SlackSpot
}

/** The press of a button that takes an incident, gives it back, or grades its cause. */
export type OwnerPress = {
  kind: 'owner'
  user: string
  action: IncidentPress
  button: string
  spot: SlackSpot
}

/** `other`: a link that was opened, or an unknown interaction, which needs no action. */
type Interaction = Press | SlackDenial | OwnerPress | { kind: 'other' }

const id = z.string().regex(/^[A-Z0-9]{1,40}$/)
const timestamp = z.string().regex(/^\d{1,20}\.\d{1,20}$/)
const button = z.string().max(2_000)
const user = z.object({ id })

const pressed = z.object({
  type: z.literal('block_actions'),
  user,
  trigger_id: z.string().max(200),
  channel: z.object({ id }),
  container: z.object({ message_ts: timestamp, thread_ts: timestamp.optional() }),
  actions: z.tuple([z.object({ action_id: z.enum(['approve', 'deny']), value: button })]),
})

const owned = pressed.extend({
  actions: z.tuple([z.object({ action_id: z.enum(incidentPresses), value: button })]),
})

/** Data that the modal for a denial keeps from the press of Deny until it is submitted. */
export const denialMetadata = z.object({ button, channel: id, thread: timestamp.nullable() })

const submitted = z.object({
  type: z.literal('view_submission'),
  user,
  view: z.object({
    callback_id: z.literal('deny'),
    private_metadata: z.string().max(3_000),
    state: z.object({
      values: z.object({
        category: z.object({ category: z.object({ selected_option: z.object({ value: denialCategory }) }) }),
        words: z.object({ words: z.object({ value: z.string().max(2_000).nullish() }) }),
      }),
    }),
  }),
})

/** Parses the body of an interaction. Call this only after the signature was verified. */
export function readInteraction(body: string): Interaction {
  const payload = jsonOf(new URLSearchParams(body).get('payload'))
  const press = pressed.safeParse(payload)
  if (press.success) {
    const { user, trigger_id, channel, container, actions } = press.data
    const spot = { channel: channel.id, thread: container.thread_ts ?? null }
    const [{ action_id, value }] = actions
    return { kind: 'press', user: user.id, action: action_id, button: value, trigger: trigger_id, spot }
  }
  const owner = owned.safeParse(payload)
  if (owner.success) {
    const { user, channel, container, actions } = owner.data
    const [{ action_id, value }] = actions
    const spot = { channel: channel.id, thread: container.thread_ts ?? null }
    return { kind: 'owner', user: user.id, action: action_id, button: value, spot }
  }
  const denial = submitted.safeParse(payload)
  if (!denial.success) return { kind: 'other' }
  const { user, view } = denial.data
  const carried = denialMetadata.safeParse(jsonOf(view.private_metadata))
  if (!carried.success) return { kind: 'other' }
  const { category, words } = view.state.values
  return {
    kind: 'denial',
    user: user.id,
    button: carried.data.button,
    category: category.category.selected_option.value,
    words: words.words.value?.trim() || null,
    spot: { channel: carried.data.channel, thread: carried.data.thread },
  }
}

/**
 * An event of Slack. `message`: a message of a member in a thread; its `eventId` is the same when
 * Slack repeats the event. `challenge`: Slack checks whether the address belongs to this app.
 */
export type SlackEvent =
  | { kind: 'challenge'; challenge: string }
  | { kind: 'message'; eventId: string; user: string; text: string; spot: { channel: string; thread: string } }
  | { kind: 'other' }

const challenged = z.object({ type: z.literal('url_verification'), challenge: z.string().max(1_000) })

/** A message that a person wrote. Messages of programs and edits have a `bot_id` or a `subtype`. */
const written = z.object({
  type: z.literal('event_callback'),
  event_id: z.string().regex(/^[A-Za-z0-9]{1,64}$/),
  event: z.object({
    type: z.literal('message'),
    subtype: z.undefined().optional(),
    bot_id: z.undefined().optional(),
    user: id,
    channel: id,
    thread_ts: timestamp,
    text: z.string().max(40_000),
  }),
})

/** Parses a request to the event address. Call this only after the signature was verified. */
export function readEvent(body: string): SlackEvent {
  const payload = jsonOf(body)
  const challenge = challenged.safeParse(payload)
  if (challenge.success) return { kind: 'challenge', challenge: challenge.data.challenge }
  const message = written.safeParse(payload)
  if (!message.success) return { kind: 'other' }
  const { event_id: eventId, event } = message.data
  const spot = { channel: event.channel, thread: event.thread_ts }
  return { kind: 'message', eventId, user: event.user, text: plainOf(event.text), spot }
}

/** Converts Slack's markup to the text that a reader of the channel sees. */
function plainOf(text: string): string {
  const shown = text.replace(/<([^<>|]*)(?:\|([^<>]*))?>/g, (_, target: string, label?: string) => label || target)
  return shown.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&').trim()
}

function jsonOf(text: string | null): unknown {
  try {
    return JSON.parse(text ?? '')
  } catch {
    return null
  }
}
