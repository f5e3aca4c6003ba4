import { sql } from 'kysely'
import {
  admittedTypes,
  type CriticalRoom,
  type InvestigateFilter,
  keptReasonOf,
  type LeadingType,
  type WaitingType,
} from '../../domain/admission.ts'
import { newId } from '../../domain/digest.ts'
import { type NewEvent, systemActor } from '../../domain/event.ts'
import type { IncidentStatus, Severity } from '../../domain/incident.ts'
import { reopenText } from '../../domain/lifecycle.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import { questionType } from '../../domain/question.ts'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { append } from '../log/append.ts'
import { readSettings, type SettingsReader } from '../settings.ts'
import type { IncidentRow } from '../tables.ts'
import { causeGrade } from '../trust/grade.ts'
import { lockIncident } from './incidents.ts'

/** Sorts incidents by severity, critical incidents first. */
export const urgency = sql`case severity when 'critical' then 0 when 'warning' then 1 else 2 end`

/** Maximum number of incidents that one tick assigns, over all types. */
const maxStamps = 20
/**
 * Seconds for which an assigned type occupies its slot although none of its incidents is claimed
 * yet.
 */
const settlingSeconds = 45

/**
 * Slots of incidents: one leader for each type. Critical incidents and people's questions have
 * additional slots.
 */
type QueueSlots = { incidents: number; critical: number; questions: number }

/**
 * One tick of the queue. Assigns a group to up to 20 open incidents and returns the types to wake.
 * Questions come first and use separate slots, so that no storm delays them. A type that is being
 * investigated continues. A free slot goes to the type with the most urgent, then oldest, incident
 * (`domain/admission.ts`). Types take turns, so that a type with many incidents does not block the
 * others. An incident that waits for a person occupies no slot.
 */
export async function stampQueue(db: Db, slots: QueueSlots): Promise<string[]> {
  return await db.transaction().execute(async (trx) => {
    // Locks the queue, so that a triggered tick and the scheduled tick do not give one slot away
    // twice.
    await sql`select pg_advisory_xact_lock(hashtextextended('queue', 0))`.execute(trx)
    const questions = await stampQuestions(trx, slots.questions)
    const room = await criticalRoom(trx, slots.critical)
    const types = admittedTypes(await waitingTypes(trx), await leadingTypes(trx), slots.incidents, room)
    if (types.length === 0) return questions

    const { rows } = await sql<{ id: string; type: string }>`
      select id, type from (
        select id, type, severity, created_at, row_number() over (
          partition by type order by ${urgency}, created_at
        ) as place
        from incident
        where ${isWaiting} and group_id is null and type = any(${types})
      ) ranked
      order by place, ${urgency}, created_at
      limit ${maxStamps}`.execute(trx)
    for (const type of types) {
      await stamp(
        trx,
        type,
        rows.filter((row) => row.type === type).map((row) => row.id),
      )
    }
    return [...questions, ...types]
  })
}

async function stamp(trx: Trx, type: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await trx
    .updateTable('incident')
    .set({ groupId: (await currentGroup(trx, type)) ?? newId('grp'), queuedAt: now })
    .where('id', 'in', ids)
    .where('status', '=', 'open')
    .where('groupId', 'is', null)
    .execute()
}

/**
 * Takes as many questions of people as there are slots, the oldest first. Returns the types that
 * may begin.
 */
async function stampQuestions(trx: Trx, slots: number): Promise<string[]> {
  const free = slots - (await questionsAtWork(trx))
  if (free <= 0) return []
  const waiting = await trx
    .selectFrom('incident')
    .select('id')
    .where('type', '=', questionType)
    .where(isWaiting)
    .orderBy('createdAt')
    .limit(free)
    .execute()
  await stamp(
    trx,
    questionType,
    waiting.map(({ id }) => id),
  )
  return waiting.length > 0 ? [questionType] : []
}

/** Counts questions that a run works on. A question that waits for a person takes no slot. */
export async function questionsAtWork(db: Db | Trx): Promise<number> {
  const { count } = await db
    .selectFrom('incident')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('type', '=', questionType)
    .where('status', '=', 'investigating')
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Whether an incident waits to be investigated. */
export const isWaiting = sql<boolean>`(
  type <> ${manualChangeType} and status = 'open' and assigned_to is null and kept_reason is null and look_wanted is distinct from 'expected')`

/** Whether an incident is being investigated, or is assigned to a group and about to be. */
const isAtWork = (
  incident: 'incident' | 'busy',
) => sql<boolean>`(${sql.ref(`${incident}.type`)} <> ${manualChangeType} and (${sql.ref(`${incident}.status`)} = 'investigating'
  or (${sql.ref(`${incident}.status`)} = 'open'
    and ${sql.ref(`${incident}.queuedAt`)} > (select nightshift_now()) - make_interval(secs => ${settlingSeconds}))))`

/** Lists types of incidents to investigate, by their most urgent incident, then the oldest. */
export async function waitingTypes(trx: Db | Trx): Promise<WaitingType[]> {
  const { rows } = await sql<WaitingType>`
    select type, bool_or(severity = 'critical') as is_critical, exists (
      select 1 from incident busy where busy.type = incident.type and ${isAtWork('busy')}
    ) as is_at_work
    from incident where ${isWaiting} and type <> ${questionType}
    group by type order by min(${urgency}), min(created_at)`.execute(trx)
  return rows
}

/**
 * Lists types whose leader is at work, and types that were just assigned and have no leader yet.
 */
export async function leadingTypes(trx: Db | Trx): Promise<LeadingType[]> {
  const { rows } = await sql<LeadingType>`
    select type, bool_or(severity = 'critical') as is_critical from incident
    where ${isAtWork('incident')} and type <> ${questionType} and (
      (role = 'leader' and status = 'investigating')
      or (status = 'open' and not exists (
        select 1 from incident leader
        where leader.group_id = incident.group_id and leader.role = 'leader' and leader.status <> 'open')))
    group by type`.execute(trx)
  return rows
}

/** Counts critical incidents that are being investigated, as leader or follower. */
export async function criticalRoom(trx: Db | Trx, max: number): Promise<CriticalRoom> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from incident
    where severity = 'critical' and status = 'investigating' and type <> ${manualChangeType}`.execute(trx)
  return { max, atWork: rows[0]?.count ?? 0 }
}

/**
 * Leaves an incident to people if `agent.investigate` does not select it. The incident stays open
 * with the reason, and a person can request its investigation. The caller has just opened or
 * reopened it.
 */
export async function keepIfNotInvestigated(
  trx: Trx,
  incidentId: string,
  labels: Record<string, string>,
): Promise<void> {
  const row = await lockIncident(trx, incidentId)
  if (row?.status !== 'open') return
  const filter = (await readSettings(trx)).value<InvestigateFilter>('agent.investigate', row.type)
  const reason = keptReasonOf(filter, { severity: row.severity, labels })
  if (reason !== null) await keep(trx, incidentId, reason)
}

/** Leaves a waiting incident to people. The caller holds the incident's lock. */
export async function keep(trx: Trx, incidentId: string, reason: string): Promise<void> {
  await trx.updateTable('incident').set({ keptReason: reason }).where('id', '=', incidentId).execute()
  await append(trx, incidentId, null, notInvestigatedEvent(reason))
}

type Kept = Pick<IncidentRow, 'id' | 'type' | 'severity' | 'requestedBy'>

/**
 * Explains why the current `agent.investigate` leaves a waiting incident to people; null if it
 * selects the incident. An incident is always investigated if a person opened or requested it, if
 * an agent has begun, or if its repair did not last.
 */
export async function keptNow(db: Db | Trx, row: Kept, settings: SettingsReader): Promise<string | null> {
  const filter = settings.value<InvestigateFilter>('agent.investigate', row.type)
  if (row.requestedBy !== null || filter?.length === 0) return null
  const alert = await db
    .selectFrom('alert')
    .select('labels')
    .where('incidentId', '=', row.id)
    .orderBy('lastSeenAt', 'desc')
    .limit(1)
    .executeTakeFirst()
  const reason = alert ? keptReasonOf(filter, { severity: row.severity, labels: alert.labels }) : null
  return reason === null || (await goesOn(db, row.id)) ? null : reason
}

/**
 * Whether the newest row shows that a person requested the investigation, or that an agent
 * continues.
 */
async function goesOn(db: Db | Trx, incidentId: string): Promise<boolean> {
  const { rows } = await sql<{ goesOn: boolean }>`
    select kind <> 'noted' or metadata->>'text' = ${reopenText.did_not_last} as "goesOn"
    from incident_event
    where incident_id = ${incidentId} and (kind = 'claimed' or (kind = 'noted' and metadata->>'code' = 'reopened')
      or (kind = 'commented' and metadata->>'action' = 'investigate_requested'))
    order by seq desc limit 1`.execute(db)
  return rows[0]?.goesOn ?? false
}

export function notInvestigatedEvent(reason: string): NewEvent<'noted'> {
  const text = `Not investigated: ${reason}`
  return { kind: 'noted', actor: systemActor, detail: text, metadata: { code: 'kept', text } }
}

/**
 * Finds the group that new incidents of a type join: a group in which an incident is at work or
 * queued. Null if there is none.
 */
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

export type GroupMember = { incidentId: string; attempt: number; severity: Severity }

export type Leader = {
  incidentId: string
  severity: Severity
  status: IncidentStatus
  /** Seconds for which the leader has waited for a person. */
  waitingSeconds: number
  /** Seconds since the leader was assigned. A run claims a leader directly after that. */
  atWorkSeconds: number
}

type GroupState = {
  groupId: string
  /** Open incidents of the group that no run has, the most urgent and oldest first. */
  members: GroupMember[]
  investigating: number
  leader: Leader | null
  /** How many followers are at work in all groups. */
  followersEverywhere: number
}

/**
 * Reads the current work of a group: the unclaimed incidents, how many are being investigated, and
 * the state of the leader. Null if no incident of this type is queued.
 */
export async function groupState(db: Db, type: string): Promise<GroupState | null> {
  const groupId = await currentGroup(db, type)
  if (!groupId) return null
  const rows = await db
    .selectFrom('incident')
    .select(['id', 'attempt', 'status', 'role', 'severity'])
    .select(sql<number>`extract(epoch from nightshift_now() - updated_at)::float8`.as('sinceSeconds'))
    .select(
      sql<number>`extract(epoch from nightshift_now() - coalesce(queued_at, updated_at))::float8`.as('queuedSeconds'),
    )
    .where('groupId', '=', groupId)
    .orderBy(urgency)
    .orderBy('createdAt')
    .execute()
  const leader = rows.find((row) => row.role === 'leader')
  return {
    groupId,
    members: rows
      .filter((row) => row.status === 'open')
      .map((row) => ({ incidentId: row.id, attempt: row.attempt + 1, severity: row.severity })),
    investigating: rows.filter((row) => row.status === 'investigating').length,
    leader: leader
      ? {
          incidentId: leader.id,
          severity: leader.severity,
          status: leader.status,
          waitingSeconds: leader.status === 'awaiting_approval' ? leader.sinceSeconds : 0,
          atWorkSeconds: leader.queuedSeconds,
        }
      : null,
    followersEverywhere: await followersAtWork(db),
  }
}

async function followersAtWork(db: Db): Promise<number> {
  const { count } = await db
    .selectFrom('incident')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('status', '=', 'investigating')
    .where('role', '=', 'follower')
    .executeTakeFirstOrThrow()
  return Number(count)
}

/**
 * Finds the leader from whose result a follower may start: a leader whose incident was resolved by
 * a verified repair.
 */
export async function hintLeader(db: Db, groupId: string): Promise<string | null> {
  const row = await db
    .selectFrom('incident')
    .select('id')
    .where('groupId', '=', groupId)
    .where('role', '=', 'leader')
    .where('status', '=', 'resolved')
    .where('outcome', '=', 'repaired')
    // Leaves out a leader whose cause a person graded as wrong.
    .where(sql<boolean>`${causeGrade('incident.id')} is distinct from 'wrong'`)
    .executeTakeFirst()
  return row?.id ?? null
}
