import { createHash } from 'node:crypto'

export type Labels = Record<string, string>

/** One alert in the shape that Alertmanager posts. */
export type WebhookAlert = {
  status: 'firing' | 'resolved'
  labels: Labels
  annotations: Labels
  startsAt: string
  endsAt: string
  generatorURL: string
  fingerprint: string
}

export type WebhookBody = {
  version: '4'
  receiver: string
  status: 'firing' | 'resolved'
  groupKey: string
  truncatedAlerts: number
  groupLabels: Labels
  commonLabels: Labels
  commonAnnotations: Labels
  externalURL: string
  alerts: WebhookAlert[]
}

/** The label `monitor` of what a job sends that only ever says that something is wrong, and never that it is over. */
export const withoutEnds = 'cron-check'

/** Go's zero time: Alertmanager writes it while an alert fires. */
export const neverEnded = '0001-01-01T00:00:00Z'

/** Names an alert by its labels alone, whatever their order. */
export function fingerprintOf(labels: Labels): string {
  const hash = createHash('sha256')
  for (const name of Object.keys(labels).sort()) hash.update(`${name}\u0000${labels[name]}\u0000`)
  return hash.digest('hex').slice(0, 16)
}

/** One notification of a group: alerts of the same name. It is firing while any of them is. */
export function webhookBody(alertname: string, alerts: WebhookAlert[]): WebhookBody {
  return {
    receiver: 'nightshift',
    status: alerts.some(({ status }) => status === 'firing') ? 'firing' : 'resolved',
    alerts,
    groupLabels: { alertname },
    commonLabels: common(alerts.map(({ labels }) => labels)),
    commonAnnotations: common(alerts.map(({ annotations }) => annotations)),
    externalURL: 'http://lab.internal:9093',
    version: '4',
    groupKey: `{}:{alertname="${alertname}"}`,
    truncatedAlerts: 0,
  }
}

function common([first = {}, ...rest]: Labels[]): Labels {
  return Object.fromEntries(Object.entries(first).filter(([name, value]) => rest.every((each) => each[name] === value)))
}
