import type { Alert, ExplainedAlert } from '../../domain/alert.ts'
import type { AlertResource } from '../../domain/alert-resource.ts'
import { formatResourceSearch } from '../../domain/format.ts'
import { incidentTypeOf } from '../../domain/incident-type.ts'
import { resourceKey } from '../../domain/registry.ts'
import type { ResourceRule } from '../../domain/resource-rules.ts'
import { describeEndReason, describeStateWord } from '../../domain/unproven-end.ts'
import { cleanse } from '../../safety/redact.ts'
import type { Trx } from '../connect.ts'
import { findAlertResources } from '../inventory/resources.ts'
import { readSettings } from '../settings.ts'

/** Explains what alerts would do now. Uses the look-ups of ingest and stores nothing. */
export async function explainAlerts(trx: Trx, received: readonly Alert[]): Promise<ExplainedAlert[]> {
  const alerts = received.map((alert) => cleanse(alert))
  const settings = await readSettings(trx)
  const found = await findAlertResources(
    trx,
    alerts.map(({ labels }) => labels),
    settings.value<ResourceRule[]>('alert.resource_labels'),
  )
  const heartbeats = new Set(settings.value<string[]>('alert.heartbeats'))
  const open = await openOccurrences(trx, alerts)
  return alerts.map((alert, at) => {
    const about = found[at] as AlertResource
    const incidentId = open.get(`${alert.source}/${alert.fingerprint}`) ?? null
    return {
      fingerprint: alert.fingerprint,
      status: alert.status,
      name: alert.name,
      title: alert.title,
      type: incidentTypeOf(alert.labels, alert.name),
      severity: alert.severity,
      severityWord: alert.severityWord,
      resource: about.resource ? resourceKey(about.resource) : null,
      why: formatResourceSearch(about),
      tried: about.tried,
      candidates: about.candidates,
      becomes: whatBecomes(alert, heartbeats.has(alert.name), incidentId),
      incidentId,
      groupKey: alert.groupKey,
      notes: notesOf(alert),
    }
  })
}

async function openOccurrences(trx: Trx, alerts: readonly Alert[]): Promise<Map<string, string>> {
  if (alerts.length === 0) return new Map()
  const rows = await trx
    .selectFrom('alert')
    .select(['source', 'fingerprint', 'incidentId'])
    .where((where) =>
      where(
        where.refTuple('source', 'fingerprint'),
        'in',
        alerts.map(({ source, fingerprint }) => where.tuple(source, fingerprint)),
      ),
    )
    .where('status', 'in', ['firing', 'unknown'])
    .execute()
  return new Map(
    rows.flatMap(({ source, fingerprint, incidentId }) =>
      incidentId ? [[`${source}/${fingerprint}`, incidentId]] : [],
    ),
  )
}

function whatBecomes(alert: Alert, isHeartbeat: boolean, incidentId: string | null): ExplainedAlert['becomes'] {
  if (isHeartbeat) return 'heartbeat'
  if (incidentId && alert.endReason !== undefined) return 'unproven'
  if (alert.status === 'resolved') return incidentId ? 'ends' : 'nothing'
  return incidentId ? 'repeats' : 'opens'
}

function notesOf(alert: Alert): string[] {
  return [
    ...(alert.endReason === undefined ? [] : [`no end: ${describeEndReason(alert.endReason)}`]),
    ...(alert.stateWord === undefined ? [] : [describeStateWord(alert.stateWord)]),
    ...(alert.severitySource === 'default' ? ['no known severity, so warning by default'] : []),
    ...(alert.cappedFields.length > 0 ? [`shortened: ${alert.cappedFields.join(', ')}`] : []),
    ...(alert.truncatedAlerts > 0 ? [`its sender cut off ${alert.truncatedAlerts} alerts`] : []),
    ...(alert.timeNotes ?? []),
  ]
}
