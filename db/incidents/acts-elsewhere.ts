import { systemActor } from '../../domain/event.ts'
import type { Trx } from '../connect.ts'
import { append } from '../log/append.ts'
import type { Person } from './close-incident.ts'
import { lockIncident } from './incidents.ts'

/** An action on a page at PagerDuty. `said`: the person's name there. `by`: the operator. */
type ActElsewhere = { act: 'acknowledged' | 'resolved'; by: Person | null; said: string }

/**
 * Writes an action at PagerDuty into the incident's log. Resolving a page at PagerDuty approves
 * nothing and ends nothing in Nightshift. Ignores effects of Nightshift's own events at PagerDuty:
 * that somebody took the incident, or that it is over. An acknowledgement may take the incident,
 * but not while a question is pending: it silences the page but does not answer the question, and
 * taking the incident would withdraw the question.
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
      ? `${who} resolved the alert at PagerDuty. In Nightshift this closes nothing and decides nothing`
      : `${who} acknowledged the alert at PagerDuty${isAsked ? ': the approval still waits for an answer' : ''}`
  const code = act === 'resolved' ? 'resolved_elsewhere' : 'acknowledged_elsewhere'
  await append(trx, incidentId, null, {
    kind: 'noted',
    actor: by?.actor ?? systemActor,
    detail: text,
    metadata: { code, text },
  })
  return { isNews: true, mayBeTaken: !isAsked, text }
}
