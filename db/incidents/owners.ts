import { sql } from 'kysely'
import { systemActor } from '../../domain/event.ts'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { append, IncidentNotFoundError } from '../log/append.ts'
import { enqueueNotification } from '../outbox/deliveries.ts'
import type { SettingsReader } from '../settings.ts'
import type { IncidentRow } from '../tables.ts'
import { closeIncident, noteTaken, type Person } from './close-incident.ts'
import { lockIncident, NotAllowedError } from './incidents.ts'

/** The owner of an incident: a person takes it, hands it over, or gives it back. */

/**
 * Gives an incident to a person. Without a run it is theirs at once: `taken`. A run is asked to end
 * first, so that a write under way is looked at: `run` names it, and it hands over by `handOver`.
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
 * Ends an attempt, or an incident without one, as escalated to the person who took it. One
 * escalated meanwhile is theirs too.
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
  await noteTaken(trx, id, by)
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
  await noteTaken(trx, row.id, by)
}

/**
 * Gives an incident back: alerts that fire on are reminded of, new ones investigated, as for any
 * escalated one.
 */
export async function releaseOwnership(trx: Trx, id: string, by: { actor: string; name: string }): Promise<boolean> {
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
  code: 'given_back' | 'owner_lapsed',
  text: string,
): Promise<void> {
  await append(trx, id, null, { kind: 'noted', actor, detail: text, metadata: { code, text } })
}

/**
 * Sends incidents with an owner to the watchdog; under the lock it is decided whether the owner
 * lapsed.
 */
export async function findLapsedOwners(db: Db): Promise<void> {
  await sql`
    update incident set check_at = nightshift_now()
    where owner_id is not null and check_at is null
      and exists (select 1 from alert where alert.incident_id = incident.id and alert.status = 'firing')`.execute(db)
}

/**
 * Gives an incident back whose owner did nothing for `owner.lapse`, or is disabled, while an alert
 * fires. People hear of it once. The caller holds its lock. Answers whether it did.
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
