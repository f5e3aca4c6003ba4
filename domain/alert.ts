import { z } from 'zod'
import { severity } from './incident.ts'

/**
 * One alert, from any sender. `ingest/<dialect>/` makes these from bytes; nothing further in knows a vendor's format.
 * Strings are already capped and hold no U+0000.
 */
export const alert = z.object({
  /** The dialect, `alertmanager` or `generic`. */
  source: z.string(),
  /** The alert's identity at its source; unique among open alerts. */
  fingerprint: z.string().min(1).max(200),
  status: z.enum(['firing', 'resolved']),
  name: z.string(),
  severity,
  /** `default` when the source named no severity we know: shown, so that nobody mistakes it for a decision. */
  severitySource: z.enum(['alert', 'default']),
  /** What the source said, for the note that a default was taken. */
  severityWord: z.string().nullable(),
  title: z.string(),
  labels: z.record(z.string(), z.string()),
  annotations: z.record(z.string(), z.string()),
  startsAt: z.string(),
  /** False: the sender gave no time that can be believed, and `startsAt` is the time of receipt. */
  startGiven: z.boolean().optional(),
  /** What could not be believed about its times, and what was taken instead. */
  timeNotes: z.array(z.string()).optional(),
  endsAt: z.string().nullable(),
  links: z.object({
    generator: z.string().nullable(),
    external: z.string().nullable(),
    runbook: z.string().nullable(),
  }),
  /** The source's notification group, kept for correlation. */
  groupKey: z.string().nullable(),
  /** Alerts of this group that the sender cut off; a note on the incident says so. */
  truncatedAlerts: z.number().int().nonnegative(),
  /** Names of labels and annotations that were shortened to fit. */
  cappedFields: z.array(z.string()),
})
export type Alert = z.infer<typeof alert>

/** What a dialect answers: alerts, or why these bytes can never be one (a 400, which no retry fixes). */
export type Parsed = { ok: true; alerts: Alert[] } | { ok: false; reason: string }

/** Per alert, what ingest did. */
export const ingestOutcome = z.enum([
  'opened',
  'repeated',
  'flapped',
  'resolved',
  'reopened',
  'late_end',
  'orphan',
  'escalated',
  'heartbeat',
])
export type IngestOutcome = z.infer<typeof ingestOutcome>
