import type { Alert, ParsedAlerts } from '../domain/alert.ts'
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
import { noSiteWords, type SiteWords, stateOf } from './state-words.ts'

/**
 * Reads alerts that people post from a script, one object or a list:
 *
 *   { summary, details?, action?: "trigger" | "close", dedup?, severity?, labels?, meta?, name?, title? }
 *   { alert_uid, title, state: "alerting" | "ok", message?, link_to_upstream_details?, image_url? }
 *
 * Never throws. Each alert needs a text: a summary, title, name or message.
 */
export function parseGeneric(bytes: Uint8Array, nowIso: string, site = noSiteWords): ParsedAlerts {
  const body = readBody(bytes)
  if (!body.ok) return body
  const items = Array.isArray(body.value) ? body.value : [body.value]
  if (items.length > maxAlerts)
    return refuse(`the request has ${items.length} alerts, and at most ${maxAlerts} are accepted`)
  const alerts: Alert[] = []
  for (const [index, item] of items.entries()) {
    const where = Array.isArray(body.value) ? `item ${index}` : 'the body'
    if (!isFields(item)) return refuse(`${where} is ${nameOfShape(item)}, not an object`)
    const words = ['summary', 'title', 'name', 'message'].filter((name) => fieldText(item, name) !== null)
    if (words.length === 0) {
      const hint = Array.isArray(item.alerts) ? ' (the request has "alerts": should its dialect be alertmanager?)' : ''
      return refuse(`${where} has no "summary", "title", "name" or "message"${hint}`)
    }
    alerts.push(readAlert(item, nowIso, site))
  }
  return { ok: true, alerts }
}

function refuse(reason: string): ParsedAlerts {
  return { ok: false, reason: `not a generic alert: ${reason}` }
}

function readAlert(item: RawFields, nowIso: string, site: SiteWords): Alert {
  const rawLabels = isFields(item.labels) ? item.labels : {}
  const spoken = {
    summary: fieldText(item, 'summary'),
    description: fieldText(item, 'details') ?? fieldText(item, 'message'),
    image_url: fieldText(item, 'image_url'),
  }
  // Fields of the alert itself override fields in `meta`.
  const rawAnnotations: RawFields = isFields(item.meta) ? { ...item.meta } : {}
  for (const [name, text] of Object.entries(spoken)) if (text !== null) rawAnnotations[name] = text
  const labels = capFields('labels', rawLabels, maxLabelBytes)
  const annotations = capFields('annotations', rawAnnotations, maxAnnotationBytes)
  const capped = [...labels.capped, ...annotations.capped]

  const heading = fieldText(item, 'title') ?? spoken.summary
  const rawName =
    fieldText(item, 'name') ?? fieldText(rawLabels, 'alertname') ?? heading ?? fieldText(item, 'message') ?? 'unknown'
  const name = capChars(rawName, maxNameChars)
  if (name !== rawName) capped.push('name')

  const instance = fieldText(rawLabels, 'instance')
  const rawTitle = heading ?? (instance ? `${name} on ${instance}` : name)
  const title = nameObject(capChars(rawTitle, maxTitleChars), rawLabels)
  if (rawTitle.length > maxTitleChars) capped.push('title')

  const word = fieldText(item, 'action') ?? fieldText(item, 'state') ?? fieldText(item, 'status')
  const state = stateOf(word, item, site)
  const identity = fieldText(item, 'dedup') ?? fieldText(item, 'alert_uid')
  return {
    source: 'generic',
    // Leaves out the details, because they differ between a firing alert and the end of this alert.
    fingerprint: identity ? identityOf(identity) : fingerprintOf(rawLabels, rawName, heading),
    ...endReasonOf(state.status, rawAnnotations),
    ...state,
    name,
    ...severityOf(fieldText(item, 'severity') ?? fieldText(rawLabels, 'severity'), severities),
    title,
    labels: labels.fields,
    annotations: annotations.fields,
    ...timesOf({ startsAt: item.startsAt, endsAt: item.endsAt }, state.status, nowIso),
    links: {
      generator: linkOf(item.link_to_upstream_details) ?? linkOf(item.link),
      external: null,
      runbook: linkOf(rawAnnotations.runbook_url),
    },
    groupKey: null,
    truncatedAlerts: 0,
    cappedFields: capped,
  }
}

/**
 * Severity words of tools whose alerts people post by script: Zabbix, Proxmox, Icinga, syslog,
 * PagerDuty, Datadog.
 */
const severities = severityTable({
  critical:
    'critical crit error err high major page fatal emergency emerg panic alert disaster severe urgent down p0 p1 sev0 sev1 s1',
  warning: 'warning warn medium moderate minor average degraded unknown p2 p3 sev2 sev3 s2 s3',
  info: 'info information informational low notice debug none ok up normal trivial p4 p5 sev4 sev5 s4',
})
