import { z } from 'zod'
import { escalationCategory, incident, resolveOutcome } from './incident.ts'
import { spellCommands } from './own-command.ts'
import { risks } from './tool.ts'

/** A question as a message carries it: the exact arguments are on the card behind the link. */
const askedApproval = z.object({
  id: z.string(),
  tool: z.string(),
  risk: z.enum(risks),
  reversible: z.boolean(),
  summary: z.string(),
  required: z.number().int(),
  expiresAt: z.string(),
  /** 0: asked just now; 1: half of its life is over; 2: nine tenths. */
  reminder: z.number().int().min(0).max(2),
  /** The person whose turn it is by the site's list; absent where everybody is asked. */
  of: z.object({ name: z.string(), slackUserId: z.string().nullable() }).nullish(),
  /** A possible cause and the rows for it, in a line; nothing where nobody named one. Untrusted. */
  cause: z.string().nullish(),
  /** Sections of its card, with a stranger's words; absent where an older version asked. */
  sections: z.array(z.object({ title: z.string(), text: z.string() })).optional(),
  /** How many more calls of the same answer its card asks about. */
  alsoAsked: z.number().int().optional(),
})

/** Why there is something to tell. */
export const trigger = z.enum([
  ...(['critical', 'escalated', 'approval', 'resolved'] as const),
  /**
   * A closed incident's alert since then: goes on after a repair, came back, is still there, has
   * ended.
   */
  ...(['watch', 'reopened', 'reminder', 'quiet', 'owner'] as const),
  /** A person has it; it was cancelled, or is as expected: what was begun elsewhere ends there. */
  ...(['taken', 'closed'] as const),
  /** About several incidents at once. */
  ...(['digest', 'notice'] as const),
  /** Pages that were not needed; sent by earlier versions, now lines of the morning card. */
  ...(['spared'] as const),
  /** What a night was and what waits, as it ends; the five lines of a hand-over. */
  ...(['morning', 'hand_over'] as const),
  /** A task that an incident left when it ended as mitigated. */
  ...(['follow_up'] as const),
  /** Several messages in one: their receiver asked for patience, or another could not be told. */
  ...(['late', 'undelivered'] as const),
  /** About Nightshift: a duty is lost, or done again. The incident only carries the message. */
  ...(['duty'] as const),
])
export type Trigger = z.infer<typeof trigger>

/** `path`: below the public address; null where a line leads nowhere. */
export const cardLine = z.object({
  text: z.string(),
  path: z.string().nullable(),
  url: z.string().nullable().default(null),
})
export type CardLine = z.infer<typeof cardLine>

/** A thing worth telling, with what a receiver needs to act. */
export const notification = z.object({
  trigger,
  incident: incident
    .pick({ id: true, type: true, severity: true, status: true, title: true, resource: true })
    .extend({ outcome: resolveOutcome.nullish(), category: escalationCategory.nullish() }),
  /** Why it was escalated, or why an approval is asked; null for `critical`. */
  reason: z.string().nullable(),
  approval: askedApproval.nullable().default(null),
  /** Is somebody to be woken for it? */
  page: z.boolean().default(true),
  /** Alerts of the incident that fire at this moment. */
  alertsFiring: z.number().int().default(0),
  /** What a digest lists. */
  incidents: z
    .array(incident.pick({ id: true, title: true, severity: true, status: true }).extend({ since: z.string() }))
    .default([]),
  /** What a card of a night or a shift says, with where each line leads. */
  lines: z.array(cardLine).default([]),
  /** Where a person looks: `<PUBLIC_URL>/incidents/<id>`, or the card of the approval. */
  url: z.string(),
  at: z.string(),
  /** Hash of the incident's newest row, so that a later alteration of the log can be proved. */
  headHash: z.string().nullable(),
})

export type Notification = z.infer<typeof notification>

/**
 * The site that messages come from: the way to its pages, and what people type before a command's
 * words there.
 */
export type MessageSite = { publicUrl: string; commandPrefix?: string }

/** Reads a stored message with this site's address and commands; null where it cannot be read. */
export function readStored(stored: unknown, incidentId: string, site: MessageSite): Notification | null {
  const { publicUrl, commandPrefix = 'nightshift' } = site
  const read = notification.safeParse({ ...(stored as object), url: `${publicUrl}/${getLinkPath(stored, incidentId)}` })
  if (!read.success) return null
  const { reason } = read.data
  const lines = read.data.lines.map((line) => ({
    ...line,
    url: line.path === null ? null : `${publicUrl}/${line.path}`,
  }))
  return { ...read.data, lines, reason: reason === null ? null : spellCommands(reason, commandPrefix) }
}

export type AskedApproval = z.infer<typeof askedApproval>

/** The shapes a webhook's post can have; `notify/webhook/deliver.ts` renders each. */
export const webhookTemplates = ['generic', 'slack'] as const

export type WebhookTemplate = (typeof webhookTemplates)[number]

export type WebhookTarget = {
  template: WebhookTemplate
  url: string
  /** `whsec_…`; signs by Standard Webhooks when set. */
  secret: string | null
}

/**
 * The outcome of one attempt to deliver. `wait`: the receiver asked for patience (429, or 503 with
 * `Retry-After`), and all for its address waits. `retry`: the same bytes may work later (5xx, no
 * connection, timeout), not before `afterMs`. `drop`: no retry can help (4xx, a redirect, a refused
 * address).
 */
export type DeliveryOutcome =
  | { outcome: 'sent'; status: number }
  | { outcome: 'wait'; status: number; reason: string; afterMs: number }
  | { outcome: 'retry'; status: number | null; reason: string; afterMs: number | null }
  | { outcome: 'drop'; status: number | null; reason: string }

/** `responseSnippet`: what the receiver said, for the delivery log; empty when it said nothing. */
export type Delivery = DeliveryOutcome & { responseSnippet: string }

export type DeliverOptions = {
  /** The same for every attempt of one delivery. */
  deliveryId: string
  now: Date
  timeoutMs?: number
  signal?: AbortSignal
}

export type RenderOptions = {
  /** Stays the same over all attempts of one delivery, so that a receiver can tell a repeat. */
  deliveryId: string
  /** When this attempt is sent. */
  now: Date
  /** `whsec_…`, or null. */
  secret: string | null
}

export type RenderedMessage = { headers: Record<string, string>; body: string }

/** A destination's words for a notification. Pure; throws only for a secret that cannot be one. */
export type Render = (notification: Notification, options: RenderOptions) => RenderedMessage

/** The page below the public address: a question's card, a digest's list, else the incident. */
export function getLinkPath(stored: unknown, incidentId: string): string {
  const { trigger, approval, incidents } = stored as {
    trigger?: string
    approval?: { id: string } | null
    incidents?: { status: string }[]
  }
  if (trigger === 'duty') return 'health'
  if (trigger === 'morning' || trigger === 'hand_over') return 'shift'
  if (approval) return `approvals/${approval.id}`
  if (!incidents || incidents.length < 2) return `incidents/${incidentId}`
  return incidents.every(({ status }) => status === 'escalated') ? 'incidents?status=escalated' : 'incidents'
}

/** How long a receiver that answers 429 and names no time is left alone. */
const unnamedWaitMs = 5_000
/** One that asks for no time at all is not asked again at once. */
const minWaitMs = 100

/** What an answer of 408, 429 or 5xx means, with the time that it named. */
export function waitOrRetry(status: number, reason: string, namedMs: number | null): DeliveryOutcome | null {
  const isWait = status === 429 || (status === 503 && namedMs !== null)
  if (isWait) return { outcome: 'wait', status, reason, afterMs: Math.max(minWaitMs, namedMs ?? unnamedWaitMs) }
  return status === 408 || status >= 500 ? { outcome: 'retry', status, reason, afterMs: namedMs } : null
}

/** One notification for two or more: their incidents, each once, in their order. */
export function joinNotifications(
  all: readonly Notification[],
  trigger: 'late' | 'undelivered',
  reason: string,
): Notification {
  const [first] = all as [Notification]
  const incidents = new Map(
    all
      .toReversed()
      .map(({ incident: { id, title, severity, status }, at }) => [id, { id, title, severity, status, since: at }]),
  )
  return {
    ...first,
    trigger,
    reason,
    approval: null,
    page: all.some(({ page }) => page),
    incidents: [...incidents.values()].reverse(),
  }
}
