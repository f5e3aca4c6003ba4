import { type RawBuilder, sql } from 'kysely'
import { type NotedCode, systemActor } from '../../domain/event.ts'
import { isMassEnd, minMassEnds } from '../../domain/mass-resolve.ts'
import { describeEndReason, unprovenAfterHours } from '../../domain/unproven-end.ts'
import type { Db, Trx } from '../connect.ts'
import { lockIncident } from '../incidents/incidents.ts'
import { sendsEnds } from '../lifecycle/read-lifecycle.ts'
import { append } from '../log/append.ts'
import { enqueueNotification } from '../outbox/deliveries.ts'
import { readSettings, type SettingsReader, storedSettings } from '../settings.ts'

/** Seconds after which a sender's doubted ends are accepted, if the sender has sent again. */
const believedAfterSeconds = 15 * 60

/**
 * Doubts the ends of alerts if a sender ends many alerts at once, because so many ends show more
 * about the sender than about its alerts. The ends of the last minute then count as unknown, and
 * people get one message. A notification group of the sender counts once, because one cause may end
 * all of its alerts. The caller has just stored an end for this incident and holds the incident's
 * lock.
 */
export async function noteMassEnd(trx: Trx, source: string, incidentId: string): Promise<void> {
  const ends = await count(
    trx,
    sql`source = ${source} and end_received_at > (select nightshift_now()) - interval '1 minute'`,
  )
  if (ends <= minMassEnds) return
  const firing = await count(trx, sql`source = ${source} and status = 'firing'`)
  if (!isMassEnd({ endsInMinute: ends, firingBefore: ends + firing })) return
  // Lets one transaction at a time continue, so that only one of them notifies people. The holder
  // of this lock never waits for a row whose lock a waiting transaction holds.
  await sql`select pg_advisory_xact_lock(hashtextextended(${`crowd/${source}`}, 0))`.execute(trx)
  const isKnown = await isCrowdKnown(trx, source)
  // Skips rows that another transaction has locked, because that transaction marks the rows and
  // counts the same ends.
  await sql`
    update alert set status = 'unknown', unknown_since = nightshift_now(), unknown_why = 'crowd'
    where id in (
      select ended.id from alert ended
      where ended.source = ${source} and ended.status = 'resolved'
        and ended.end_received_at > (select nightshift_now()) - interval '1 minute'
        and not exists (
          select 1 from alert again where again.source = ended.source and again.fingerprint = ended.fingerprint
            and again.status in ('firing', 'unknown'))
      for update skip locked)`.execute(trx)
  if (!isKnown) await announceCrowd(trx, incidentId, source, ends)
}

async function count(trx: Trx, where: RawBuilder<unknown>): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(distinct coalesce(group_key, id))::int as count from alert where ${where}`.execute(trx)
  return rows[0]?.count ?? 0
}

async function isCrowdKnown(trx: Trx, source: string): Promise<boolean> {
  const row = await trx
    .selectFrom('alert')
    .select('id')
    .where('source', '=', source)
    .where('unknownWhy', '=', 'crowd')
    .where('unknownSince', '>', sql<string>`nightshift_now() - make_interval(secs => ${believedAfterSeconds})`)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

async function announceCrowd(trx: Trx, incidentId: string, source: string, ends: number): Promise<void> {
  const text = `${ends} alerts or groups of ${source} ended within a minute, more than half of those that fired. They count as unknown until ${source} sends something again`
  await note(trx, incidentId, 'crowd', text)
  const row = await lockIncident(trx, incidentId)
  if (row) await enqueueNotification(trx, row, 'notice', text)
}

/**
 * Accepts doubted ends once a quarter of an hour has passed and the sender has sent again. Also
 * stops counting an alert as firing if its sender never reports ends and was silent for the seconds
 * of the setting `alert.stale`. Works on one incident, whose lock the caller holds.
 */
export async function settleUnknown(trx: Trx, incidentId: string, settings: SettingsReader): Promise<void> {
  const believed = await sql`
    update alert set status = 'resolved'
    where incident_id = ${incidentId} and status = 'unknown' and unknown_why = 'crowd'
      and unknown_since < nightshift_now() - make_interval(secs => ${believedAfterSeconds})
      and exists (
        select 1 from alert heard where heard.source = alert.source and heard.last_seen_at > alert.unknown_since)`.execute(
    trx,
  )
  await settleUnproven(trx, incidentId)
  const count = Number(believed.numAffectedRows ?? 0)
  if (count > 0)
    await note(trx, incidentId, 'ends_believed', `The sender sent something again: ${count} ends now count`)
  const sources = await trx
    .selectFrom('alert')
    .select('source')
    .distinct()
    .where('incidentId', '=', incidentId)
    .execute()
  const endless = sources.map(({ source }) => source).filter((source) => !sendsEnds(settings, source))
  if (endless.length === 0) return
  const staleAfterSeconds = settings.value<number>('alert.stale')
  const stale = await sql`
    update alert set status = 'unknown', unknown_since = nightshift_now(), unknown_why = 'stale'
    where incident_id = ${incidentId} and status = 'firing' and source = any(${endless})
      and last_seen_at < nightshift_now() - make_interval(secs => ${staleAfterSeconds})`.execute(trx)
  if (Number(stale.numAffectedRows ?? 0) > 0)
    await note(trx, incidentId, 'stale', 'The alert has not repeated for a long time, and its sender reports no ends')
}

/** Closes an alert as quiet and unproven if its end proves nothing and it did not fire since. */
async function settleUnproven(trx: Trx, incidentId: string): Promise<void> {
  const { rows } = await sql<{ name: string; endReason: string }>`
    update alert set status = 'resolved', end_received_at = last_seen_at
    where incident_id = ${incidentId} and status = 'unknown' and ${isLongUnproven}
    returning name, end_reason as "endReason"`.execute(trx)
  for (const { name, endReason } of rows) {
    const text = `The alert ${name} did not fire again for ${unprovenAfterHours} h after its sender reported ${describeEndReason(endReason)}. The alert counts as quiet, unproven`
    await note(trx, incidentId, 'quiet_unproven', text)
  }
}

const isLongUnproven = sql`(unknown_why = 'unproven'
  and unknown_since <= (select nightshift_now()) - make_interval(hours => ${unprovenAfterHours})
  and last_seen_at <= (select nightshift_now()) - make_interval(hours => ${unprovenAfterHours}))`

/**
 * Accepts doubted ends, because a read found the resource healthy or a person states that the
 * alerts are over.
 */
export async function believeEnds(trx: Trx, incidentId: string): Promise<void> {
  const believed = await sql`
    update alert set status = 'resolved', end_reason = null, end_received_at = coalesce(end_received_at, last_seen_at)
    where incident_id = ${incidentId}
      and (status = 'unknown' and unknown_why in ('crowd', 'foreign', 'unproven') or status = 'resolved' and end_reason is not null)`.execute(
    trx,
  )
  if (Number(believed.numAffectedRows ?? 0) > 0)
    await note(trx, incidentId, 'ends_believed', 'The unproven ends of its alerts now count, so the incident is closed')
}

async function note(trx: Trx, incidentId: string, code: NotedCode, text: string): Promise<void> {
  await append(trx, incidentId, null, { kind: 'noted', actor: systemActor, detail: text, metadata: { code, text } })
}

/**
 * Makes the watchdog check incidents with an alert whose unproven end is long ago, or whose sender
 * reports no ends and was silent for long.
 */
export async function findStale(db: Db): Promise<void> {
  await sql`
    update incident set check_at = nightshift_now()
    where (check_at is null or check_at > nightshift_now())
      and id in (select incident_id from alert where status = 'unknown' and ${isLongUnproven} limit 100)`.execute(db)
  const settings = await readSettings(db)
  const senders = [...(await storedSettings(db)).keys()].flatMap((key) => /^alert\.ends\.(.+)$/.exec(key)?.[1] ?? [])
  const endless = senders.filter((source) => !sendsEnds(settings, source))
  if (endless.length === 0) return
  await sql`
    update incident set check_at = nightshift_now()
    where check_at is null and id in (
      select incident_id from alert
      where status = 'firing' and source = any(${endless})
        and last_seen_at < (select nightshift_now()) - make_interval(secs => ${settings.value<number>('alert.stale')})
      limit 100)`.execute(db)
}
