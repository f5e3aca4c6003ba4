import { z } from 'zod'
import { type DenialCategory, denialCategory } from '../domain/approval.ts'
import type { IncidentPress } from './signature.ts'

/** Where an answer is seen: the channel, and the thread where there is one. */
export type SlackSpot = { channel: string; thread: string | null }

export type Press = {
  kind: 'press'
  user: string
  action: 'approve' | 'deny'
  button: string
  trigger: string
  spot: SlackSpot
}

export type Denial = {
  kind: 'denial'
  user: string
  button: string
  category: DenialCategory
  words: string | null
  spot: SlackSpot
}

/** A person takes an incident, or gives it back. */
export type OwnerPress = {
  kind: 'owner'
  user: string
  action: IncidentPress
  button: string
  spot: SlackSpot
}

/** `other`: a followed link, or something unknown; nothing has to be done. */
export type Interaction = Press | Denial | OwnerPress | { kind: 'other' }

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
  actions: z.tuple([z.object({ action_id: z.enum(['take', 'give_back']), value: button })]),
})

/** What the modal carries from the press to the words. */
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

/** Reads a body. Call it only after its signature was verified. */
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

function jsonOf(text: string | null): unknown {
  try {
    return JSON.parse(text ?? '')
  } catch {
    return null
  }
}
