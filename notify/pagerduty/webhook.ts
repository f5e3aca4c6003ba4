import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { sha256 } from '../../domain/digest.ts'
import { inertText } from '../../domain/inert-text.ts'

/**
 * Reads PagerDuty's incoming webhooks (V3): https://developer.pagerduty.com/docs/webhooks-overview
 */

/**
 * Whether the secret signed the body. One valid signature is enough, because a request has several
 * while the secret is being changed. Compares in constant time.
 */
export function isSigned(secret: string, header: string | undefined, body: Uint8Array): boolean {
  const expected = Buffer.from(sha256(`v1=${createHmac('sha256', secret).update(body).digest('hex')}`))
  let isFound = false
  for (const given of (header ?? '').split(',').slice(0, 10))
    isFound = timingSafeEqual(Buffer.from(sha256(given.trim())), expected) || isFound
  return isFound
}

const reference = z.looseObject({
  id: z.string().max(100),
  type: z.string().max(100),
  summary: z.string().nullish(),
})

const envelope = z.looseObject({
  event: z.looseObject({
    id: z.string().min(1).max(200),
    event_type: z.string().max(200),
    occurred_at: z.iso.datetime({ offset: true }),
    agent: reference.nullish(),
    data: z.looseObject({ incident_key: z.string().max(300).nullish(), html_url: z.string().max(2_000).nullish() }),
  }),
})

/** An action in PagerDuty on an incident that Nightshift reported. */
export type PagerdutyAct = {
  eventId: string
  act: 'acknowledged' | 'resolved'
  /** Nightshift's id of the incident, which PagerDuty has as the key. */
  incidentId: string
  occurredAt: string
  /** The person or program that acted, as PagerDuty names it. */
  agent: { id: string; name: string; isPerson: boolean } | null
}

const acts: Record<string, PagerdutyAct['act']> = {
  'incident.acknowledged': 'acknowledged',
  'incident.resolved': 'resolved',
}

/** Reads an action from a request body, or returns why it is ignored. Null without an event. */
export function readWebhook(bytes: Uint8Array): { act: PagerdutyAct } | { ignored: string } | null {
  const parsed = envelope.safeParse(toJson(bytes))
  if (!parsed.success) return null
  const { id, event_type: type, occurred_at: occurredAt, agent, data } = parsed.data.event
  const act = Object.hasOwn(acts, type) ? acts[type] : undefined
  if (!act) return { ignored: 'Nightshift ignores events of this type' }
  const key = data.incident_key ?? ''
  if (!/^inc_[0-9a-z]{26}$/.test(key))
    return { ignored: 'the key of the event belongs to no incident of this Nightshift' }
  const named = agent && {
    id: inertText(agent.id, 60),
    name: inertText(agent.summary ?? agent.id, 100),
    isPerson: agent.type === 'user_reference' || agent.type === 'user',
  }
  return { act: { eventId: id, act, incidentId: key, occurredAt, agent: named ?? null } }
}

function toJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return null
  }
}
