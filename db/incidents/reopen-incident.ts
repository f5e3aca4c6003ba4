import { type IncidentStatus, incidentActions } from '../../domain/incident.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import { trustLostType } from '../../domain/trust.ts'
import { now } from '../clock.ts'
import type { Trx } from '../connect.ts'
import { stillOpen } from './close-incident.ts'
import { lockIncident, NotAllowedError } from './incidents.ts'

/** Opens a closed incident again for its next attempt; the queue takes it up like a new one. */
export async function reopenIncident(trx: Trx, id: string): Promise<void> {
  const row = await lockIncident(trx, id)
  if (!row) return
  const isForPeople = row.type === manualChangeType || row.type === trustLostType
  // A person did it, or it is about ourselves: nothing to investigate, and nothing done twice.
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
