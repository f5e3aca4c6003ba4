import { sql } from 'kysely'
import type { Alert, IngestOutcome } from '../domain/alert.ts'
import { systemActor } from '../domain/event.ts'
import { newId } from '../domain/id.ts'
import { incidentTypeOf } from '../domain/incident.ts'
import { cleanse } from '../safety/cleanse.ts'
import { append } from './append.ts'
import type { Db, Trx } from './connect.ts'
import { closeIncident, lockIncident, openIncident, reopenIncident } from './incidents.ts'
import { resourceOfLabels } from './inventory.ts'
import type { AlertRow } from './tables.ts'
import { onceNow } from './time.ts'

/** A re-fire this soon after its incident was resolved is the same trouble coming back. */
const reopenWindowMinutes = 30
/** Coming back more often than this in a day is not something another automatic repair will mend. */
const reopensPerDay = 3

export type Ingested = {
  fingerprint: string
  incidentId: string | null
  outcome: IngestOutcome
  /** All alerts of this incident have ended while a run works on it: that run is to be told. */
  resolvedWhileRunning: boolean
}

/** Takes one alert in, in one transaction of its own: stored, counted, joined to or opening its incident. */
export async function ingestAlert(db: Db, received: Alert): Promise<Ingested> {
  // Whoever can raise an alert can write anything into it.
  const alert = cleanse(received)
  return await db.transaction().execute(async (trx) => {
    // Two deliveries of one fingerprint at once (an HA pair of senders) must come one after the other.
    await sql`select pg_advisory_xact_lock(hashtextextended(${`${alert.source}/${alert.fingerprint}`}, 0))`.execute(trx)
    return alert.status === 'firing' ? await fire(trx, alert) : await resolve(trx, alert)
  })
}

async function fire(trx: Trx, alert: Alert): Promise<Ingested> {
  const open = await trx
    .updateTable('alert')
    .set((update) => ({ count: update('count', '+', 1), lastSeenAt: sql`nightshift_now()` as never }))
    .where('source', '=', alert.source)
    .where('fingerprint', '=', alert.fingerprint)
    .where('status', '=', 'firing')
    .returning('incidentId')
    .executeTakeFirst()
  if (open) return done(alert, open.incidentId, 'repeated')

  const last = await lastResolved(trx, alert)
  if (last?.early) {
    // Its resolve overtook it: the trouble is over already, and is stored as such.
    await trx
      .updateTable('alert')
      .set({ count: last.count + 1, lastSeenAt: sql`nightshift_now()` as never })
      .where('id', '=', last.id)
      .execute()
    return done(alert, last.incidentId, 'orphan')
  }
  if (last?.incidentId && last.recent) return await fireAgain(trx, alert, last.incidentId)

  const incident = await openIncident(trx, {
    type: incidentTypeOf(alert.labels, alert.name),
    severity: alert.severity,
    severitySource: alert.severitySource,
    title: alert.title,
    resource: await resourceOfLabels(trx, alert.labels),
    requestedBy: null,
  })
  await storeAlert(trx, alert, incident.id)
  await appendAlert(trx, incident.id, alert, 'opened')
  return done(alert, incident.id, 'opened')
}

/** The same alert within the window: it goes back to the incident it had. */
async function fireAgain(trx: Trx, alert: Alert, incidentId: string): Promise<Ingested> {
  const incident = await lockIncident(trx, incidentId)
  await storeAlert(trx, alert, incidentId)
  if (incident?.status !== 'resolved') {
    await appendAlert(trx, incidentId, alert, 'repeated')
    return done(alert, incidentId, 'repeated')
  }
  const { count } = await trx
    .selectFrom('incidentEvent')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('incidentId', '=', incidentId)
    .where('kind', '=', 'alert_received')
    .where(sql<boolean>`metadata->>'outcome' = 'reopened'`)
    .where('at', '>', sql<string>`nightshift_now() - interval '1 day'`)
    .executeTakeFirstOrThrow()
  await reopenIncident(trx, incidentId)
  if (count < reopensPerDay) {
    await appendAlert(trx, incidentId, alert, 'reopened')
    return done(alert, incidentId, 'reopened')
  }
  await appendAlert(trx, incidentId, alert, 'escalated')
  await closeIncident(
    trx,
    incidentId,
    null,
    {
      status: 'escalated',
      code: 'FLAPPING',
      reason: `The alert came back after it was resolved, more than ${reopensPerDay} times in a day: repairing it again would hide the cause`,
    },
    { actor: systemActor, stepKey: null },
  )
  return done(alert, incidentId, 'escalated')
}

async function resolve(trx: Trx, alert: Alert): Promise<Ingested> {
  const open = await trx
    .updateTable('alert')
    .set({
      status: 'resolved',
      endsAt: alert.endsAt ?? (sql`nightshift_now()` as never),
      lastSeenAt: sql`nightshift_now()` as never,
    })
    .where('source', '=', alert.source)
    .where('fingerprint', '=', alert.fingerprint)
    .where('status', '=', 'firing')
    .returning('incidentId')
    .executeTakeFirst()
  if (!open) {
    const last = await lastResolved(trx, alert)
    if (last) {
      await trx
        .updateTable('alert')
        .set({ count: last.count + 1, lastSeenAt: sql`nightshift_now()` as never })
        .where('id', '=', last.id)
        .execute()
      return done(alert, last.incidentId, last.incidentId ? 'resolved' : 'orphan')
    }
    await storeAlert(trx, alert, null)
    return done(alert, null, 'orphan')
  }
  if (!open.incidentId) return done(alert, null, 'resolved')

  const incident = await lockIncident(trx, open.incidentId)
  await appendAlert(trx, open.incidentId, alert, 'resolved')
  const firing = await trx
    .selectFrom('alert')
    .select('id')
    .where('incidentId', '=', open.incidentId)
    .where('status', '=', 'firing')
    .limit(1)
    .executeTakeFirst()
  if (firing || !incident) return done(alert, open.incidentId, 'resolved')
  if (incident.status === 'open') await closeSelfResolved(trx, open.incidentId)
  const running = incident.status === 'investigating' || incident.status === 'awaiting_approval'
  return { ...done(alert, open.incidentId, 'resolved'), resolvedWhileRunning: running }
}

/** With no run at work there is nobody to tell: the incident ends here. */
async function closeSelfResolved(trx: Trx, incidentId: string): Promise<void> {
  await closeIncident(
    trx,
    incidentId,
    null,
    {
      status: 'resolved',
      outcome: 'self_resolved',
      resolution: 'Every alert of this incident ended before an investigation began',
      claims: [],
      confidence: null,
    },
    { actor: systemActor, stepKey: null },
  )
}

function done(alert: Alert, incidentId: string | null, outcome: IngestOutcome): Ingested {
  return { fingerprint: alert.fingerprint, incidentId, outcome, resolvedWhileRunning: false }
}

async function lastResolved(trx: Trx, alert: Alert) {
  return await trx
    .selectFrom('alert')
    .select(['id', 'incidentId', 'count'])
    .select(sql<boolean>`last_seen_at > nightshift_now() - make_interval(mins => ${reopenWindowMinutes})`.as('recent'))
    .select(sql<boolean>`incident_id is null and starts_at = ${alert.startsAt}::timestamptz`.as('early'))
    .where('source', '=', alert.source)
    .where('fingerprint', '=', alert.fingerprint)
    .where('status', '=', 'resolved')
    .orderBy('lastSeenAt', 'desc')
    .limit(1)
    .executeTakeFirst()
}

async function storeAlert(trx: Trx, alert: Alert, incidentId: string | null): Promise<void> {
  await trx
    .insertInto('alert')
    .values({
      id: newId('alr'),
      source: alert.source,
      fingerprint: alert.fingerprint,
      status: alert.status,
      name: alert.name,
      labels: JSON.stringify(alert.labels),
      annotations: JSON.stringify(alert.annotations),
      links: JSON.stringify(alert.links),
      groupKey: alert.groupKey,
      startsAt: alert.startsAt,
      endsAt: alert.endsAt,
      incidentId,
      raw: JSON.stringify(alert),
    })
    .execute()
}

async function appendAlert(trx: Trx, incidentId: string, alert: Alert, outcome: IngestOutcome): Promise<void> {
  const notes: string[] = []
  if (alert.severitySource === 'default') {
    notes.push(
      `severity ${alert.severity} by default: the source said ${alert.severityWord === null ? 'nothing' : JSON.stringify(alert.severityWord)}`,
    )
  }
  if (alert.truncatedAlerts > 0) notes.push(`the sender cut ${alert.truncatedAlerts} more alerts of this group`)
  if (alert.cappedFields.length > 0) notes.push(`shortened: ${alert.cappedFields.join(', ')}`)
  const { count } = await trx
    .selectFrom('alert')
    .select(({ fn }) => fn.coalesce(fn.sum<number>('count'), sql<number>`0`).as('count'))
    .where('incidentId', '=', incidentId)
    .executeTakeFirstOrThrow()
  const what = alert.status === 'firing' ? 'Alert received' : 'Alert ended'
  await append(trx, incidentId, null, {
    kind: 'alert_received',
    actor: `source:${alert.source}`,
    detail: [`${what}: ${alert.title}`, ...notes].join('; '),
    metadata: {
      fingerprint: alert.fingerprint,
      source: alert.source,
      status: alert.status,
      count: Number(count),
      labels: alert.labels,
      severityWord: alert.severityWord,
      severitySource: alert.severitySource,
      truncatedAlerts: alert.truncatedAlerts,
      cappedFields: alert.cappedFields,
      outcome,
    },
  })
}

export async function alertsOf(db: Db | Trx, incidentId: string): Promise<AlertRow[]> {
  return await db
    .selectFrom('alert')
    .selectAll()
    .where('incidentId', '=', incidentId)
    .orderBy('startsAt')
    .limit(50)
    .execute()
}

/** Alerts as they were taken in, newest first. */
export async function listAlerts(
  db: Db,
  filter: { status?: 'firing' | 'resolved'; source?: string; q?: string },
  page: { before: string | null; limit: number },
): Promise<AlertRow[]> {
  let query = db.selectFrom('alert').selectAll().orderBy('id', 'desc').limit(page.limit)
  if (filter.status) query = query.where('status', '=', filter.status)
  if (filter.source) query = query.where('source', '=', filter.source)
  if (filter.q) {
    const pattern = `%${filter.q.replace(/[\\%_]/g, (character) => `\\${character}`)}%`
    query = query.where((where) =>
      where.or([
        where('name', 'ilike', pattern),
        where('fingerprint', 'ilike', pattern),
        where(sql<string>`raw->>'title'`, 'ilike', pattern),
      ]),
    )
  }
  if (page.before) query = query.where('id', '<', page.before)
  return await query.execute()
}

/** How long an ended alert still counts as active (seed 000, `active_alerts/2`). */
const retentionSeconds = 300

/** Alerts firing now, or ended within 300 s, whose labels name the resource. */
export async function activeAlerts(db: Db, resourceId: string): Promise<AlertRow[]> {
  return await db
    .selectFrom('alert')
    .selectAll()
    .where((where) =>
      where.or([
        where('status', '=', 'firing'),
        where.and([
          where('status', '=', 'resolved'),
          where('endsAt', '>', sql<string>`${onceNow} - make_interval(secs => ${retentionSeconds})`),
        ]),
      ]),
    )
    .where(
      sql<boolean>`${resourceId} in (labels->>'shard', labels->>'node', labels->>'tenant', labels->>'host', labels->>'vm', labels->>'instance')`,
    )
    .orderBy('startsAt', 'desc')
    .limit(50)
    .execute()
}
