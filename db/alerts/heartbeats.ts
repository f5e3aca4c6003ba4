import { sql } from 'kysely'
import type { Alert } from '../../domain/alert.ts'
import { allowedSilenceSeconds, type Heartbeat, silenceAlert } from '../../domain/heartbeat.ts'
import { databaseTime, now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { readSettings } from '../settings.ts'
import { type IngestResult, ingestResult } from './alerts.ts'
import { takeAlert } from './ingest-alert.ts'

/** Lists the names of alerts that are configured as heartbeats. */
export async function heartbeatNames(trx: Trx): Promise<ReadonlySet<string>> {
  return new Set((await readSettings(trx)).value<string[]>('alert.heartbeats'))
}

/**
 * Counts a heartbeat. Only an end, or a return after the heartbeat had stopped, changes its
 * incident. The caller holds the lock of its fingerprint and has removed secrets from it.
 */
export async function takeHeartbeat(trx: Trx, alert: Alert, hasIncident: boolean): Promise<IngestResult> {
  const now = await databaseTime(trx)
  // Ends an incident that the alert opened before the alert was configured as a heartbeat.
  if (hasIncident) await takeAlert(trx, { ...alert, status: 'resolved', endsAt: now, startGiven: false })
  if (alert.status === 'resolved') return await endHeartbeat(trx, alert)
  const wasStopped = await count(trx, alert)
  if (!wasStopped) return ingestResult(alert, null, 'heartbeat')
  const { wakesQueue, tellRun, incidentId } = await tell(trx, wasStopped, 'resolved', now)
  return ingestResult(alert, incidentId, 'heartbeat', { wakesQueue, tellRun })
}

/** Opens an incident for each heartbeat that was silent too long. Returns whether any was. */
export async function findSilentHeartbeats(db: Db): Promise<boolean> {
  const configured = (await readSettings(db)).value<number | null>('alert.heartbeat_silence')
  const beats = await db
    .selectFrom('heartbeat')
    .selectAll()
    .select(sql<number>`extract(epoch from nightshift_now() - last_seen_at)::float8`.as('silentSeconds'))
    .where('stoppedAt', 'is', null)
    .execute()
  const silent = beats.filter((beat) => {
    const allowed = allowedSilenceSeconds(beat, configured)
    return allowed !== null && beat.silentSeconds > allowed
  })
  for (const { source, fingerprint, lastSeenAt } of silent) {
    await db.transaction().execute(async (trx) => {
      const beat = await lockBeat(trx, { source, fingerprint })
      // Skips a heartbeat that was received since it was found silent.
      if (!beat || beat.stoppedAt !== null || beat.lastSeenAt !== lastSeenAt) return
      await tell(trx, beat, 'firing', await databaseTime(trx))
      await markStopped(trx, beat)
    })
  }
  return silent.length > 0
}

/** Handles an end that the sender reports: the alert that always fires has stopped. */
async function endHeartbeat(trx: Trx, alert: Alert): Promise<IngestResult> {
  const beat = await lockBeat(trx, alert)
  if (!beat || beat.stoppedAt !== null) return ingestResult(alert, null, 'heartbeat')
  const { wakesQueue, tellRun, incidentId } = await tell(trx, beat, 'firing', await databaseTime(trx))
  await markStopped(trx, beat)
  return ingestResult(alert, incidentId, 'heartbeat', { wakesQueue, tellRun })
}

/** Stores a repeat of a heartbeat. Returns its previous row if it had stopped; otherwise null. */
async function count(trx: Trx, { source, fingerprint, name, labels }: Alert): Promise<Heartbeat | null> {
  const before = await lockBeat(trx, { source, fingerprint })
  await trx
    .insertInto('heartbeat')
    .values({ source, fingerprint, name, labels: JSON.stringify(labels) })
    .onConflict((conflict) =>
      conflict.columns(['source', 'fingerprint']).doUpdateSet({
        sights: sql`heartbeat.sights + 1`,
        // Leaves a silence for which an incident opened out of the longest gap, because it is not a
        // usual gap.
        longestGapSeconds: sql`case when heartbeat.stopped_at is not null then heartbeat.longest_gap_seconds
          else greatest(heartbeat.longest_gap_seconds, extract(epoch from nightshift_now() - heartbeat.last_seen_at)) end`,
        lastSeenAt: now,
        labels: JSON.stringify(labels),
        stoppedAt: null,
      }),
    )
    .execute()
  return before?.stoppedAt ? before : null
}

async function lockBeat(trx: Trx, { source, fingerprint }: Pick<Heartbeat, 'source' | 'fingerprint'>) {
  return await trx
    .selectFrom('heartbeat')
    .selectAll()
    .where('source', '=', source)
    .where('fingerprint', '=', fingerprint)
    .forUpdate()
    .executeTakeFirst()
}

async function markStopped(trx: Trx, { source, fingerprint }: Heartbeat): Promise<void> {
  await trx
    .updateTable('heartbeat')
    .set({ stoppedAt: now })
    .where('source', '=', source)
    .where('fingerprint', '=', fingerprint)
    .execute()
}

async function tell(trx: Trx, beat: Heartbeat, status: Alert['status'], now: string): Promise<IngestResult> {
  return await takeAlert(trx, silenceAlert(beat, status, now))
}
