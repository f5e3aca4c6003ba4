import type { Incident } from '../../domain/incident.ts'
import { now } from '../clock.ts'
import type { Trx } from '../connect.ts'
import { append } from '../log/append.ts'
import { announceCritical, incidentById, lockIncident, type NewIncident, openedAs, openIncident } from './incidents.ts'
import { reopenIncident } from './reopen-incident.ts'

/**
 * The person who requests an investigation, shown in the timeline. This person may not approve
 * critical actions of the run.
 */
type Requester = { actor: string; operatorId: string | null }

/** Opens an incident for a person, with the person's text as its first row. */
export async function openByHand(
  trx: Trx,
  incident: Omit<NewIncident, 'requestedBy' | 'severitySource'>,
  text: string,
  by: Requester,
): Promise<Incident> {
  const opened = await openIncident(trx, { ...incident, severitySource: 'person', requestedBy: by.operatorId })
  await announceCritical(trx, opened.id)
  await append(trx, opened.id, null, {
    kind: 'commented',
    actor: by.actor,
    detail: text,
    metadata: { text, confidence: null, action: 'opened', opened: openedAs(opened) },
  })
  return (await incidentById(trx, opened.id)) as Incident
}

/** Queues an incident that the setting `agent.investigate` had left to people. */
async function releaseKept(trx: Trx, id: string): Promise<void> {
  await trx
    .updateTable('incident')
    .set({ keptReason: null, lookWanted: null, lookWantedAt: null, expectationId: null })
    .where('id', '=', id)
    .execute()
}

/**
 * Queues an incident for another investigation. The person is recorded as the one who requested the
 * run.
 */
export async function investigateAgain(trx: Trx, id: string, by: Requester): Promise<void> {
  const row = await lockIncident(trx, id)
  if (row?.status === 'open' && row.keptReason !== null) await releaseKept(trx, id)
  else await reopenIncident(trx, id)
  await trx.updateTable('incident').set({ requestedBy: by.operatorId, updatedAt: now }).where('id', '=', id).execute()
  await append(trx, id, null, {
    kind: 'commented',
    actor: by.actor,
    detail: 'Asked for an investigation',
    metadata: { text: 'Asked for an investigation', confidence: null, action: 'investigate_requested' },
  })
}
