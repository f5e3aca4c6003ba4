import type { Alert } from './alert.ts'

/**
 * An alert that always fires so that its end is noticed, such as Prometheus' `Watchdog`. While the
 * alert fires, it opens no incident. An incident opens when the alert stops.
 */
export type Heartbeat = {
  source: string
  fingerprint: string
  name: string
  labels: Record<string, string>
  lastSeenAt: string
  /** How many request bodies contained this heartbeat alert. */
  sights: number
  /** The longest time between two messages of this heartbeat. */
  longestGapSeconds: number
}

/** How many messages of a heartbeat are needed before its longest gap counts as known. */
const sightsToLearn = 3

/** Minimum seconds of silence before an incident opens. The restart of a sender takes less time. */
const minSilenceSeconds = 300

/**
 * Returns the seconds of silence after which an incident opens: the configured seconds, otherwise
 * twice the longest gap so far. Null while the longest gap is unknown. Some senders repeat every
 * minute and others twice a day, so no fixed number suits all.
 */
export function allowedSilenceSeconds(
  { sights, longestGapSeconds }: Pick<Heartbeat, 'sights' | 'longestGapSeconds'>,
  configuredSeconds: number | null,
): number | null {
  if (configuredSeconds !== null) return configuredSeconds
  return sights < sightsToLearn ? null : Math.max(minSilenceSeconds, 2 * longestGapSeconds)
}

/**
 * Builds the alert about a heartbeat's silence: `firing` when the heartbeat stops, `resolved` when
 * the heartbeat returns.
 */
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
    title: `No heartbeat from ${source}: ${name} last came at ${lastSeenAt.slice(0, 16).replace('T', ' ')} UTC`.slice(
      0,
      300,
    ),
    labels: { ...kept, alertname: 'heartbeat_stopped', heartbeat: name },
    annotations: {
      summary: `${name} should always fire, but its sender has stopped sending it. Other alerts may not arrive either.`,
    },
    startsAt: lastSeenAt,
    endsAt: status === 'resolved' ? now : null,
    links: { generator: null, external: null, runbook: null },
    groupKey: null,
    truncatedAlerts: 0,
    cappedFields: [],
  }
}
