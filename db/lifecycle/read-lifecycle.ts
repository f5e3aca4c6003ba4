import { sql } from 'kysely'
import type { AlertCounts, LifecycleRules, LifecycleView, RepairCheck } from '../../domain/lifecycle.ts'
import { databaseTime } from '../clock.ts'
import type { Trx } from '../connect.ts'
import type { SettingsReader } from '../settings.ts'
import type { IncidentRow } from '../tables.ts'
import { attemptsToday } from './attempts.ts'

/** Reads the times of the settings that apply to incidents of one type. */
export function lifecycleRules(settings: SettingsReader, type: string): LifecycleRules {
  return {
    settleSeconds: settings.value<number>('alert.settle', type),
    settleMaxSeconds: settings.value<number>('alert.settle_max', type),
    quietSeconds: settings.value<number>('alert.quiet'),
  }
}

/**
 * Whether a sender reports the ends of alerts. Every sender does, unless a setting says otherwise.
 */
export function sendsEnds(settings: SettingsReader, source: string): boolean {
  return settings.value<boolean | null>('alert.ends', source) ?? true
}

/**
 * Reads the facts for the decisions of `domain/lifecycle.ts`. The caller holds the incident's lock.
 */
export async function lifecycleView(trx: Trx, row: IncidentRow, settings: SettingsReader): Promise<LifecycleView> {
  const { lastEnd, ...alerts } = await alertCounts(trx, row, settings)
  const isDoubted = alerts.unknown + alerts.unproven > 0
  const looks = row.closedAt !== null || isDoubted ? await looksAt(trx, row) : []
  const watchUntilMs = millis(row.watchUntil)
  return {
    nowMs: Date.parse(await databaseTime(trx)),
    status: row.status,
    outcome: row.outcome,
    closedBy: row.closedBy,
    closedAtMs: millis(row.closedAt),
    isCritical: row.severity === 'critical',
    isOwned: row.ownerId !== null,
    alerts,
    lastEndMs: millis(lastEnd),
    lastAlertChangeMs: await lastAlertChange(trx, row.id),
    watchUntilMs,
    isRepairConfirmed: row.repairConfirmedAt !== null,
    unreadableLooks: looks.filter((look) => isUnreadable(look) && look.atMs >= (watchUntilMs ?? 0)).length,
    look: looks[0] ?? null,
    isReminded: row.remindedAt !== null && row.closedAt !== null && row.remindedAt >= row.closedAt,
    cancelledUntilMs: millis(row.cancelledUntil),
    expectedUntilMs: row.expectationId === null ? null : await expectedUntil(trx, row.expectationId),
    attemptsToday: row.closedAt === null ? 0 : await attemptsToday(trx, row.id),
  }
}

function millis(time: string | null): number | null {
  return time === null ? null : Date.parse(time)
}

function isUnreadable(look: RepairCheck): boolean {
  return look.verification === 'open' || look.resource === 'unknown'
}

/** Whether an alert has an end that proves nothing. */
const isUnproven = sql<boolean>`(status = 'resolved' and end_reason is not null)`

/**
 * Counts of alerts, with the number from senders without ends (`endless`), and why some states are
 * unknown.
 */
type CountedAlerts = AlertCounts & {
  endless: number
  lastEnd: string | null
  unknownWhy: string | null
  endReason: string | null
}

/**
 * Counts the alerts of an incident by state. Once the incident is closed, an alert of a sender
 * without ends counts as firing only if it was repeated after the closing.
 */
export async function alertCounts(
  trx: Trx,
  row: Pick<IncidentRow, 'id' | 'closedAt'>,
  settings: SettingsReader,
): Promise<CountedAlerts> {
  const sources = await trx.selectFrom('alert').select('source').distinct().where('incidentId', '=', row.id).execute()
  const endless = sources.map(({ source }) => source).filter((source) => !sendsEnds(settings, source))
  const { rows } = await sql<CountedAlerts>`
    select count(*)::int as total,
      (count(*) filter (where status = 'firing' and (source <> all(${endless})
        or ${row.closedAt}::timestamptz is null or last_seen_at > ${row.closedAt}::timestamptz)))::int as firing,
      (count(*) filter (where status = 'firing' and source = any(${endless})))::int as endless,
      (count(*) filter (where status = 'unknown'))::int as unknown,
      (count(*) filter (where ${isUnproven}))::int as unproven,
      min(unknown_why) filter (where status = 'unknown') as "unknownWhy",
      min(end_reason) filter (where status = 'unknown' or ${isUnproven}) as "endReason",
      max(case status when 'resolved' then coalesce(end_received_at, last_seen_at)
        when 'unknown' then coalesce(unknown_since, last_seen_at) end) as "lastEnd"
    from alert where incident_id = ${row.id}`.execute(trx)
  return (
    rows[0] ?? {
      total: 0,
      firing: 0,
      unknown: 0,
      unproven: 0,
      endless: 0,
      lastEnd: null,
      unknownWhy: null,
      endReason: null,
    }
  )
}

async function lastAlertChange(trx: Trx, incidentId: string): Promise<number | null> {
  const row = await trx
    .selectFrom('incidentEvent')
    .select('at')
    .where('incidentId', '=', incidentId)
    .where('kind', '=', 'alert_received')
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  return millis(row?.at ?? null)
}

/** Lists reads that code made during and after the current attempt, newest first. */
async function looksAt(trx: Trx, row: IncidentRow): Promise<RepairCheck[]> {
  const rows = await trx
    .selectFrom('incidentEvent')
    .select(['at', 'metadata'])
    .where('incidentId', '=', row.id)
    .where('attempt', '=', row.attempt)
    .where('kind', '=', 'looked')
    .orderBy('seq', 'desc')
    .limit(20)
    .execute()
  return rows.map(({ at, metadata }) => {
    const { verification, resource } = metadata as Pick<RepairCheck, 'verification' | 'resource'>
    return { atMs: Date.parse(at), verification, resource }
  })
}

async function expectedUntil(trx: Trx, expectationId: string): Promise<number | null> {
  const row = await trx
    .selectFrom('expectation')
    .select(['until', 'endedAt'])
    .where('id', '=', expectationId)
    .executeTakeFirst()
  return millis(row?.endedAt ?? row?.until ?? null)
}
