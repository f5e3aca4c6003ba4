import { z } from 'zod'
import { escalationCategory, incident, resolveOutcome } from './incident.ts'
import { spellCommands } from './own-command.ts'
import { risks } from './tool.ts'

/** A question for approval in a message. The card behind the link has the exact arguments. */
const askedApproval = z.object({
  id: z.string(),
  tool: z.string(),
  risk: z.enum(risks),
  reversible: z.boolean(),
  summary: z.string(),
  required: z.number().int(),
  expiresAt: z.string(),
  /** 0: people were just asked. 1: after half of the time to decide. 2: after nine tenths. */
  reminder: z.number().int().min(0).max(2),
  /** The next person on the list of people to ask. Absent if everybody is asked. */
  of: z.object({ name: z.string(), slackUserId: z.string().nullable() }).nullish(),
  /** A possible cause with its log rows, in one line; empty if the agent named none. Untrusted. */
  cause: z.string().nullish(),
  /** Sections of the card, with untrusted text. Absent if an older version asked. */
  sections: z.array(z.object({ title: z.string(), text: z.string() })).optional(),
  /** How many further calls of the turn the card asks about. */
  alsoAsked: z.number().int().optional(),
})

/** The event that a message reports. */
export const trigger = z.enum([
  ...(['critical', 'escalated', 'approval', 'resolved'] as const),
  /**
   * News about the alert of a closed incident: the alert fires after a repair, came back, still
   * fires, or has ended.
   */
  ...(['watch', 'reopened', 'reminder', 'quiet', 'owner'] as const),
  /**
   * A person took the incident, or the incident was cancelled or is expected, so that pages in
   * other systems end.
   */
  ...(['taken', 'closed'] as const),
  /** A message about several incidents at once. */
  ...(['digest', 'notice'] as const),
  /**
   * Pages that were not needed. Earlier versions sent this message; now the pages are lines of the
   * morning card.
   */
  ...(['spared'] as const),
  /** The morning card at the end of a night, and the five lines of a hand-over. */
  ...(['morning', 'hand_over'] as const),
  /** A task that remained when an incident ended as mitigated. */
  ...(['follow_up'] as const),
  /**
   * Several messages in one, because the receiver asked Nightshift to wait, or because another
   * receiver was unreachable.
   */
  ...(['late', 'undelivered'] as const),
  /**
   * The state of Nightshift itself: a part failed, or works again. The message reports nothing
   * about an incident.
   */
  ...(['duty'] as const),
])
export type Trigger = z.infer<typeof trigger>

/** A line of a card. `path`: relative to the public address; null if the line has no link. */
export const cardLine = z.object({
  text: z.string(),
  path: z.string().nullable(),
  url: z.string().nullable().default(null),
})
export type CardLine = z.infer<typeof cardLine>

/** One message, with the data that its receiver needs to act. */
export const notification = z.object({
  trigger,
  incident: incident
    .pick({ id: true, type: true, severity: true, status: true, title: true, resource: true })
    .extend({ outcome: resolveOutcome.nullish(), category: escalationCategory.nullish() }),
  /** Why the incident was escalated, or why an approval is requested; null for `critical`. */
  reason: z.string().nullable(),
  approval: askedApproval.nullable().default(null),
  /** Whether the message wakes somebody. */
  page: z.boolean().default(true),
  /** How many alerts of the incident fire now. */
  alertsFiring: z.number().int().default(0),
  /** The incidents that a digest lists. */
  incidents: z
    .array(incident.pick({ id: true, title: true, severity: true, status: true }).extend({ since: z.string() }))
    .default([]),
  /** Lines of the card of a night or hand-over, with their links. */
  lines: z.array(cardLine).default([]),
  /** The link of the message: `<PUBLIC_URL>/incidents/<id>`, or the card of the approval. */
  url: z.string(),
  at: z.string(),
  /**
   * The hash of the newest row of the incident's log, which can prove a later change of the log.
   */
  headHash: z.string().nullable(),
})

export type Notification = z.infer<typeof notification>

/**
 * The facts about the installation that a message needs: the public address, and what people type
 * before a command.
 */
export type MessageSite = { publicUrl: string; commandPrefix?: string }

/**
 * Reads a stored message and adds the address and commands of this installation; null if the
 * message cannot be read.
 */
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

/** Formats of the body of a webhook. `notify/webhook/deliver.ts` renders each format. */
export const webhookTemplates = ['generic', 'slack'] as const

export type WebhookTemplate = (typeof webhookTemplates)[number]

export type WebhookTarget = {
  template: WebhookTemplate
  url: string
  /** A secret of the form `whsec_…`, or null. A secret signs the message by Standard Webhooks. */
  secret: string | null
}

/**
 * The outcome of one attempt to deliver. `wait`: the receiver asked to wait (429, or 503 with
 * `Retry-After`), so every message to its address waits. `retry`: the message may be accepted later
 * (5xx, no connection, timeout), but not before `afterMs`. `drop`: a retry cannot help (4xx, a
 * redirect, a refused address).
 */
export type DeliveryOutcome =
  | { outcome: 'sent'; status: number }
  | { outcome: 'wait'; status: number; reason: string; afterMs: number }
  | { outcome: 'retry'; status: number | null; reason: string; afterMs: number | null }
  | { outcome: 'drop'; status: number | null; reason: string }

/**
 * `responseSnippet`: the beginning of the receiver's response, for the list of deliveries. May be
 * empty.
 */
export type Delivery = DeliveryOutcome & { responseSnippet: string }

export type DeliverOptions = {
  /** An id that all attempts of one delivery have. */
  deliveryId: string
  now: Date
  timeoutMs?: number
  signal?: AbortSignal
}

export type RenderOptions = {
  /** An id that all attempts of one delivery have, so that a receiver can detect a repeat. */
  deliveryId: string
  /** The time of this attempt to deliver. */
  now: Date
  /** A secret of the form `whsec_…` that signs the message, or null. */
  secret: string | null
}

export type RenderedMessage = { headers: Record<string, string>; body: string }

/**
 * Renders a notification for a destination. Has no side effect, and throws only for an invalid
 * secret.
 */
export type Render = (notification: Notification, options: RenderOptions) => RenderedMessage

/**
 * Returns the path of the page that a message opens: the card of a question, the list of a digest,
 * otherwise the incident.
 */
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

/** Milliseconds to wait after a 429 that names no time. */
const unnamedWaitMs = 5_000
/** Minimum milliseconds to wait, for a receiver that names zero. */
const minWaitMs = 100

/**
 * Converts a response of 408, 429 or 5xx, with the time that the response names, to an outcome;
 * null for any other status.
 */
export function waitOrRetry(status: number, reason: string, namedMs: number | null): DeliveryOutcome | null {
  const isWait = status === 429 || (status === 503 && namedMs !== null)
  if (isWait) return { outcome: 'wait', status, reason, afterMs: Math.max(minWaitMs, namedMs ?? unnamedWaitMs) }
  return status === 408 || status >= 500 ? { outcome: 'retry', status, reason, afterMs: namedMs } : null
}

/** Joins notifications into one notification that lists their incidents, each once, in order. */
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
