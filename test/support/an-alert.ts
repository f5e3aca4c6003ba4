import type { Alert } from '../../domain/alert.ts'

let fingerprints = 0

export function anAlert(change: Partial<Alert> = {}): Alert {
  fingerprints += 1
  return {
    source: 'alertmanager',
    fingerprint: `fp-${fingerprints}`,
    status: 'firing',
    name: 'disk_pressure',
    severity: 'warning',
    severitySource: 'alert',
    severityWord: 'warning',
    title: 'Disk 96% full',
    labels: { alertname: 'disk_pressure' },
    annotations: {},
    startsAt: '2026-11-21T01:00:00Z',
    endsAt: null,
    links: { generator: null, external: null, runbook: null },
    groupKey: null,
    truncatedAlerts: 0,
    cappedFields: [],
    ...change,
  }
}
