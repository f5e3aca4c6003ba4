import { sql } from 'kysely'
import { systemActor } from '../../domain/event.ts'
import type { Hours } from '../../domain/hours.ts'
import { type DayTimes, lastNight, lastOf, type MorningCard, nightAt } from '../../domain/night.ts'
import type { CardLine, Notification, Trigger } from '../../domain/notification.ts'
import {
  handOverLines,
  handOverTitle,
  headlineOf,
  morningLines,
  morningTitle,
  type Shift,
  type ShiftView,
} from '../../domain/shift.ts'
import { databaseTime, now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { listFollowUps, readShift } from '../incidents/shift.ts'
import { append } from '../log/append.ts'
import type { Scope } from '../scope.ts'
import { readSettings } from '../settings.ts'
import { enqueueJoined } from './deliveries.ts'
import { hasDestination } from './destinations.ts'

/**
 * Sends the morning card and the hand-over: one message to each destination at the configured time,
 * once over all processes and restarts.
 */

/** Milliseconds after which a card that is late is no longer sent. */
const maxLateMs = 6 * 3_600_000
/** Milliseconds within which two times count as one, because a clock change may repeat an hour. */
const sameTimeMs = 90 * 60_000

/**
 * Sends the card of the last night if it is due. Returns the number of its lines; 0 if it was not
 * sent.
 */
export async function sendMorning(db: Db): Promise<number> {
  return await db.transaction().execute(async (trx) => {
    const settings = await readSettings(trx)
    const card = settings.value<MorningCard>('morning.card')
    const night = lastNight(settings.value<Hours>('page.night'), await databaseTime(trx))
    const heldSince = await heldSinceCard(trx, night.until)
    const isTold = card !== 'off' && (await hasDestination(trx, 'morning'))
    if (!isTold && heldSince === null) return 0
    if (!(await takeTurn(trx, 'morning', night.until, heldSince !== null))) return 0
    if (!isTold) return await wakeInstead(trx, heldSince ?? night.since, night.until)
    const shift = await readShift(trx, { ...night, heldSince: heldSince ?? night.since })
    if (headlineOf(shift) === null && card !== 'always') return 0
    const lines = morningLines(shift)
    if (await tell(trx, 'morning', morningTitle(night.until.slice(0, 10), shift), lines))
      await noteSparedTold(trx, shift)
    return Math.max(1, lines.length)
  })
}

/**
 * Finds the time of the oldest question that woke nobody and that no card has shown. Null if no
 * question waits for a card.
 */
async function heldSinceCard(trx: Trx, until: string): Promise<string | null> {
  const { since } = await trx
    .selectFrom('questionWake')
    .select(({ fn }) => fn.min('at').as('since'))
    .where('wakes', '=', false)
    .where('at', '<', until)
    .where(sql<boolean>`at >= coalesce((select sent_at from digest where destination = 'morning'), '-infinity')`)
    .executeTakeFirstOrThrow()
  return since
}

/**
 * Wakes people about questions, because no destination accepts the card that would show the
 * questions. Returns the number of incidents.
 */
async function wakeInstead(trx: Trx, heldSince: string, until: string): Promise<number> {
  const incidents = await trx
    .selectFrom('questionWake')
    .innerJoin('approval', 'approval.id', 'questionWake.approvalId')
    .innerJoin('incident', 'incident.id', 'approval.incidentId')
    .select(['incident.id', 'title', 'severity', 'incident.status', 'createdAt as since'])
    .distinct()
    .where('wakes', '=', false)
    .where('questionWake.at', '>=', heldSince)
    .where('questionWake.at', '<', until)
    .orderBy('createdAt')
    .execute()
  const [carrier] = incidents
  if (!carrier) return 0
  const reason =
    'Approvals for these incidents woke nobody in the night and waited for the morning card, which no destination gets now. "nightshift morning" lists them.'
  const more = { carrier: carrier.id, reason, page: true, incidents }
  const isTold = await tell(trx, 'undelivered', 'Approvals of the night', [], more)
  const then = isTold
    ? 'people were woken as the night ended'
    : 'no destination was left to wake people as the night ended'
  const text = `The approval woke nobody in the night, and no morning card showed it: ${then}.`
  for (const { id } of incidents)
    await append(trx, id, null, {
      kind: 'noted',
      actor: systemActor,
      detail: text,
      metadata: { code: 'wake_late', text },
    })
  return incidents.length
}

/** Sends the hand-over if it is due. Returns the number of its lines; 0 if it was not sent. */
export async function sendHandOver(db: Db): Promise<number> {
  return await db.transaction().execute(async (trx) => {
    const times = (await readSettings(trx)).value<DayTimes | null>('hand_over.at')
    if (times === null) return 0
    const at = await databaseTime(trx)
    const until = lastOf(times, at)
    if (!(await takeTurn(trx, 'hand_over', until))) return 0
    const before = lastOf(times, new Date(Date.parse(until) - 60_000).toISOString())
    const lines = handOverLines(await readShift(trx, { since: before, until: at }))
    await tell(trx, 'hand_over', handOverTitle(until), lines)
    return lines.length
  })
}

/** Milliseconds of a shift if no times of hand-overs are set. */
const usualShiftMs = 8 * 3_600_000

/**
 * Builds the morning card and the hand-over in their current state: for the current night, or by
 * day for the last night. `lostDuties`: failed parts, by a check that was just made.
 */
export async function viewShift(scope: Scope, lostDuties: string[]): Promise<ShiftView> {
  const { db } = scope
  const settings = await readSettings(db)
  const at = await databaseTime(db)
  const hours = settings.value<Hours>('page.night')
  const going = nightAt(hours, at)
  const night = going ? { since: going.since, until: at } : lastNight(hours, at)
  const times = settings.value<DayTimes | null>('hand_over.at')
  const began = times ? lastOf(times, at) : new Date(Date.parse(at) - usualShiftMs).toISOString()
  const [ofNight, ofShift] = await Promise.all([readShift(db, night), readShift(db, { since: began, until: at })])
  return {
    morning: { ...night, title: morningTitle(night.until.slice(0, 10), ofNight), lines: morningLines(ofNight) },
    handOver: { since: began, until: at, title: handOverTitle(at), lines: handOverLines({ ...ofShift, lostDuties }) },
    followUps: await listFollowUps(scope),
  }
}

/**
 * Claims the card of this time, which another process may have sent: a second process waits and
 * then finds the card claimed. A card that cannot be delivered is an ordinary row of the outbox, so
 * no restart sends the card again.
 */
async function takeTurn(
  trx: Trx,
  card: 'morning' | 'hand_over',
  time: string,
  /**
   * True if questions wait for the card. The card is then sent however late, or the questions are
   * reported in another way.
   */
  isOwed = false,
): Promise<boolean> {
  if (!isOwed && Date.parse(await databaseTime(trx)) - Date.parse(time) > maxLateMs) return false
  const taken = async () =>
    (await trx.selectFrom('digest').select('sentAt').where('destination', '=', card).executeTakeFirst())?.sentAt
  const isTaken = (at: string | undefined) => at !== undefined && Date.parse(at) > Date.parse(time) - sameTimeMs
  if (isTaken(await taken())) return false
  await sql`select pg_advisory_xact_lock(hashtextextended('shift cards', 0))`.execute(trx)
  if (isTaken(await taken())) return false
  // Keeps the card due until a destination accepts it and an incident exists to which it can
  // belong.
  if (!isOwed && !((await hasDestination(trx, card)) && (await findCarrier(trx)))) return false
  await trx
    .insertInto('digest')
    .values({ destination: card, sentAt: time })
    .onConflict((conflict) => conflict.column('destination').doUpdateSet({ sentAt: time }))
    .execute()
  return true
}

/** Finds the incident to which a card belongs, because every outbox message belongs to one. */
async function findCarrier(trx: Trx): Promise<string | null> {
  const row = await trx.selectFrom('incident').select('id').orderBy('createdAt', 'desc').limit(1).executeTakeFirst()
  return row?.id ?? null
}

async function tell(
  trx: Trx,
  trigger: Trigger,
  title: string,
  lines: CardLine[],
  more: Partial<Pick<Notification, 'reason' | 'page' | 'incidents'>> & { carrier?: string } = {},
): Promise<boolean> {
  const { carrier = await findCarrier(trx), ...rest } = more
  if (carrier === null) return false
  const told: Notification = {
    trigger,
    incident: { id: carrier, type: 'nightshift', severity: 'info', status: 'open', title, resource: null },
    reason: null,
    approval: null,
    page: false,
    alertsFiring: 0,
    incidents: [],
    lines,
    url: '',
    at: await databaseTime(trx),
    headHash: null,
    ...rest,
  }
  return await enqueueJoined(trx, carrier, told)
}

async function noteSparedTold(trx: Trx, { spared, until }: Shift): Promise<void> {
  if (spared.count === 0) return
  await trx
    .updateTable('delivery')
    .set({ toldElsewhereAt: now })
    .where('releasedWhy', '=', 'repaired')
    .where('toldElsewhereAt', 'is', null)
    .where('releasedAt', '<', until)
    .execute()
}
