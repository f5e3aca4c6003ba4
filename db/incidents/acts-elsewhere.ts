import { systemActor } from '../../domain/event.ts'
import type { Trx } from '../connect.ts'
import { append } from '../log/append.ts'
import type { Person } from './close-incident.ts'
import { lockIncident } from './incidents.ts'

/** What a person did to our page at PagerDuty. `said`: as PagerDuty names who it was; `by`: who that is here, where it is known. */
type ActElsewhere = { act: 'acknowledged' | 'resolved'; by: Person | null; said: string }

/**
 * Writes it into the incident's log. Nothing follows from a resolution: it approves and ends nothing here. Not news is what our own event
 * brought about there: that somebody has it, or that it is over. An acknowledgement may take the incident, but not while it asks: who
 * silences the page of a question has not answered it, and taking the incident would take the question back.
 */
export async function noteActElsewhere(
  trx: Trx,
  incidentId: string,
  { act, by, said }: ActElsewhere,
): Promise<{ isNews: boolean; mayBeTaken: boolean; text: string }> {
  const row = await lockIncident(trx, incidentId)
  if (!row) return { isNews: false, mayBeTaken: false, text: 'there is no such incident' }
  const isOver = row.status === 'resolved' || row.status === 'cancelled'
  if (isOver || (act === 'acknowledged' && row.ownerId !== null)) {
    const text = isOver ? `the incident is ${row.status} already` : 'somebody has the incident already'
    return { isNews: false, mayBeTaken: false, text }
  }
  const isAsked = row.status === 'awaiting_approval'
  const who = by ? by.name : said
  const text =
    act === 'resolved'
      ? `${who} resolved it at PagerDuty: noted, and nothing is closed or decided here by that`
      : `${who} acknowledged it at PagerDuty${isAsked ? ': the question still waits for an answer' : ''}`
  const code = act === 'resolved' ? 'resolved_elsewhere' : 'acknowledged_elsewhere'
  await append(trx, incidentId, null, {
    kind: 'noted',
    actor: by?.actor ?? systemActor,
    detail: text,
    metadata: { code, text },
  })
  return { isNews: true, mayBeTaken: !isAsked, text }
}
