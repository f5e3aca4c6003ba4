import { z } from 'zod'
import { severity } from './incident.ts'
import { inventoryKinds } from './kinds.ts'

/** Characters that are kept of a sender's word for a state. */
export const maxWordChars = 100

const link = z.string().nullable()

/** Where a person reads on. The last four are Grafana's. */
export const alertLinks = z.object({
  generator: link,
  external: link,
  runbook: link,
  dashboard: link.optional(),
  panel: link.optional(),
  silence: link.optional(),
  image: link.optional(),
})
export type AlertLinks = z.infer<typeof alertLinks>

/**
 * One alert, from any sender. `ingest/<dialect>/` makes it from bytes; nothing further in knows a
 * vendor's format. Strings are capped and hold no U+0000.
 */
export const alert = z.object({
  /** The dialect, `alertmanager` or `generic`. */
  source: z.string(),
  /**
   * The sender, by its token: tokens of one name, or one person, are one sender. Absent: unknown.
   */
  sender: z.string().optional(),
  /** The alert's identity at its source; unique among open alerts. */
  fingerprint: z.string().min(1).max(200),
  status: z.enum(['firing', 'resolved']),
  name: z.string(),
  severity,
  /**
   * `default`: the source named no known severity; shown, so that nobody takes it for a decision.
   */
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
  /**
   * The sender's word for an end that proves nothing (`MissingSeries`, `Paused`); with a firing
   * alert, for that it has no data. That is news where the alert fires already, and opens one
   * otherwise. Absent: an end like any other.
   */
  endReason: z.string().max(maxWordChars).optional(),
  /** Its sender's word for its state, where nobody knows it: it fires. */
  stateWord: z.string().max(maxWordChars).optional(),
  links: alertLinks,
  /** What the rule computed, by the letter of the expression, where the sender says so. */
  values: z.record(z.string(), z.number()).optional(),
  /** The source's notification group, kept for correlation. */
  groupKey: z.string().nullable(),
  /** Alerts of this group that the sender cut off; a note on the incident says so. */
  truncatedAlerts: z.number().int().nonnegative(),
  /** Names of labels and annotations that were shortened to fit. */
  cappedFields: z.array(z.string()),
})
export type Alert = z.infer<typeof alert>

/** Alerts of a body (or why there are none), or why no retry can fix these bytes (400). */
export type ParsedAlerts = { ok: true; alerts: Alert[]; ignored?: string } | { ok: false; reason: string }

/** Per alert, what ingest did. */
export const ingestOutcome = z.enum([
  'opened',
  'repeated',
  'flapped',
  'resolved',
  'unproven',
  'reopened',
  'late_end',
  'orphan',
  'escalated',
  'heartbeat',
])
export type IngestOutcome = z.infer<typeof ingestOutcome>

/**
 * The state of a stored alert. `unknown`: its sender fell silent, ended many at once, or proved no
 * end.
 */
export const alertState = z.enum(['firing', 'resolved', 'unknown'])

const labels = z.record(z.string(), z.string())

/** An alert as the API lists it. */
export const receivedAlert = z.object({
  id: z.string(),
  source: z.string(),
  fingerprint: z.string(),
  status: alertState,
  name: z.string(),
  labels,
  annotations: labels,
  startsAt: z.string(),
  endsAt: z.string().nullable(),
  count: z.number().int(),
  firstSeenAt: z.string(),
  lastSeenAt: z.string(),
  /** Null: it ended before it had begun, and opened nothing. */
  incidentId: z.string().nullable(),
  links: alertLinks,
  /** The sender's notification group. */
  groupKey: z.string().nullable(),
  /** The sender whose token opened it; null where that is not known. */
  sender: z.string().nullable(),
  /** The sender that ended it, where that is another one. */
  endedBy: z.string().nullable(),
  /** The sender's word for an end that proves nothing; when `resolved`, it is quiet, unproven. */
  endReason: z.string().nullable(),
  /** The newest word for its state that nobody knows. */
  stateWord: z.string().nullable(),
  /** Everything that was read from what the source sent. */
  raw: z.unknown(),
})
export type ReceivedAlert = z.infer<typeof receivedAlert>

/** What would become of one alert of a body, with nothing stored. */
export const explainedAlert = z.object({
  fingerprint: z.string(),
  status: z.enum(['firing', 'resolved']),
  name: z.string(),
  title: z.string(),
  type: z.string(),
  severity,
  /** The sender's own word; null: it gave none, and the severity is the default. */
  severityWord: z.string().nullable(),
  /** `kind:id`, or null. */
  resource: z.string().nullable(),
  /** One sentence: which label named it, or why nothing was found. */
  why: z.string(),
  tried: z.array(
    z.object({ label: z.string(), name: z.string(), result: z.enum(['found', 'unknown', 'several', 'elsewhere']) }),
  ),
  candidates: z.array(z.string()),
  /** What happens to it: opens an incident, repeats one, is a heartbeat, is expected. */
  becomes: z.enum(['opens', 'repeats', 'ends', 'unproven', 'heartbeat', 'nothing']),
  /** The incident that it repeats or ends. */
  incidentId: z.string().nullable(),
  groupKey: z.string().nullable(),
  notes: z.array(z.string()),
})
export type ExplainedAlert = z.infer<typeof explainedAlert>

/** A label whose values name known things, on alerts without a resource: mapping finds them. */
export const unmappedLabel = z.object({
  label: z.string(),
  kind: z.enum(inventoryKinds),
  /** Alerts in which it names something. */
  alerts: z.number().int(),
  /** How many things it names, and some of them. */
  things: z.number().int(),
  examples: z.array(z.object({ value: z.string(), resource: z.string() })),
  rule: z.string().describe('As `alert.resource_labels` takes it.'),
  command: z.string().describe('What maps it, with the rules that there are.'),
})
export type UnmappedLabel = z.infer<typeof unmappedLabel>
