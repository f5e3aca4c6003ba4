import { z } from 'zod'
import { severity } from './incident.ts'
import { inventoryKinds } from './kinds.ts'

/** Maximum length of a sender's word for the state of an alert. A longer word is cut. */
export const maxWordChars = 100

const link = z.string().nullable()

/** Links to more information. Only Grafana sends the last four links. */
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
 * One alert, from any sender. `ingest/` parses the bytes, and no other folder knows the format of a
 * vendor. Its strings are limited in length and contain no U+0000.
 */
export const alert = z.object({
  /** The dialect, such as `alertmanager` or `generic`. */
  source: z.string(),
  /**
   * The sender, by its token. Tokens with the same name, or of the same person, are one sender.
   * Absent if the sender is unknown.
   */
  sender: z.string().optional(),
  /** The identity of the alert at its source. Unique among the source's open alerts. */
  fingerprint: z.string().min(1).max(200),
  status: z.enum(['firing', 'resolved']),
  name: z.string(),
  severity,
  /**
   * `default`: the source gave no known severity. Pages show this, so that nobody takes the default
   * for the choice of the source.
   */
  severitySource: z.enum(['alert', 'default']),
  /** The source's word for the severity, shown if the default is used instead. */
  severityWord: z.string().nullable(),
  title: z.string(),
  labels: z.record(z.string(), z.string()),
  annotations: z.record(z.string(), z.string()),
  startsAt: z.string(),
  /** False if the sender gave no credible time, and `startsAt` is the time of receipt. */
  startGiven: z.boolean().optional(),
  /** Times of the alert that were not credible, each with the time that was used instead. */
  timeNotes: z.array(z.string()).optional(),
  endsAt: z.string().nullable(),
  /**
   * The sender's word for an end that proves nothing (`MissingSeries`, `Paused`), or, on a firing
   * alert, for missing data. Missing data updates an alert that already fires, and otherwise opens
   * a new alert. Absent for an ordinary end.
   */
  endReason: z.string().max(maxWordChars).optional(),
  /** The sender's word for a state that Nightshift does not know. The alert counts as firing. */
  stateWord: z.string().max(maxWordChars).optional(),
  links: alertLinks,
  /**
   * The values that the alert rule computed, by the letter of their expression, if the sender
   * reports them.
   */
  values: z.record(z.string(), z.number()).optional(),
  /** The notification group at the source, kept for correlation. */
  groupKey: z.string().nullable(),
  /** How many alerts of this group the sender cut off. A note on the incident reports this. */
  truncatedAlerts: z.number().int().nonnegative(),
  /** Names of the labels and annotations that were shortened. */
  cappedFields: z.array(z.string()),
})
export type Alert = z.infer<typeof alert>

/**
 * The alerts of a request body, or the reason why none could be read. A body that is refused with
 * 400 is refused again if it is sent again.
 */
export type ParsedAlerts = { ok: true; alerts: Alert[]; ignored?: string } | { ok: false; reason: string }

/** The result of the ingest of one alert. */
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
 * The state of a stored alert. `unknown`: the sender stopped sending, ended many alerts at once, or
 * sent an end that proves nothing.
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
  /** Null if the alert ended before it began, so that no incident was opened. */
  incidentId: z.string().nullable(),
  links: alertLinks,
  /** The notification group at the sender. */
  groupKey: z.string().nullable(),
  /** The sender whose token opened the alert; null if unknown. */
  sender: z.string().nullable(),
  /** The sender that ended the alert, if another sender opened the alert. */
  endedBy: z.string().nullable(),
  /** The sender's word for an end that proves nothing. `resolved` then means "quiet, unproven". */
  endReason: z.string().nullable(),
  /** The sender's newest word for a state that Nightshift does not know. */
  stateWord: z.string().nullable(),
  /** All fields that were read from the request body for this alert. */
  raw: z.unknown(),
})
export type ReceivedAlert = z.infer<typeof receivedAlert>

/** What would happen to one alert of a request body. Nothing is stored. */
export const explainedAlert = z.object({
  fingerprint: z.string(),
  status: z.enum(['firing', 'resolved']),
  name: z.string(),
  title: z.string(),
  type: z.string(),
  severity,
  /** The sender's word for the severity. Null if the severity is the default. */
  severityWord: z.string().nullable(),
  /** The resource as `kind:id`; null if no resource was found. */
  resource: z.string().nullable(),
  /** One sentence: which label named the resource, or why no resource was found. */
  why: z.string(),
  tried: z.array(
    z.object({ label: z.string(), name: z.string(), result: z.enum(['found', 'unknown', 'several', 'elsewhere']) }),
  ),
  candidates: z.array(z.string()),
  /** The effect that the alert would have. */
  becomes: z.enum(['opens', 'repeats', 'ends', 'unproven', 'heartbeat', 'nothing']),
  /** The incident that the alert would repeat or end. */
  incidentId: z.string().nullable(),
  groupKey: z.string().nullable(),
  notes: z.array(z.string()),
})
export type ExplainedAlert = z.infer<typeof explainedAlert>

/**
 * A label of alerts without a resource, whose values name known resources. A rule for the label
 * would give these alerts their resource.
 */
export const unmappedLabel = z.object({
  label: z.string(),
  kind: z.enum(inventoryKinds),
  /** How many alerts have a value of this label that names a known resource. */
  alerts: z.number().int(),
  /** How many resources the label names, and a few of their names. */
  things: z.number().int(),
  examples: z.array(z.object({ value: z.string(), resource: z.string() })),
  rule: z.string().describe('A rule in the form of `alert.resource_labels`.'),
  command: z.string().describe('The command that sets the existing rules and a rule for this label.'),
})
export type UnmappedLabel = z.infer<typeof unmappedLabel>
