import { systemActor } from '../../domain/event.ts'
import type { Trx } from '../connect.ts'
import { append } from '../log/append.ts'
import type { Person } from './close-incident.ts'
import { lockIncident } from './incidents.ts'

/** An act on our page at PagerDuty. `said`: the person's name there; `by`: the person here. */
type ActElsewhere = { act: 'acknowledged' | 'resolved'; by: Person | null; said: string }

/**
 * Writes it into the incident's log. A resolution there approves and ends nothing here. Effects of
 * our own event there are no news: that somebody has it, or that it is over. An acknowledgement may
 * take the incident, but not while it asks: silencing a question's page does not answer it, and
 * taking the incident would withdraw it.
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
