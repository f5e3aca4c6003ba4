import { type Alert, maxWordChars, type ParsedAlerts } from '../domain/alert.ts'
import { maxAlerts } from '../domain/alert-body.ts'
import {
  capChars,
  capFields,
  endReasonOf,
  fieldText,
  fingerprintOf,
  identityOf,
  isFields,
  linkOf,
  maxAnnotationBytes,
  maxLabelBytes,
  maxNameChars,
  maxTitleChars,
  nameObject,
  nameOfShape,
  type RawFields,
  readBody,
  severityOf,
  severityTable,
  timesOf,
} from './fields.ts'

/**
 * Reads Alertmanager's webhook (version "4"). Returns as many alerts as were sent, or the reason
 * why none can be read. Never throws. Tolerates every fault except an unreadable list, because the
 * sender does not repeat a refused request.
 */
export function parseAlertmanager(bytes: Uint8Array, nowIso: string): ParsedAlerts {
  return parseGroup(bytes, (item, group) => readAlert(item, group, nowIso))
}

/** Reads a webhook in the shape of Alertmanager's. `read` reads each alert of the webhook. */
export function parseGroup(bytes: Uint8Array, read: (item: RawFields, group: RawFields) => Alert): ParsedAlerts {
  const body = readBody(bytes)
  if (!body.ok) return body
  const group = body.value
  if (!isFields(group)) return refuse(`the request body is ${nameOfShape(group)}, not an object`)
  if (!Array.isArray(group.alerts)) return refuse(`"alerts" is ${nameOfShape(group.alerts)}, not a list`)
  if (group.alerts.length > maxAlerts) {
    return refuse(
      `the request has ${group.alerts.length} alerts, and at most ${maxAlerts} are accepted: set max_alerts`,
    )
  }
  const alerts: Alert[] = []
  for (const [index, item] of group.alerts.entries()) {
    if (!isFields(item)) return refuse(`alerts[${index}] is ${nameOfShape(item)}, not an object`)
    alerts.push(read(item, group))
  }
  return { ok: true, alerts }
}

function refuse(reason: string): ParsedAlerts {
  return { ok: false, reason: `not an Alertmanager webhook: ${reason}` }
}

/** Reads one alert of the list. A missing or unreadable field is left out. */
export function readAlert(item: RawFields, group: RawFields, nowIso: string): Alert {
  const rawLabels = isFields(item.labels) ? item.labels : {}
  const rawAnnotations = isFields(item.annotations) ? item.annotations : {}
  const labels = capFields('labels', rawLabels, maxLabelBytes)
  const annotations = capFields('annotations', rawAnnotations, maxAnnotationBytes)
  const capped = [...labels.capped, ...annotations.capped]

  const rawName = fieldText(rawLabels, 'alertname') ?? 'unknown'
  const name = capChars(rawName, maxNameChars)
  if (name !== rawName) capped.push('name')

  const instance = fieldText(rawLabels, 'instance')
  const rawTitle = fieldText(rawAnnotations, 'summary') ?? (instance ? `${name} on ${instance}` : name)
  const title = nameObject(capChars(rawTitle, maxTitleChars), rawLabels)
  if (rawTitle.length > maxTitleChars) capped.push('title')

  // Uses the status of the alert. The status of the group is "firing" while any of its alerts
  // fires. An unknown word counts as firing and is noted on the alert.
  const word = fieldText(item, 'status')?.trim()
  const status = word?.toLowerCase() === 'resolved' ? 'resolved' : 'firing'
  const isKnown = word === undefined || ['resolved', 'firing'].includes(word.toLowerCase())
  const fingerprint = fieldText(item, 'fingerprint')
  const groupKey = fieldText(group, 'groupKey')
  return {
    source: 'alertmanager',
    fingerprint: fingerprint ? identityOf(fingerprint) : fingerprintOf(rawLabels),
    status,
    ...(!isKnown && { stateWord: capChars(word, maxWordChars) }),
    name,
    ...severityOf(fieldText(rawLabels, 'severity'), severities),
    title,
    labels: labels.fields,
    annotations: annotations.fields,
    ...timesOf({ startsAt: item.startsAt, endsAt: item.endsAt }, status, nowIso),
    ...endReasonOf(status, rawAnnotations),
    links: {
      generator: linkOf(item.generatorURL),
      external: linkOf(group.externalURL),
      runbook: linkOf(rawAnnotations.runbook_url) ?? linkOf(rawAnnotations.runbook),
    },
    groupKey: groupKey ? identityOf(groupKey) : null,
    truncatedAlerts: countOf(group.truncatedAlerts),
    cappedFields: capped,
  }
}

function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? Math.min(value, 2 ** 31 - 1) : 0
}

/** Severity words from published rule files. Prometheus itself defines no severities. */
const severities = severityTable({
  critical:
    'critical crit error err high major page fatal emergency emerg alert disaster severe urgent blocker p0 p1 sev0 sev1 s1',
  warning: 'warning warn medium moderate minor average ticket p2 p3 sev2 sev3 s2 s3',
  info: 'info information informational low notice debug none ok normal trivial p4 p5 sev4 sev5 s4',
})
