import type { Alert } from '../domain/alert.ts'
import type { NewEvent } from '../domain/event.ts'
import { newId } from '../domain/id.ts'
import { incidentTypeOf } from '../domain/incident.ts'
import { type InvestigateFilter, keptReasonOf } from '../domain/investigate-filter.ts'
import { alertEvent, storeAlerts } from './alert-rows.ts'
import { firstRows, insertRows } from './append.ts'
import type { Trx } from './connect.ts'
import { hasDestination } from './deliveries.ts'
import { announceCritical, insertIncidents } from './incidents.ts'
import { resourcesOfLabels } from './inventory.ts'
import { keptEvent } from './queue.ts'
import { readSettings } from './settings.ts'
import { done, type Ingested } from './take-alert.ts'
import { databaseTime } from './time.ts'

/**
 * Opens an incident for each of these alerts, a statement a table. The caller holds the locks of their fingerprints, and knows that
 * each is seen for the first time and that nobody expects it: so there is no earlier incident, attempt or look to weigh.
 */
export async function openAll(trx: Trx, alerts: readonly Alert[]): Promise<Ingested[]> {
  const settings = await readSettings(trx)
  const resources = await resourcesOfLabels(
    trx,
    alerts.map(({ labels }) => labels),
  )
  const at = await databaseTime(trx)
  const opened = alerts.map((alert, index) => {
    const id = newId('inc')
    const type = incidentTypeOf(alert.labels, alert.name)
    const filter = settings.value<InvestigateFilter>('agent.investigate', type)
    const keptReason = keptReasonOf(filter, alert)
    const events: NewEvent[] = [alertEvent(alert, 'opened', 1)]
    if (keptReason !== null) events.push(keptEvent(keptReason))
    const { severity, severitySource, title } = alert
    const incident = { type, severity, severitySource, title, requestedBy: null, resource: resources[index] ?? null }
    return { id, alert, keptReason, incident, rows: firstRows(id, at, events) }
  })
  await insertIncidents(
    trx,
    opened.map(({ id, incident, keptReason, rows }) => ({
      ...{ id, keptReason, ...incident },
      log: { nextSeq: rows.length + 1, headHash: rows.at(-1)!.hash, at },
    })),
  )
  await storeAlerts(
    trx,
    opened.map(({ id, alert }) => ({ alert, incidentId: id })),
  )
  await insertRows(
    trx,
    opened.flatMap(({ rows }) => rows),
  )
  if (await hasDestination(trx, 'critical'))
    for (const { id } of opened.filter(isCritical)) await announceCritical(trx, id)
  return opened.map(({ alert, id }) => done(alert, id, 'opened', { wakesQueue: true, tellRun: null }))
}

const isCritical = ({ alert }: { alert: Alert }): boolean => alert.severity === 'critical'
