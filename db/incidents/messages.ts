import type { KnownResource } from '../../domain/alert-resource.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { type IncidentStatus, runningStatuses } from '../../domain/incident.ts'
import { isType } from '../../domain/incident-type.ts'
import { maxUnread, messageMark, readKindAndId, unreadOf, wordsIn } from '../../domain/message.ts'
import type { DiscoveredThing } from '../../domain/tool.ts'
import { cleanse } from '../../safety/redact.ts'
import { operatorById } from '../access/operators.ts'
import type { Db, Trx } from '../connect.ts'
import { findByNames } from '../inventory/registry.ts'
import { append, IncidentNotFoundError } from '../log/append.ts'
import { eventsOf } from '../log/events.ts'
import type { Person } from './close-incident.ts'
import { lockIncident } from './incidents.ts'

export type MessageOutcome =
  | { outcome: 'told'; event: IncidentEvent<'commented'> }
  | { outcome: 'not_investigated'; status: IncidentStatus }
  | { outcome: 'not_allowed'; why: string }
  | { outcome: 'too_many' }

/**
 * Writes a person's message to the run of an incident, as a marked comment with the resources that
 * the message names. The next turn reads the message. It decides nothing, because no rule of the
 * policy check reads its text. `stepKey`: a key by which a repetition finds the row.
 */
export async function tellAgent(
  db: Db,
  id: string,
  by: Person,
  text: string,
  stepKey: string | null = null,
): Promise<MessageOutcome> {
  // Reads names from the message without its secrets.
  const named = await namedIn(db, String(cleanse(text)))
  return await db.transaction().execute(async (trx): Promise<MessageOutcome> => {
    const row = await lockIncident(trx, id)
    if (!row) throw new IncidentNotFoundError(id)
    const refused = await refusalToTell(trx, by, row.type)
    if (refused) return { outcome: 'not_allowed', why: refused }
    if (!runningStatuses.includes(row.status)) return { outcome: 'not_investigated', status: row.status }
    const unread = unreadOf(await eventsOf(trx, id, { attempt: row.attempt }))
    if (unread.length >= maxUnread) return { outcome: 'too_many' }
    const { event } = await append(trx, id, null, {
      kind: 'commented',
      actor: by.actor,
      stepKey,
      detail: text,
      metadata: { text, confidence: null, action: messageMark, named },
    })
    return { outcome: 'told', event }
  })
}

/**
 * Explains why this person may not write a message to the run; null if the person may. People who
 * are limited to some incident types may write only to runs of these types.
 */
async function refusalToTell(trx: Trx, { operatorId, name }: Person, type: string): Promise<string | null> {
  const operator = await operatorById(trx, operatorId)
  if (!operator || operator.disabledAt !== null) return `${name} is disabled`
  const { incidentTypes } = operator
  if (incidentTypes === null || incidentTypes.some((each) => isType(each, type))) return null
  return `${name} may only act in incidents of type ${incidentTypes.join(', ')}, and this incident has type ${type}`
}

const maxNamed = 10

/**
 * Finds resources that a text names: by `kind:id`, or by a name of exactly one known resource. An
 * ambiguous name finds none.
 */
async function namedIn(db: Db, text: string): Promise<DiscoveredThing[]> {
  const words = wordsIn(text.toLowerCase())
  const byId = words.flatMap((word) => readKindAndId(word) ?? [])
  const known = await findByNames(db, [...words, ...byId.map(({ id }) => id)])
  const found = [
    ...byId.flatMap(({ kind, id }) => known.filter((each) => each.kind === kind && each.id.toLowerCase() === id)),
    ...words.flatMap((word) => onlyOne(known.filter(({ names }) => names.includes(word)))),
  ]
  const unique = new Map(found.map((each) => [`${each.kind}:${each.id}`, each]))
  return [...unique.values()]
    .slice(0, maxNamed)
    .map(({ kind, id, names }) => ({ kind, id, name: id, aliases: names.filter((name) => name !== id) }))
}

/**
 * Keeps the found resources only if all of them are one resource. One resource may be listed under
 * several kinds, but two resources with one name are ambiguous.
 */
function onlyOne(found: readonly KnownResource[]): readonly KnownResource[] {
  return new Set(found.map(({ canonical }) => canonical)).size === 1 ? found : []
}
