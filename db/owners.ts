import { sql } from 'kysely'
import type { KnownResource } from '../domain/alert-resource.ts'
import { type IncidentEvent, systemActor } from '../domain/event.ts'
import { type IncidentStatus, runningStatuses } from '../domain/incident.ts'
import { mostUnread, readKindAndId, told, unreadOf, wordsIn } from '../domain/message.ts'
import type { Discovered } from '../domain/tool.ts'
import { cleanse } from '../safety/redact.ts'
import { append, IncidentNotFoundError } from './append.ts'
import { closeIncident, type Person } from './closing.ts'
import { type Db, now, type Trx } from './connect.ts'
import { enqueueNotification } from './deliveries.ts'
import { eventsOf } from './events.ts'
import { lockIncident, NotAllowedError } from './incidents.ts'
import { operatorById } from './operators.ts'
import { findByNames } from './registry.ts'
import type { SettingsReader } from './settings.ts'
import type { IncidentRow } from './tables.ts'

/** What a person does to an incident at work: takes it, gives it back, writes to its run. */

/**
 * Gives an incident to a person. Without a run it is theirs at once: `taken`. A run is asked to end first, so that a write
 * under way is looked at: `run` names the one to tell, which then hands over by `handOver`.
 */
export async function takeIncident(
  trx: Trx,
  id: string,
  by: Person,
): Promise<{ taken: true } | { taken: false; run: { incidentId: string; attempt: number } }> {
  const row = await lockIncident(trx, id)
  if (!row) throw new IncidentNotFoundError(id)
  switch (row.status) {
    case 'open':
      await handOver(trx, id, null, by)
      return { taken: true }
    case 'investigating':
    case 'awaiting_approval':
      await append(trx, id, null, {
        kind: 'commented',
        actor: by.actor,
        detail: `${by.name} takes this incident`,
        metadata: { text: `${by.name} takes this incident`, confidence: null, action: 'take_requested' },
      })
      return { taken: false, run: { incidentId: id, attempt: row.attempt } }
    case 'escalated':
      await setOwner(trx, row, by)
      return { taken: true }
    default:
      throw new NotAllowedError(id, 'take', row.status)
  }
}

/**
 * Ends an attempt, or an incident that has none, as escalated to the person who took it. One that was escalated meanwhile is
 * theirs all the same.
 */
export async function handOver(trx: Trx, id: string, attempt: number | null, by: Person): Promise<void> {
  const row = await lockIncident(trx, id)
  if (row?.status === 'escalated') {
    if (row.ownerId !== by.operatorId) await setOwner(trx, row, by)
    return
  }
  await closeIncident(
    trx,
    id,
    attempt,
    { status: 'escalated', code: 'TAKEN', reason: `${by.name} took this incident`, ownerId: by.operatorId },
    { actor: by.actor, stepKey: null },
  )
  await note(trx, id, by.actor, 'taken', `${by.name} has this incident`)
}

async function setOwner(trx: Trx, row: IncidentRow, by: Person): Promise<void> {
  await trx
    .updateTable('incident')
    .set({
      ownerId: by.operatorId,
      ownedAt: now,
      updatedAt: now,
      checkAt: now,
    })
    .where('id', '=', row.id)
    .execute()
  await note(trx, row.id, by.actor, 'taken', `${by.name} has this incident`)
}

/** Gives an incident back: what fires on is reminded of, and what begins again is investigated, as for any escalated one. */
export async function giveBack(trx: Trx, id: string, by: { actor: string; name: string }): Promise<boolean> {
  const row = await lockIncident(trx, id)
  if (!row) throw new IncidentNotFoundError(id)
  if (row.ownerId === null) return false
  await clearOwner(trx, id)
  await note(trx, id, by.actor, 'given_back', `${by.name} gave this incident back`)
  return true
}

async function clearOwner(trx: Trx, id: string): Promise<void> {
  await trx
    .updateTable('incident')
    .set({ ownerId: null, ownedAt: null, updatedAt: now, checkAt: now })
    .where('id', '=', id)
    .execute()
}

async function note(
  trx: Trx,
  id: string,
  actor: string,
  code: 'taken' | 'given_back' | 'owner_lapsed',
  text: string,
): Promise<void> {
  await append(trx, id, null, { kind: 'noted', actor, detail: text, metadata: { code, text } })
}

/** Makes the watchdog look at incidents that somebody has; whether the owner lapsed is decided under the lock. */
export async function findLapsedOwners(db: Db): Promise<void> {
  await sql`
    update incident set check_at = nightshift_now()
    where owner_id is not null and check_at is null
      and exists (select 1 from alert where alert.incident_id = incident.id and alert.status = 'firing')`.execute(db)
}

/**
 * Gives an incident back whose owner did nothing on it for `owner.lapse`, or is disabled, while an alert fires. People are
 * told once. The caller holds the incident's lock. Answers whether it did.
 */
export async function lapseOwner(trx: Trx, row: IncidentRow, settings: SettingsReader): Promise<boolean> {
  if (row.ownerId === null) return false
  const { rows } = await sql<{ name: string; isDisabled: boolean; isIdle: boolean; fires: boolean }>`
    select operator.name, operator.disabled_at is not null as "isDisabled",
      nightshift_now() > greatest(${row.ownedAt}::timestamptz, coalesce((
        select max(at) from incident_event
        where incident_id = ${row.id} and actor = 'user:' || operator.name), ${row.ownedAt}::timestamptz))
        + make_interval(secs => ${settings.value<number>('owner.lapse')}) as "isIdle",
      exists (select 1 from alert where incident_id = ${row.id} and status = 'firing') as fires
    from operator where id = ${row.ownerId}`.execute(trx)
  const owner = rows[0]
  if (!owner?.fires || !(owner.isDisabled || owner.isIdle)) return false
  const why = owner.isDisabled ? 'is disabled' : 'did nothing on it for too long'
  const text = `${owner.name} had this incident and ${why}: it is given back, and its alert fires on`
  await clearOwner(trx, row.id)
  await note(trx, row.id, systemActor, 'owner_lapsed', text)
  const now = await lockIncident(trx, row.id)
  if (now) await enqueueNotification(trx, now, 'reminder', text)
  return true
}

export type Told =
  | { outcome: 'told'; event: IncidentEvent<'commented'> }
  | { outcome: 'not_investigated'; status: IncidentStatus }
  | { outcome: 'not_allowed'; why: string }
  | { outcome: 'too_many' }

/**
 * Writes a person's message to the run that works on an incident: a comment with a mark, and with what it names of the registry. The
 * next turn reads it. It decides nothing: no rule of the judge reads its words. `stepKey` makes a repetition find its row.
 */
export async function tellAgent(
  db: Db,
  id: string,
  by: Person,
  text: string,
  stepKey: string | null = null,
): Promise<Told> {
  // What is taken for a secret names nothing.
  const named = await namedIn(db, String(cleanse(text)))
  return await db.transaction().execute(async (trx): Promise<Told> => {
    const row = await lockIncident(trx, id)
    if (!row) throw new IncidentNotFoundError(id)
    const refused = await refusalToTell(trx, by, row.type)
    if (refused) return { outcome: 'not_allowed', why: refused }
    if (!runningStatuses.includes(row.status)) return { outcome: 'not_investigated', status: row.status }
    const unread = unreadOf(await eventsOf(trx, id, { attempt: row.attempt }))
    if (unread.length >= mostUnread) return { outcome: 'too_many' }
    const { event } = await append(trx, id, null, {
      kind: 'commented',
      actor: by.actor,
      stepKey,
      detail: text,
      metadata: { text, confidence: null, action: told, named },
    })
    return { outcome: 'told', event }
  })
}

/** People who look after some types of incident write to runs of those. */
async function refusalToTell(trx: Trx, { operatorId, name }: Person, type: string): Promise<string | null> {
  const operator = await operatorById(trx, operatorId)
  if (!operator || operator.disabledAt !== null) return `${name} is disabled`
  const { incidentTypes } = operator
  if (incidentTypes === null || incidentTypes.includes(type)) return null
  return `${name} looks after incidents of type ${incidentTypes.join(', ')}, and this one is ${type}`
}

const mostNamed = 10

/** What a text names: by `kind:id`, or by a name that only one thing of the registry has. What several things have names none. */
async function namedIn(db: Db, text: string): Promise<Discovered[]> {
  const words = wordsIn(text.toLowerCase())
  const byId = words.flatMap((word) => readKindAndId(word) ?? [])
  const known = await findByNames(db, [...words, ...byId.map(({ id }) => id)])
  const found = [
    ...byId.flatMap(({ kind, id }) => known.filter((each) => each.kind === kind && each.id.toLowerCase() === id)),
    ...words.flatMap((word) => onlyOne(known.filter(({ names }) => names.includes(word)))),
  ]
  const unique = new Map(found.map((each) => [`${each.kind}:${each.id}`, each]))
  return [...unique.values()]
    .slice(0, mostNamed)
    .map(({ kind, id, names }) => ({ kind, id, name: id, aliases: names.filter((name) => name !== id) }))
}

/** One thing may be listed under several kinds; two things with the same name are not told apart by it. */
function onlyOne(found: readonly KnownResource[]): readonly KnownResource[] {
  return new Set(found.map(({ canonical }) => canonical)).size === 1 ? found : []
}
