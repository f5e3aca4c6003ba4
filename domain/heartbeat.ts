import type { Alert } from './alert.ts'

/**
 * An alert that always fires, so that its end is noticed: Prometheus' `Watchdog`, a dead man's
 * switch. It opens no incident; its silence does.
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
const minSilenceSeconds = 300

/**
 * Seconds of silence that are allowed: as configured, else twice the longest gap so far. Null: not
 * known yet. Senders repeat it every minute or twice a day, and no single number fits all.
 */
export function allowedSilenceSeconds(
  { sights, longestGapSeconds }: Pick<Heartbeat, 'sights' | 'longestGapSeconds'>,
  configuredSeconds: number | null,
): number | null {
  if (configuredSeconds !== null) return configuredSeconds
  return sights < sightsToLearn ? null : Math.max(minSilenceSeconds, 2 * longestGapSeconds)
}

/** The alert for a heartbeat's silence: firing when it stops, resolved when it is heard again. */
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
