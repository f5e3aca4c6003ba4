import { sql } from 'kysely'
import { isActiveAbout } from '../db/alerts/active-alerts.ts'
import { foldedAlerts } from '../db/alerts/occurrences.ts'
import type { Db } from '../db/connect.ts'
import { incidentsById } from '../db/incidents/incidents.ts'
import { systemScope } from '../db/scope.ts'
import type { Incident } from '../domain/incident.ts'
import { resourceKey } from '../domain/registry.ts'

/** Most alerts of each list; the newest are kept. */
const maxAlerts = 10

/** Lists an incident's alerts, each once, with its count and text. */
export async function ownAlerts(db: Db, incidentId: string) {
  return (await foldedAlerts(db, sql<boolean>`incident_id = ${incidentId}`, maxAlerts)).map((row) => ({
    name: row.name,
    status: row.status,
    labels: row.labels,
    annotations: row.annotations,
    startsAt: row.startsAt,
    ...(row.fired === null ? { count: row.count } : { fired: row.fired }),
    runbook: row.links.runbook,
  }))
}

/**
 * Lists alerts of other incidents about the same resource, firing or just ended, with the
 * incidents' runs.
 */
export async function otherAlerts(db: Db, { id, resource }: Incident) {
  if (!resource) return []
  const rows = await foldedAlerts(db, await isActiveAbout(db, resourceKey(resource), id), maxAlerts)
  const worked = await incidentsById(
    systemScope(db),
    rows.flatMap(({ incidentId }) => incidentId ?? []),
  )
  const workers = new Map(worked.map((each) => [each.id, each]))
  return rows.map(({ name, status, labels, startsAt, fired, incidentId }) => {
    const worker = incidentId === null ? undefined : workers.get(incidentId)
    return {
      ...{ name, status, labels, startsAt },
      ...(fired !== null && { fired }),
      workedOnBy: worker ? { incident: worker.id, status: worker.status, since: worker.createdAt } : null,
    }
  })
}
