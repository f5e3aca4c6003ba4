import { z } from 'zod'

/**
 * Rows that go by age: the setting that says when, and the days without one; null: kept. Records of
 * what was done go by a person's word alone.
 */
export const retainedKinds = {
  incidents: { setting: 'retention.incidents', days: null },
  deliveries: { setting: 'retention.deliveries', days: 90 },
  alerts: { setting: 'retention.alerts', days: null },
} as const
export type RetainedKind = keyof typeof retainedKinds

/** Nothing younger than this is removed: alerts come back, and what is watched has to be over. */
export const minRetentionDays = 31
export const maxRetentionDays = 3650

/** Why an incident stays although it is old: words of `why_kept` in the database. */
export const keptReasons = {
  open: 'open',
  held: 'held by a person',
  'waited for': 'waited for by a look, a message, an alert, a write or a review',
  grant: 'what a standing grant rests on',
  followed: 'followed by an incident that stays',
  precedent: 'a precedent of one that is open',
} as const
const keptReason = z.enum(Object.keys(keptReasons) as [keyof typeof keptReasons])
export type KeptReason = z.infer<typeof keptReason>

/** What would go now by one rule. `days` null: it is kept for ever. */
export const retainedNow = z.object({
  kind: z.enum(Object.keys(retainedKinds) as [RetainedKind]),
  setting: z.string(),
  days: z.number().int().nullable(),
  due: z.number().int(),
  /** Old enough, and kept all the same, by the reason. */
  kept: z.partialRecord(keptReason, z.number().int()),
  /** More were old enough than were looked at. */
  isPartial: z.boolean(),
})
export type RetainedNow = z.infer<typeof retainedNow>

export const retention = z.object({
  items: z.array(retainedNow),
  /** Bodies that wait for their sweep. */
  bodies: z.number().int(),
  /** The round that went through everything last; null where none did. */
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

/** `removed by retention on 2027-12-01 under retention.incidents = 400 days`. */
export function describeTombstone({ at, rule }: { at: string; rule: string }): string {
  return `removed by retention on ${at.slice(0, 10)} under ${rule}`
}
