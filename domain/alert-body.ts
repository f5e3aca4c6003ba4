import { formatMinute, formatSpan } from './format.ts'
import { inertText } from './inert-text.ts'

/** Forms of a body that alerts come in by, each at `POST /ingest/{dialect}`. */
export const alertDialects = [
  ...(['alertmanager', 'grafana', 'generic'] as const),
  ...(['pagerduty', 'uptime-kuma', 'zabbix', 'cloudwatch', 'proxmox'] as const),
]

/** A body with more alerts or bytes than this is stored, and taken up by a worker. */
export const maxAlertsAtOnce = 1_000
export const maxBytesAtOnce = 1024 * 1024
/** What Alertmanager sends of an alert is a third of a kilobyte at least: this many fill a body. */
export const maxAlerts = 50_000
export const maxAlertBytes = 16 * 1024 * 1024

/**
 * Bodies beyond that which one process reads at once: 16 MiB take six times as much while they are
 * read.
 */
export const maxLargeAtOnce = 3

/** What a known sender sends for nothing: the newest of it, and how many. */
export type RefusedBody = {
  sender: string
  dialect: string
  code: string
  reason: string
  count: number
  lastAt: string
}

/** A guess at a refused body. `mapping`: which of its fields `generic` would call what. */
export type BodyHint = {
  nearest: { dialect: string; has: string[]; missing: string[] } | null
  mapping: { field: string; path: string; value: string }[]
}

/** The nearest dialect in a sentence; empty where none is near. */
export function describeNearest({ nearest }: Pick<BodyHint, 'nearest'>): string {
  if (!nearest) return ''
  const { dialect, has, missing } = nearest
  if (missing.length === 0) return ` It is a body of ${dialect}: send it to /ingest/${dialect}.`
  return ` Nearest is ${dialect}: it has ${has.join(', ')}, and no ${missing.join(', ')}.`
}

const remedies: Record<string, string> = {
  TOO_LARGE: `At most ${maxAlertBytes / 1024 / 1024} MiB and ${maxAlerts} alerts are taken in one body: set max_alerts, or group by more labels.`,
  UNSUPPORTED_MEDIA_TYPE: 'Accepted is Content-Type: application/json.',
  UNSUPPORTED_CONTENT_ENCODING: 'Accepted is a body that is not compressed.',
  NOT_FOUND: `Accepted are /ingest/${alertDialects.join(', ')}.`,
  NOT_PROVEN: 'Set the same secret at both ends.',
  TOO_OLD: 'Messages of the last two hours are taken.',
  UNCONFIRMED: '"nightshift ingest topics" lists it, and "nightshift ingest confirm-topic ID" takes its alarms.',
  UNSTORABLE: 'The other alerts of the body are stored.',
}
const anyForm =
  'Where the sender has a template, {"summary": "…", "dedup": "…", "severity": "…", "action": "trigger"} is accepted at /ingest/generic; "nightshift ingest test FILE" tries a body.'

/** One sentence of what is refused, and one of what would be accepted. */
export function describeRefusedBody({ sender, dialect, code, reason, count, lastAt }: RefusedBody): string {
  const bodies = count === 1 ? 'A body' : `${count} bodies`
  const last = count === 1 ? `at ${formatMinute(lastAt)}` : `the last at ${formatMinute(lastAt)}`
  return `${bodies} of ${inertText(sender, 100)} (${inertText(dialect, 40)}) within a day ${count === 1 ? 'was' : 'were'} refused, ${last}: ${inertText(reason, 200)} ${remedies[code] ?? anyForm}`
}

/**
 * Bodies that wait for a worker, with the alerts left in them. `idleSeconds`: since a part was
 * taken up.
 */
export type WaitingBodies = { bodies: number; alerts: number; oldestSeconds: number; idleSeconds: number }

export function describeWaiting({ bodies, alerts, oldestSeconds }: WaitingBodies): string {
  const waiting = bodies === 1 ? '1 large body waits' : `${bodies} large bodies wait`
  return `${waiting} to be taken up by a worker, ${alerts} alerts, the oldest for ${formatSpan(oldestSeconds * 1_000)}.`
}
