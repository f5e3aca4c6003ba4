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

/** Changes the owner of an incident: a person takes it, passes it on, or gives it back. */

/**
 * Gives an incident to a person. If the incident has no run, the person has the incident at once:
 * `taken`. A run is first asked to end, so that a write in progress is verified. `run` is then this
 * run, which calls `handOver`.
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
 * Escalates an attempt, or an incident without an attempt, to the person who took it. If the
 * incident was escalated in the meantime, the person becomes its owner too.
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
 * Takes the owner from an incident. As for any escalated incident, firing alerts then cause
 * reminders, and new alerts are investigated.
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
 * Makes the watchdog check incidents with an owner. The watchdog decides under the lock whether the
 * owner loses the incident.
 */
export async function findLapsedOwners(db: Db): Promise<void> {
  await sql`
    update incident set check_at = nightshift_now()
    where owner_id is not null and check_at is null
      and exists (select 1 from alert where alert.incident_id = incident.id and alert.status = 'firing')`.execute(db)
}

/**
 * Takes an incident from an owner who did nothing for `owner.lapse`, or who is disabled, while an
 * alert fires. People are notified once. The caller holds the incident's lock. Returns whether the
 * owner loses the incident.
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
  const why = owner.isDisabled ? 'is disabled' : 'took no action on it for too long'
  const text = `${owner.name} had this incident and ${why}. The incident is given back, and its alert still fires`
  await clearOwner(trx, row.id)
  await note(trx, row.id, systemActor, 'owner_lapsed', text)
  const now = await lockIncident(trx, row.id)
  if (now) await enqueueNotification(trx, now, 'reminder', text)
  return true
}
