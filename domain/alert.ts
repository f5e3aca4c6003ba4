import { z } from 'zod'
import { severity } from './incident.ts'
import { type InventoryKind, idPattern } from './kinds.ts'
import { inventoryKind } from './registry.ts'

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

/**
 * An alert that always fires, so that somebody notices when it stops: Prometheus' `Watchdog`, a dead man's switch. As long as it comes
 * it is no incident; its silence is one.
 */
export type Heartbeat = {
  source: string
  fingerprint: string
  name: string
  labels: Record<string, string>
  lastSeenAt: string
  /** Bodies that carried it. */
  sights: number
  /** Between two of them, at most. */
  longestGapSeconds: number
}

/** A gap is known from here on. */
const sightsToLearn = 3
/** More than a sender that was restarted takes. */
const leastSilenceSeconds = 300

/**
 * How long it may be silent, in seconds: as configured, else twice the longest gap so far. Null: not known yet. Senders repeat it
 * every minute or twice a day, so that no single number is right for all.
 */
export function allowedSilenceSeconds(
  { sights, longestGapSeconds }: Pick<Heartbeat, 'sights' | 'longestGapSeconds'>,
  configuredSeconds: number | null,
): number | null {
  if (configuredSeconds !== null) return configuredSeconds
  return sights < sightsToLearn ? null : Math.max(leastSilenceSeconds, 2 * longestGapSeconds)
}

/** The alert that stands for a heartbeat's silence: firing when it stops, resolved when it is heard again. */
export function silenceAlert(beat: Heartbeat, status: Alert['status'], now: string): Alert {
  const { source, fingerprint, name, labels, lastSeenAt } = beat
  const { severity: _, ...kept } = labels
  return {
    source,
    fingerprint: `heartbeat/${fingerprint}`.slice(0, 200),
    status,
    name: 'heartbeat_stopped',
    severity: 'critical',
    severitySource: 'alert',
    severityWord: 'critical',
    title: `No heartbeat from ${source}: ${name} came last at ${lastSeenAt.slice(0, 16).replace('T', ' ')} UTC`.slice(
      0,
      300,
    ),
    labels: { ...kept, alertname: 'heartbeat_stopped', heartbeat: name },
    annotations: {
      summary: `${name} fires always, and its sender has stopped sending it: other alerts may not arrive either.`,
    },
    startsAt: lastSeenAt,
    endsAt: status === 'resolved' ? now : null,
    links: { generator: null, external: null, runbook: null },
    groupKey: null,
    truncatedAlerts: 0,
    cappedFields: [],
  }
}

/** How a stored alert stands. `unknown`: its sender fell silent, or ended many at once. */
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
  /** Everything that was read from what the source sent. */
  raw: z.unknown(),
})
export type ReceivedAlert = z.infer<typeof receivedAlert>

export const expectationSubject = z.enum(['alert', 'resource', 'type'])

/** A mark of what is expected, as the API lists it. */
export const expectation = z.object({
  id: z.string(),
  subject: expectationSubject,
  about: z.string(),
  until: z.string(),
  reason: z.string(),
  /** What was true when it was marked. */
  state: z.record(z.string(), z.unknown()),
  createdBy: z.string(),
  createdAt: z.string(),
  endedAt: z.string().nullable(),
  inForce: z.boolean(),
})
export type Expectation = z.infer<typeof expectation>

const fiveMinutesMs = 300_000
/** Both stamps this close to their receipt: the sender stamps the time of sending. */
const stampedAtSendingMs = 10_000

/** What a body says of its alert's time, and what the stored occurrence knows. */
export type SeenAlert = {
  /** As the sender gave it; null when it gave none, or one that cannot be believed. */
  startsAtMs: number | null
  receivedAtMs: number
}
export type StoredOccurrence = {
  startsAtMs: number
  isStartGiven: boolean
  /** Bodies that carried this very start. */
  startSeen: number
  startReceivedAtMs: number
  lastSeenMs: number
}

/**
 * Is a firing body a new occurrence of an alert that fires already? Only where its sender gave a start that differs from the
 * stored one and lies after the last sight. A start that we filled in starts none, and neither does one that the sender
 * stamps on every body.
 */
export function isNewOccurrence(seen: SeenAlert, stored: StoredOccurrence): boolean {
  if (seen.startsAtMs === null || !stored.isStartGiven) return false
  if (seen.startsAtMs === stored.startsAtMs || seen.startsAtMs <= stored.lastSeenMs) return false
  const stampsSending =
    stored.startSeen === 1 &&
    Math.abs(stored.startReceivedAtMs - stored.startsAtMs) <= stampedAtSendingMs &&
    Math.abs(seen.receivedAtMs - seen.startsAtMs) <= stampedAtSendingMs
  return !stampsSending
}

/** Does an end belong to the stored occurrence? One that is older than it, or ends before its own start, ends nothing. */
export function endsOccurrence(end: SeenAlert & { endsAtMs: number | null }, stored: StoredOccurrence): boolean {
  const { startsAtMs, endsAtMs } = end
  if (startsAtMs !== null && endsAtMs !== null && endsAtMs < startsAtMs) return false
  if (!stored.isStartGiven) return true
  if (startsAtMs !== null && startsAtMs < stored.startsAtMs) return false
  return endsAtMs === null || endsAtMs >= stored.startsAtMs
}

/** A time of a sender that lies further ahead than its clock may be wrong. */
export function isInFuture(timeMs: number, receivedAtMs: number): boolean {
  return timeMs > receivedAtMs + fiveMinutesMs
}

/** More ends than this within a minute, and more than half of a sender's firing alerts: it is the sender that changed. */
export const massEndLimit = 20

export function isMassEnd(counts: { endsInMinute: number; firingBefore: number }): boolean {
  return counts.endsInMinute > massEndLimit && counts.endsInMinute * 2 > counts.firingBefore
}

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
  becomes: z.enum(['opens', 'repeats', 'ends', 'heartbeat', 'nothing']),
  /** The incident that it repeats or ends. */
  incidentId: z.string().nullable(),
  groupKey: z.string().nullable(),
  notes: z.array(z.string()),
})
export type ExplainedAlert = z.infer<typeof explainedAlert>

/**
 * `label=before*after -> kind:id`, where `*` in the id stands for what the star of the pattern matched. `after` null: the value is
 * exactly `before`.
 */
export type ResourceRule = { label: string; before: string; after: string | null; kind: InventoryKind; id: string }

type ParsedRules = { ok: true; rules: ResourceRule[] } | { ok: false; reason: string }

const form = /^([A-Za-z_][A-Za-z0-9_]*)\s*(?:=\s*(\S+))?\s*->\s*([a-z_]+):(\S+)$/

/**
 * A site's own labels, as the setting `alert.resource_labels` holds them, one rule a semicolon or line:
 *
 *   app_host -> node:*
 *   customer=eu-* -> tenant:*
 */
export function parseResourceRules(text: string): ParsedRules {
  const rules: ResourceRule[] = []
  for (const line of text.split(/[;\n]/).map((each) => each.trim())) {
    if (line === '') continue
    const [, label = '', pattern = '*', kind = '', id = ''] = form.exec(line) ?? []
    const known = inventoryKind.safeParse(kind)
    if (label === '') return { ok: false, reason: `${quote(line)} is not of the form label=pattern -> kind:id` }
    if (!known.success) return { ok: false, reason: `${quote(kind)} is no kind: ${inventoryKind.options.join(', ')}` }
    const [before = '', after = null, ...more] = pattern.split('*')
    if (more.length > 0) return { ok: false, reason: `${quote(pattern)} holds more than one *` }
    if (!idPattern.test(id.replace('*', 'x'))) return { ok: false, reason: `${quote(id)} is no id` }
    if (after === null && id.includes('*'))
      return { ok: false, reason: `${quote(line)}: nothing stands for the * of ${id}` }
    rules.push({ label, before, after, kind: known.data, id })
  }
  return { ok: true, rules }
}

const quote = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 79)}…` : text)
