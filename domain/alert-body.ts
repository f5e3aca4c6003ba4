import { formatMinute, formatSpan } from './format.ts'
import { inertText } from './inert-text.ts'

/** Formats of alerts. Each format is received at `POST /ingest/{dialect}`. */
export const alertDialects = [
  ...(['alertmanager', 'grafana', 'generic'] as const),
  ...(['pagerduty', 'uptime-kuma', 'zabbix', 'cloudwatch', 'proxmox'] as const),
]

/** Limits of a request body that is read at once. A worker reads a larger body later. */
export const maxAlertsAtOnce = 1_000
export const maxBytesAtOnce = 1024 * 1024
/**
 * The largest number of alerts in a request body. An alert of Alertmanager takes at least a third
 * of a kilobyte.
 */
export const maxAlerts = 50_000
export const maxAlertBytes = 16 * 1024 * 1024

/**
 * How many large bodies one process reads at once. Reading a body of 16 MiB takes six times its
 * size in memory.
 */
export const maxLargeAtOnce = 3

/** The refused request bodies of a known sender: the newest one, and `count` for all of them. */
export type RefusedBody = {
  sender: string
  dialect: string
  code: string
  reason: string
  count: number
  lastAt: string
}

/**
 * A guess at the format of a refused body. `mapping`: the fields of the body that correspond to
 * fields of the format `generic`.
 */
export type BodyHint = {
  nearest: { dialect: string; has: string[]; missing: string[] } | null
  mapping: { field: string; path: string; value: string }[]
}

/**
 * Returns a sentence that names the most similar dialect; an empty text if no dialect is similar.
 */
export function describeNearest({ nearest }: Pick<BodyHint, 'nearest'>): string {
  if (!nearest) return ''
  const { dialect, has, missing } = nearest
  if (missing.length === 0) return ` The body has the format ${dialect}: send the body to /ingest/${dialect}.`
  return ` The nearest dialect is ${dialect}: the body has ${has.join(', ')}, but no ${missing.join(', ')}.`
}

const remedies: Record<string, string> = {
  TOO_LARGE: `At most ${maxAlertBytes / 1024 / 1024} MiB and ${maxAlerts} alerts fit in one request: set max_alerts, or group by more labels.`,
  UNSUPPORTED_MEDIA_TYPE: 'Send Content-Type: application/json.',
  UNSUPPORTED_CONTENT_ENCODING: 'Send the body uncompressed.',
  NOT_FOUND: `Send to one of /ingest/${alertDialects.join(', ')}.`,
  NOT_PROVEN: 'Set the same secret in Nightshift and at the sender.',
  TOO_OLD: 'Only messages of the last two hours are accepted.',
  UNCONFIRMED:
    '"nightshift ingest topics" lists the topic, and "nightshift ingest confirm-topic ID" accepts its alarms.',
  UNSTORABLE: 'The other alerts of the request are stored.',
}
const anyForm =
  'If the sender supports templates, send {"summary": "…", "dedup": "…", "severity": "…", "action": "trigger"} to /ingest/generic. "nightshift ingest test FILE" tests a body.'

/** Describes in one sentence what was refused, and in another sentence what would be accepted. */
export function describeRefusedBody({ sender, dialect, code, reason, count, lastAt }: RefusedBody): string {
  const bodies = count === 1 ? 'A request' : `${count} requests`
  const last = count === 1 ? `at ${formatMinute(lastAt)}` : `the last at ${formatMinute(lastAt)}`
  return `${bodies} of ${inertText(sender, 100)} (${inertText(dialect, 40)}) within a day ${count === 1 ? 'was' : 'were'} refused, ${last}: ${inertText(reason, 200)} ${remedies[code] ?? anyForm}`
}

/**
 * Large request bodies that wait for a worker, and how many of their alerts are not processed yet.
 * `idleSeconds`: the time since a worker last processed one of these alerts.
 */
export type WaitingBodies = { bodies: number; alerts: number; oldestSeconds: number; idleSeconds: number }

export function describeWaiting({ bodies, alerts, oldestSeconds }: WaitingBodies): string {
  const waiting = bodies === 1 ? '1 large body waits' : `${bodies} large bodies wait`
  return `${waiting} for a worker: ${alerts} alerts, the oldest for ${formatSpan(oldestSeconds * 1_000)}.`
}
