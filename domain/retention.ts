import { z } from 'zod'

/**
 * Kinds of rows that are removed by age, each with its setting and the default of the setting in
 * days. Rows with the default null are kept. Records of actions are removed only after a person
 * sets a number of days.
 */
export const retainedKinds = {
  incidents: { setting: 'retention.incidents', days: null },
  deliveries: { setting: 'retention.deliveries', days: 90 },
  alerts: { setting: 'retention.alerts', days: null },
} as const
export type RetainedKind = keyof typeof retainedKinds

/** Minimum age in days for removal. Alerts may come back until then, and watches must be over. */
export const minRetentionDays = 31
export const maxRetentionDays = 3650

/** Why an old incident is kept, as the database function `why_kept` returns the reason. */
export const keptReasons = {
  open: 'open',
  held: 'held by a person',
  'waited for': 'needed by a check, a message, an alert, a write or a review',
  grant: 'needed by a standing grant',
  followed: 'needed by a later incident that is kept',
  precedent: 'a precedent of an open incident',
} as const
const keptReason = z.enum(Object.keys(keptReasons) as [keyof typeof keptReasons])
export type KeptReason = z.infer<typeof keptReason>

/** Rows that one rule would remove now. `days` is null if the rows are kept for ever. */
export const retainedNow = z.object({
  kind: z.enum(Object.keys(retainedKinds) as [RetainedKind]),
  setting: z.string(),
  days: z.number().int().nullable(),
  due: z.number().int(),
  /** How many rows are old enough but kept, by the reason why they are kept. */
  kept: z.partialRecord(keptReason, z.number().int()),
  /** Whether more rows may be old enough than were counted. */
  isPartial: z.boolean(),
})
export type RetainedNow = z.infer<typeof retainedNow>

export const retention = z.object({
  items: z.array(retainedNow),
  /** How many stored results (`result_body`) wait for removal. */
  bodies: z.number().int(),
  /** The last complete round of removal; null before the first round. */
  lastRound: z.object({ endedAt: z.string(), removed: z.record(z.string(), z.number().int()) }).nullable(),
})
export type Retention = z.infer<typeof retention>

export const incidentHold = z.object({
  id: z.string(),
  incidentId: z.string(),
  reason: z.string(),
  heldBy: z.string(),
  heldAt: z.string(),
  endedAt: z.string().nullable(),
})
export type IncidentHold = z.infer<typeof incidentHold>

/** Formats a removal: `removed by retention on 2027-12-01 under retention.incidents = 400 days`. */
export function describeTombstone({ at, rule }: { at: string; rule: string }): string {
  return `removed by retention on ${at.slice(0, 10)} under ${rule}`
}
