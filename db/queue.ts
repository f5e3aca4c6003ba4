import { sql } from 'kysely'
import { systemActor } from '../domain/event.ts'
import { newId } from '../domain/id.ts'
import type { IncidentStatus } from '../domain/incident.ts'
import { type InvestigateFilter, keptReasonOf } from '../domain/investigate-filter.ts'
import { append } from './append.ts'
import type { Db, Trx } from './connect.ts'
import { lockIncident } from './incidents.ts'
import { readSettings } from './settings.ts'

const urgency = sql`case severity when 'critical' then 0 when 'warning' then 1 else 2 end`

/** How many incidents one tick stamps, over all types. */
const stampLimit = 20
/** A type that was stamped this recently occupies its slot although nothing of it has been claimed yet. */
const settlingSeconds = 45

/**
 * One turn of the queue: stamps a group on up to 20 unassigned open incidents and answers the types whose groups are to be
 * woken. Types with something at work keep their slot; free slots go to the type with the most urgent, then oldest incident;
 * incidents are taken from the types in rotation, so that a crowded type starves no other. Waiting for a person occupies
 * nothing.
 */
export async function stampQueue(db: Db, slots: number): Promise<string[]> {
  return await db.transaction().execute(async (trx) => {
    // The lock of the queue: a triggered tick beside the scheduled one must not give the same slot away twice.
    await sql`select pg_advisory_xact_lock(hashtextextended('queue', 0))`.execute(trx)
    const busy = await trx
      .selectFrom('incident')
      .select('type')
      .distinct()
      .where((where) =>
        where.or([
          where('status', '=', 'investigating'),
          where.and([
            where('status', '=', 'open'),
            where('queuedAt', '>', sql<string>`nightshift_now() - make_interval(secs => ${settlingSeconds})`),
          ]),
        ]),
      )
      .execute()
    const working = busy.map((row) => row.type)
    const waiting = await trx
      .selectFrom('incident')
      .select('type')
      .where('status', '=', 'open')
      .where('assignedTo', 'is', null)
      .where('keptReason', 'is', null)
      .where(sql<boolean>`look_wanted is distinct from 'expected'`)
      .groupBy('type')
      .orderBy(sql`min(case severity when 'critical' then 0 when 'warning' then 1 else 2 end)`)
      .orderBy(sql`min(created_at)`)
      .execute()
    const free = Math.max(0, slots - working.length)
    const admitted = waiting.map((row) => row.type).filter((type) => !working.includes(type))
    const types = [
      ...waiting.map((row) => row.type).filter((type) => working.includes(type)),
      ...admitted.slice(0, free),
    ]
    if (types.length === 0) return []

    const { rows } = await sql<{ id: string; type: string }>`
      select id, type from (
        select id, type, severity, created_at, row_number() over (
          partition by type order by ${urgency}, created_at
        ) as place
        from incident
        where status = 'open' and assigned_to is null and group_id is null and kept_reason is null
          and look_wanted is distinct from 'expected' and type = any(${types})
      ) ranked
      order by place, ${urgency}, created_at
      limit ${stampLimit}`.execute(trx)
    for (const type of types) {
      const ids = rows.filter((row) => row.type === type).map((row) => row.id)
      if (ids.length === 0) continue
      await trx
        .updateTable('incident')
        .set({
          groupId: (await currentGroup(trx, type)) ?? newId('grp'),
          queuedAt: sql`nightshift_now()` as never,
        })
        .where('id', 'in', ids)
        .where('status', '=', 'open')
        .execute()
    }
    return types
  })
}

/**
 * Leaves an incident to people where `agent.investigate` does not ask for it: it stays open, says why, and a person can still
 * have it investigated. The caller has just opened it, or opened it again.
 */
export async function keepIfNotInvestigated(
  trx: Trx,
  incidentId: string,
  labels: Record<string, string>,
): Promise<void> {
  const row = await lockIncident(trx, incidentId)
  if (row?.status !== 'open') return
  const settings = await readSettings(trx)
  const filter = settings.value<InvestigateFilter>('agent.investigate', row.type)
  const reason = keptReasonOf(filter, { severity: row.severity, labels })
  if (reason === null) return
  await trx.updateTable('incident').set({ keptReason: reason }).where('id', '=', incidentId).execute()
  const text = `Not investigated: ${reason}`
  await append(trx, incidentId, null, {
    kind: 'noted',
    actor: systemActor,
    detail: text,
    metadata: { code: 'kept', text },
  })
}

/** The group that late arrivals of a type join: one that still has something running or queued. */
async function currentGroup(db: Db | Trx, type: string): Promise<string | null> {
  const row = await db
    .selectFrom('incident')
    .select('groupId')
    .where('type', '=', type)
    .where('groupId', 'is not', null)
    .where('status', 'in', ['open', 'investigating', 'awaiting_approval'])
    .orderBy('queuedAt', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.groupId ?? null
}

type GroupMember = { incidentId: string; attempt: number }

type GroupState = {
  groupId: string
  /** Open and unassigned, the most urgent and oldest first. */
  members: GroupMember[]
  investigating: number
  leader: { incidentId: string; status: IncidentStatus; waitingSeconds: number } | null
}

/**
 * What a group has to do, read afresh each time: its members that nobody works on, how many are worked on, and how its leader
 * stands. Null when nothing of this type is queued.
 */
export async function groupState(db: Db, type: string): Promise<GroupState | null> {
  const groupId = await currentGroup(db, type)
  if (!groupId) return null
  const rows = await db
    .selectFrom('incident')
    .select(['id', 'attempt', 'status', 'role'])
    .select(sql<number>`extract(epoch from nightshift_now() - updated_at)::float8`.as('sinceSeconds'))
    .where('groupId', '=', groupId)
    .orderBy(urgency)
    .orderBy('createdAt')
    .execute()
  const leader = rows.find((row) => row.role === 'leader')
  return {
    groupId,
    members: rows
      .filter((row) => row.status === 'open')
      .map((row) => ({ incidentId: row.id, attempt: row.attempt + 1 })),
    investigating: rows.filter((row) => row.status === 'investigating').length,
    leader: leader
      ? {
          incidentId: leader.id,
          status: leader.status,
          waitingSeconds: leader.status === 'awaiting_approval' ? leader.sinceSeconds : 0,
        }
      : null,
  }
}

/** The leader whose resolution a follower may start from: resolved in this group, by a repair that held. */
export async function hintLeader(db: Db, groupId: string): Promise<string | null> {
  const row = await db
    .selectFrom('incident')
    .select('id')
    .where('groupId', '=', groupId)
    .where('role', '=', 'leader')
    .where('status', '=', 'resolved')
    .where('outcome', '=', 'repaired')
    .executeTakeFirst()
  return row?.id ?? null
}

/** Of an approval: somebody may still decide it, or the run has not had the time to read what was decided. */
const answerable = sql<boolean>`(
  (approval.status = 'pending' and approval.expires_at > nightshift_now() - interval '2 minutes')
  or (approval.status <> 'pending' and approval.decided_at > nightshift_now() - interval '5 minutes'))`

export type Overdue = { incidentId: string; attempt: number; why: 'silent' | 'unexpired' }

/**
 * Running incidents that no run seems to carry: investigating without a row for twice their time budget, or waiting for a
 * person two minutes past the expiry.
 */
export async function overdueIncidents(db: Db): Promise<Overdue[]> {
  const silent = await db
    .selectFrom('incident')
    .select(['id', 'attempt'])
    .where('status', '=', 'investigating')
    .where(sql<boolean>`last_event_at < nightshift_now() - make_interval(secs => 2 * time_budget_seconds)`)
    .limit(100)
    .execute()
  const unexpired = await db
    .selectFrom('incident')
    .select(['id', 'attempt'])
    .where('status', '=', 'awaiting_approval')
    // Each kind by its own key: one condition over both would go through all approvals for each that waits.
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('approval').select('id').whereRef('incidentId', '=', 'incident.id').where(answerable))),
    )
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('incidentEvent as joined')
            .innerJoin('approval', 'approval.id', sql<string>`joined.metadata->>'approvalId'` as never)
            .select('approval.id')
            .whereRef('joined.incidentId', '=', 'incident.id')
            .whereRef('joined.attempt', '=', 'incident.attempt')
            .where('joined.kind', '=', 'call_judged')
            .where(answerable),
        ),
      ),
    )
    .limit(100)
    .execute()
  return [
    ...silent.map((row) => ({ incidentId: row.id, attempt: row.attempt, why: 'silent' as const })),
    ...unexpired.map((row) => ({ incidentId: row.id, attempt: row.attempt, why: 'unexpired' as const })),
  ]
}

/** Lets members of a dead group go: queued for this long and claimed by nobody, they are stamped afresh by the next tick. */
export async function releaseStranded(db: Db, afterSeconds: number): Promise<number> {
  const released = await db
    .updateTable('incident')
    .set({ groupId: null, queuedAt: null })
    .where('status', '=', 'open')
    .where('groupId', 'is not', null)
    .where('queuedAt', '<', sql<string>`nightshift_now() - make_interval(secs => ${afterSeconds})`)
    .where((where) =>
      where.not(
        where.exists(
          where
            .selectFrom('incident as other')
            .select('other.id')
            .whereRef('other.groupId', '=', 'incident.groupId')
            .where('other.status', 'in', ['investigating', 'awaiting_approval']),
        ),
      ),
    )
    .returning('id')
    .execute()
  return released.length
}

/** Runs one piece of work in at most one process at a time; answers null at once where another is at it. */
export async function withAdvisoryLock<T>(db: Db, name: string, work: () => Promise<T>): Promise<T | null> {
  return await db.connection().execute(async (connection) => {
    const { rows } = await sql<{ taken: boolean }>`
      select pg_try_advisory_lock(hashtextextended(${name}, 0)) as taken`.execute(connection)
    if (!rows[0]?.taken) return null
    try {
      return await work()
    } finally {
      await sql`select pg_advisory_unlock(hashtextextended(${name}, 0))`.execute(connection)
    }
  })
}
