import { type IncidentStatus, incidentActions } from '../../domain/incident.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import { trustLostType } from '../../domain/trust.ts'
import { now } from '../clock.ts'
import type { Trx } from '../connect.ts'
import { stillOpen } from './close-incident.ts'
import { lockIncident, NotAllowedError } from './incidents.ts'

/** Reopens a closed incident for its next attempt. The queue takes it like a new incident. */
export async function reopenIncident(trx: Trx, id: string): Promise<void> {
  const row = await lockIncident(trx, id)
  if (!row) return
  const isForPeople = row.type === manualChangeType || row.type === trustLostType
  // Refuses a person's own write, and a problem of Nightshift itself: neither can be investigated,
  // and no write may be done twice.
  if (isForPeople || !(incidentActions.investigate as IncidentStatus[]).includes(row.status)) {
    throw new NotAllowedError(id, 'investigate', row.status)
  }
  await trx
    .updateTable('incident')
    .set({
      status: 'open',
      assignedTo: null,
      role: null,
      groupId: null,
      queuedAt: null,
      resolution: null,
      closedAt: null,
      reopened: row.reopened + 1,
      ...stillOpen,
      updatedAt: now,
    })
    .where('id', '=', id)
    .execute()
}
