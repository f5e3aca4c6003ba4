import { sql } from 'kysely'
import type { Alert } from '../../domain/alert.ts'
import { isNewOccurrence } from '../../domain/occurrence.ts'
import { cleanse } from '../../safety/redact.ts'
import { databaseTime } from '../clock.ts'
import { type Db, isRefusedValue, type Trx } from '../connect.ts'
import type { AlertRow } from '../tables.ts'
import { countRepeats, type IngestResult, ingestResult, openIncidents } from './alerts.ts'
import { expectationsInForce } from './expectations.ts'
import { heartbeatNames, takeHeartbeat } from './heartbeats.ts'
import { IncidentGoneError, onlyCounts, seenAt, storedOccurrence, takeAlert } from './ingest-alert.ts'

/**
 * Number of alerts in one transaction. Each alert holds a lock, and PostgreSQL has space for a few
 * thousand locks. Most requests of Alertmanager have fewer alerts.
 */
export const alertsPerTransaction = 250
/** Attempts for a transaction that deadlocks. */
const maxTries = 3

/**
 * Stores the alerts of a request body in order. Each alert is stored, is counted, joins an incident
 * or opens an incident, as `domain/lifecycle.ts` decides. New alerts, and alerts that are only
 * counted, are written in sets; all other alerts are written one by one. One transaction holds at
 * most 250 alerts, so a body of up to 250 alerts is stored completely or not at all. The first part
 * of a longer body may be stored when the next part fails. The sender then repeats the request, and
 * the alerts that are already stored count as repeats.
 *
 * An alert whose values PostgreSQL refuses is `refused`, and all other alerts are stored. Of two
 * bodies that share an alert, the second waits. Lock order: sender and fingerprint, incident,
 * alert.
 */
export async function ingestBody(db: Db, received: readonly Alert[]): Promise<IngestResult[]> {
  const taken: IngestResult[] = []
  for (let from = 0; from < received.length; from += alertsPerTransaction) {
    // Removes secrets from the alerts, because an alert can contain any text of the sender.
    const alerts = received.slice(from, from + alertsPerTransaction).map((alert) => cleanse(alert))
    taken.push(...(await takeTogether(db, alerts)))
  }
  return taken
}

/** Stores one alert by `ingestBody`. Throws if the alert is refused. */
export async function ingestAlert(db: Db, received: Alert): Promise<IngestResult> {
  const [taken] = await ingestBody(db, [received])
  if (!taken || taken.outcome === 'refused') throw new Error(`the alert was refused: ${taken?.reason}`)
  return taken
}

async function takeTogether(db: Db, alerts: readonly Alert[]): Promise<IngestResult[]> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await db.transaction().execute((trx) => takeCleansed(trx, alerts))
    } catch (error) {
      const isPassing = (error as { code?: unknown }).code === '40P01' || error instanceof IncidentGoneError
      if (!isPassing || tries === maxTries) throw error
    }
  }
}

/**
 * Stores alerts whose secrets are removed in the caller's transaction, at most as many as one
 * transaction may hold.
 */
export async function takeCleansed(trx: Trx, alerts: readonly Alert[]): Promise<IngestResult[]> {
  await lockFingerprints(trx, alerts)
  const plan = await planOf(trx, alerts)
  const taken = new Map<number, IngestResult>()
  const alone = [...plan.alone]
  const wholeSets = [
    {
      of: plan.fresh,
      take: () =>
        openIncidents(
          trx,
          plan.fresh.map(({ alert }) => alert),
        ),
    },
    { of: plan.repeats, take: () => countAll(trx, plan.repeats) },
  ]
  for (const { of, take } of wholeSets) {
    if (of.length === 0) continue
    const outcome = await saved(trx, take)
    if (outcome.ok) for (const [index, { at }] of of.entries()) taken.set(at, outcome.value[index]!)
    // Tries each alert of the set separately, because one of them cannot be stored.
    else alone.push(...of.map(({ at, alert }) => ({ at, alert, incidentId: null, isHeartbeat: false })))
  }
  for (const { at, alert, isHeartbeat, incidentId } of alone.toSorted(byIncident)) {
    const take = () => (isHeartbeat ? takeHeartbeat(trx, alert, incidentId !== null) : takeAlert(trx, alert))
    const outcome = await saved(trx, take)
    taken.set(at, outcome.ok ? outcome.value : refused(alert, outcome.reason))
  }
  return alerts.map((_, at) => taken.get(at)!)
}

async function countAll(trx: Trx, repeats: Plan['repeats']): Promise<IngestResult[]> {
  await countRepeats(trx, repeats)
  return repeats.map(({ alert, current }) => ingestResult(alert, current.incidentId, 'repeated'))
}

const refused = ({ fingerprint }: Alert, reason: string): IngestResult => ({
  fingerprint,
  incidentId: null,
  outcome: 'refused',
  reason,
  wakesQueue: false,
  tellRun: null,
})

type Alone = { at: number; alert: Alert; incidentId: string | null; isHeartbeat: boolean }

/**
 * Orders incidents in one way for all requests, because incidents are locked in this order. Repeats
 * of an alert keep the order of the request.
 */
function byIncident(a: Alone, b: Alone): number {
  return (a.incidentId ?? '').localeCompare(b.incidentId ?? '') || a.at - b.at
}

async function lockFingerprints(trx: Trx, alerts: readonly Alert[]): Promise<void> {
  const keys = alerts.map(keyOf)
  await sql`
    select pg_advisory_xact_lock(lock) from (
      select distinct hashtextextended(key, 0) as lock from unnest(${keys}::text[]) key order by lock
    ) locks`.execute(trx)
}

export const keyOf = ({ source, fingerprint }: Pick<Alert, 'source' | 'fingerprint'>): string =>
  `${source}/${fingerprint}`

type Plan = {
  /** Alerts that were never received before and that no mark as expected concerns. */
  fresh: { at: number; alert: Alert }[]
  /** Alerts whose repeat is only counted. */
  repeats: { at: number; alert: Alert; current: AlertRow }[]
  alone: Alone[]
}

async function planOf(trx: Trx, alerts: readonly Alert[]): Promise<Plan> {
  const known = await knownRows(trx, alerts)
  const counting = await onlyCounts(
    trx,
    [...known.values()].flatMap(({ current }) => current?.incidentId ?? []),
  )
  const expects = await expectationsInForce(trx)
  const heartbeats = await heartbeatNames(trx)
  const now = await databaseTime(trx)
  const seen = new Set<string>()
  const plan: Plan = { fresh: [], repeats: [], alone: [] }
  for (const [at, alert] of alerts.entries()) {
    const key = keyOf(alert)
    const { current = null, last = null } = known.get(key) ?? {}
    const isFirst = !seen.has(key)
    seen.add(key)
    const isFresh = alert.status === 'firing' && isFirst && !current && !last
    if (heartbeats.has(alert.name))
      plan.alone.push({ at, alert, incidentId: current?.incidentId ?? null, isHeartbeat: true })
    else if (isFresh && !expects(alert)) plan.fresh.push({ at, alert })
    else if (isFirst && current && isCounted(alert, current, counting, now)) plan.repeats.push({ at, alert, current })
    else plan.alone.push({ at, alert, incidentId: current?.incidentId ?? last?.incidentId ?? null, isHeartbeat: false })
  }
  return plan
}

function isCounted(alert: Alert, current: AlertRow, counting: ReadonlySet<string>, now: string): boolean {
  if (alert.status !== 'firing' || current.status !== 'firing') return false
  if (alert.endReason !== undefined || (alert.stateWord ?? null) !== current.stateWord) return false
  if (isNewOccurrence(seenAt(alert, now), storedOccurrence(current))) return false
  return current.incidentId === null || counting.has(current.incidentId)
}

type Known = { current: AlertRow | null; last: { incidentId: string | null } | null }

/** Finds the current occurrence of each alert, and the newest occurrence that ended. */
async function knownRows(trx: Trx, alerts: readonly Alert[]): Promise<Map<string, Known>> {
  const rows = await trx
    .selectFrom('alert')
    .selectAll()
    .where((where) =>
      where(
        where.refTuple('source', 'fingerprint'),
        'in',
        alerts.map(({ source, fingerprint }) => where.tuple(source, fingerprint)),
      ),
    )
    .where((where) =>
      where.or([
        where('status', 'in', ['firing', 'unknown']),
        where('id', 'in', (all) =>
          all
            .selectFrom('alert as ended')
            .select('ended.id')
            .whereRef('ended.source', '=', 'alert.source')
            .whereRef('ended.fingerprint', '=', 'alert.fingerprint')
            .where('ended.status', '=', 'resolved')
            .orderBy('ended.lastSeenAt', 'desc')
            .limit(1),
        ),
      ]),
    )
    .execute()
  const known = new Map<string, Known>()
  for (const row of rows) {
    const about = known.get(keyOf(row)) ?? { current: null, last: null }
    if (row.status === 'resolved') about.last = row
    else about.current = row
    known.set(keyOf(row), about)
  }
  return known
}

type Saved<T> = { ok: true; value: T } | { ok: false; reason: string }

/** Runs work behind a savepoint. If PostgreSQL refuses a value, only this work is undone. */
async function saved<T>(trx: Trx, work: () => Promise<T>): Promise<Saved<T>> {
  await sql`savepoint taken`.execute(trx)
  try {
    const value = await work()
    await sql`release savepoint taken`.execute(trx)
    return { ok: true, value }
  } catch (error) {
    if (!isRefusedValue(error)) throw error
    await sql`rollback to savepoint taken`.execute(trx)
    await sql`release savepoint taken`.execute(trx)
    return { ok: false, reason: (error as Error).message }
  }
}
