import { sql } from 'kysely'
import { mayDecide, mayDecideEverywhere } from '../../domain/approvers.ts'
import { newId } from '../../domain/digest.ts'
import { formatMinute } from '../../domain/format.ts'
import { isType } from '../../domain/incident-type.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import { type ResourceRef, resourceKey } from '../../domain/registry.ts'
import type { RunRef } from '../../domain/step-key.ts'
import {
  describeStop,
  describeStopTerms,
  type KindStop,
  nameScope,
  type StopScope,
  scopeOfRow,
  stopName,
} from '../../domain/stop.ts'
import { deciderOf, lockOperator } from '../access/operators.ts'
import { withdrawPending } from '../approvals/settle.ts'
import { databaseTime, now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import type { Person } from '../incidents/close-incident.ts'
import { lockIncident } from '../incidents/incidents.ts'
import { otherNames } from '../inventory/registry.ts'
import { recordAudit } from '../log/audit.ts'

/**
 * Lists current stops, the oldest first. The reason of the person is only in the audit log, after
 * the terms of the stop.
 */
export async function standingStops(db: Db | Trx): Promise<KindStop[]> {
  const { rows } = await sql<KindStop>`
    select stop.id, stop.at, stop.incident_type as type, stop.tool, stop.until, operator.name as by,
      case when stop.resource_kind is not null
        then jsonb_build_object('kind', stop.resource_kind, 'id', stop.resource_id) end as resource,
      coalesce((select substr(detail, strpos(detail, ': ') + 2) from audit
        where audit.tx = stop.tx and what = 'trust.stopped' limit 1), '') as reason
    from trust_stop as stop join operator on operator.id = stop.set_by
    where stop.ended_at is null and (stop.until is null or stop.until > nightshift_now())
    order by stop.at, stop.id`.execute(db)
  return rows
}

export type StoppableCall = { type: string; tool: string; targets: readonly ResourceRef[] }

/**
 * Finds the stop that blocks a write, in the transaction of the policy decision. A person who sets
 * a stop waits for policy decisions in progress, and later decisions see the stop. Once the stop is
 * stored, no write of its kind is therefore asked about or begun.
 */
export async function stopOf(trx: Trx, call: StoppableCall): Promise<KindStop | null> {
  await sql`select pg_advisory_xact_lock_shared(hashtextextended('trust stops', 0))`.execute(trx)
  return await findStop(trx, await standingStops(trx), call)
}

/** Finds the first stop that applies to a call. A resource is compared by all its names. */
async function findStop(
  db: Db | Trx,
  stops: readonly KindStop[],
  { type, tool, targets }: StoppableCall,
): Promise<KindStop | null> {
  const ofKind = stops.filter(
    (stop) => (isType(stop.type, type) || isType(type, stop.type)) && (stop.tool === null || stop.tool === tool),
  )
  const wide = ofKind.find(({ resource }) => resource === null)
  if (wide || ofKind.length === 0) return wide ?? null
  const others = await otherNames(db, targets)
  const keys = new Set([...targets, ...[...others.values()].flat()].map(resourceKey))
  return ofKind.find(({ resource }) => resource !== null && keys.has(resourceKey(resource))) ?? null
}

type StopOutcome =
  | { outcome: 'stopped'; stop: KindStop }
  | { outcome: 'forbidden' | 'conflict' | 'late'; message: string }

/**
 * Stops a kind of write for the whole installation. Every person who may decide approvals may stop
 * it.
 */
export async function setStop(
  db: Db,
  person: Person,
  { until, reason, ...scope }: StopScope & { until: string | null; reason: string },
): Promise<StopOutcome> {
  return await db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(hashtextextended('trust stops', 0))`.execute(trx)
    const operator = await lockOperator(trx, person.operatorId)
    if (!operator || operator.disabledAt !== null)
      return { outcome: 'forbidden', message: `${person.name} is disabled` }
    const at = await databaseTime(trx)
    if (until !== null && Date.parse(until) <= Date.parse(at))
      return {
        outcome: 'late',
        message: `its end, ${formatMinute(until)}, is in the past: the time is ${formatMinute(at)} now`,
      }
    const same = (await standingStops(trx)).find(
      (stop) => nameScope(stop) === nameScope(scope) && isAsLong(stop, until),
    )
    if (same) return { outcome: 'conflict', message: `${nameScope(scope)} is ${describeStop(same)}` }
    const { type, tool, resource } = scope
    const id = newId('stp')
    await trx
      .insertInto('trustStop')
      .values({
        ...{ id, incidentType: type, tool, until, setBy: person.operatorId },
        ...{ resourceKind: resource?.kind ?? null, resourceId: resource?.id ?? null },
      })
      .execute()
    const detail = `${describeStopTerms({ ...scope, until })}: ${reason}`
    await recordAudit(trx, { who: person.name, what: 'trust.stopped', subject: stopName(scope), detail })
    return { outcome: 'stopped', stop: { ...scope, id, at, until, by: person.name, reason } }
  })
}

const isAsLong = (stop: KindStop, until: string | null): boolean =>
  stop.until === null || (until !== null && Date.parse(until) <= Date.parse(stop.until))

type ResumeOutcome =
  | { outcome: 'resumed'; stop: StopScope }
  | { outcome: 'not_found' | 'forbidden' | 'conflict'; message: string }

/**
 * Ends a stop. The person needs the right to decide about a stopped write now, because more is
 * allowed afterwards.
 */
export async function resumeStop(
  db: Db,
  person: Person,
  id: string,
  { reason, risk }: { reason: string; risk(tool: string | null): string },
): Promise<ResumeOutcome> {
  return await db.transaction().execute(async (trx) => {
    const row = await trx.selectFrom('trustStop').selectAll().where('id', '=', id).forUpdate().executeTakeFirst()
    if (!row) return { outcome: 'not_found', message: `there is no stop ${id}` }
    const scope = scopeOfRow(row)
    const at = await databaseTime(trx)
    const over = row.endedAt ? `was resumed at ${formatMinute(row.endedAt)}` : row.until && row.until <= at && 'is over'
    if (over) return { outcome: 'conflict', message: `the stop of ${nameScope(scope)} ${over}` }
    const operator = await lockOperator(trx, person.operatorId)
    if (!operator) return { outcome: 'forbidden', message: 'no user has this name' }
    const asked = { risk: risk(row.tool), incidentType: row.incidentType, at }
    const refused = scope.resource
      ? mayDecide(deciderOf(operator), { ...asked, targets: [scope.resource] })
      : mayDecideEverywhere(deciderOf(operator), asked)
    if (refused) return { outcome: 'forbidden', message: refused }
    await trx.updateTable('trustStop').set({ endedAt: now, endedBy: person.operatorId }).where('id', '=', id).execute()
    const detail = `Resumes ${nameScope(scope)}: ${reason}`
    await recordAudit(trx, { who: person.name, what: 'trust.resumed', subject: stopName(scope), detail })
    return { outcome: 'resumed', stop: scope }
  })
}

/**
 * Withdraws questions of the agent that a stop blocks, and approvals whose call has not begun.
 * Returns the runs that waited for them.
 */
export async function withdrawStopped(db: Db): Promise<RunRef[]> {
  if ((await standingStops(db)).length === 0) return []
  const open = await db
    .selectFrom('approval')
    .innerJoin('incident', 'incident.id', 'approval.incidentId')
    .select(['approval.id', 'approval.incidentId', 'approval.tool', 'approval.targets', 'incident.type'])
    .where('approval.status', 'in', ['pending', 'approved'])
    .where('incident.type', '!=', manualChangeType)
    .where('incident.status', 'in', ['investigating', 'awaiting_approval'])
    .orderBy('approval.id')
    .execute()
  const runs: RunRef[] = []
  for (const { id, incidentId, type, tool, targets } of open) {
    const run = await db.transaction().execute(async (trx) => {
      // Withdraws nothing if the stop was resumed since.
      const stop = await findStop(trx, await standingStops(trx), { type, tool, targets: targets as ResourceRef[] })
      const row = stop && (await lockIncident(trx, incidentId))
      if (row) await withdrawPending(trx, incidentId, `${nameScope(stop)} is ${describeStop(stop)}`, id)
      return row && { incidentId, attempt: row.attempt }
    })
    if (run) runs.push(run)
  }
  return runs
}

/** Lists types of incidents that exist or have a level: the wanted types, and the newest types. */
export async function typesSeen(db: Db, wanted: readonly string[]): Promise<{ isKnown: boolean; types: string[] }> {
  const known = await sql<{ known: boolean }>`
    select exists (select from incident where type = any(${[...wanted]}))
      or exists (select from trust_change where incident_type = any(${[...wanted]})) as known`.execute(db)
  const { rows } = await sql<{ type: string }>`
    select distinct type from (select type from incident order by created_at desc, id desc limit 5000) as newest`.execute(
    db,
  )
  return { isKnown: known.rows[0]?.known ?? false, types: rows.map(({ type }) => type) }
}
