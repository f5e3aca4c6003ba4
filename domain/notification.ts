import { z } from 'zod'
import { incident } from './incident.ts'

/** A thing worth telling: the two triggers of the webhooks, with what a receiver needs to act. */
export const notification = z.object({
  trigger: z.enum(['critical', 'escalated']),
  incident: incident.pick({ id: true, type: true, severity: true, status: true, title: true, resource: true }),
  /** The reason of an escalation; null for `critical`. */
  reason: z.string().nullable(),
  /** Where a person looks: `<PUBLIC_URL>/incidents/<id>`. */
  url: z.string(),
  at: z.string(),
  /** Hash of the incident's newest row, so that a later alteration of the log can be proved. */
  headHash: z.string().nullable(),
})
export type Notification = z.infer<typeof notification>

export type Destination = {
  template: 'generic' | 'slack'
  url: string
  /** `whsec_…`; signs by Standard Webhooks when set. */
  secret: string | null
}

/**
 * What became of one attempt to deliver. `retry`: the same bytes may work later (5xx, 429, no connection, timeout), not
 * before `afterMs` where the receiver named a time. `drop`: no retry can help (4xx, a redirect, a refused address).
 */
export type DeliveryOutcome =
  | { outcome: 'sent'; status: number }
  | { outcome: 'retry'; status: number | null; reason: string; afterMs: number | null }
  | { outcome: 'drop'; status: number | null; reason: string }
