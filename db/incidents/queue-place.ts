import { sql } from 'kysely'
import { admittedTypes, waitForLeader } from '../../domain/admission.ts'
import type { QueuePlace, QueueReason, Severity } from '../../domain/incident.ts'
import { questionType } from '../../domain/question.ts'
import type { Db } from '../connect.ts'
import { spentCap } from '../models/spend.ts'
import type { Scope } from '../scope.ts'
import { type EnvironmentDefaults, readSettings, type SettingsReader } from '../settings.ts'
import {
  criticalRoom,
  groupState,
  isWaiting,
  keptNow,
  leadingTypes,
  questionsAtWork,
  urgency,
  waitingTypes,
} from './queue.ts'

type Waiting = { id: string; type: string; severity: Severity; groupId: string | null; requestedBy: string | null }

type Reason = { why: QueueReason; text: string; over: 'type' | 'all' }

/**
 * Finds the place of a waiting incident in the queue, by the rules of the queue itself. Null if the
 * incident does not wait.
 */
export async function queuePlaceOf(
  { db }: Scope,
  incidentId: string,
  environment: EnvironmentDefaults = {},
): Promise<QueuePlace | null> {
  const own = await db
    .selectFrom('incident')
    .select(['id', 'type', 'severity', 'groupId', 'requestedBy'])
    .where('id', '=', incidentId)
    .where(isWaiting)
    .executeTakeFirst()
  if (!own) return null
  const settings = await readSettings(db, environment)
  const { why, text, over } = await reasonOf(db, own, settings)
  const ahead = await countAhead(db, incidentId, over === 'type' || own.type === questionType ? own.type : null)
  return { ahead, why, text: `Queued, ${ahead === 0 ? 'next' : `${ahead} ahead`}: ${text}.` }
}

async function reasonOf(db: Db, own: Waiting, settings: SettingsReader): Promise<Reason> {
  if (settings.value<boolean>('agent.paused'))
    return { why: 'paused', over: 'all', text: 'the agent is paused (agent.paused), so nothing is investigated' }
  const spent = await spentCap(db)
  if (spent) return { why: 'budget', over: 'all', text: `${spent.text}, so nothing is investigated` }
  if (own.type === questionType) return await reasonOfQuestion(db, settings)
  const kept = await keptNow(db, own, settings)
  if (kept) return { why: 'kept', over: 'type', text: `${kept}; the incident is left to people when its turn comes` }
  const ofGroup = await reasonInGroup(db, own, settings)
  if (ofGroup) return ofGroup
  const slots = settings.value<number>('agent.max_concurrent')
  const leading = await leadingTypes(db)
  const critical = await criticalRoom(db, settings.value<number>('agent.max_critical'))
  const admitted = admittedTypes(await waitingTypes(db), leading, slots, critical)
  if (own.groupId !== null || admitted.includes(own.type))
    return { why: 'soon', over: 'type', text: 'the queue starts the incident at its next tick' }
  const taken = leading.length < slots ? `the free slot of ${slots} is kept for critical incidents` : allTaken(slots)
  return { why: 'slots', over: 'all', text: `${taken} (agent.max_concurrent)` }
}

async function reasonOfQuestion(db: Db, settings: SettingsReader): Promise<Reason> {
  const limit = settings.value<number>('agent.max_questions')
  if ((await questionsAtWork(db)) < limit)
    return { why: 'soon', over: 'type', text: 'the queue starts the incident at its next tick' }
  const others = limit === 1 ? 'another question is being answered' : `${limit} other questions are being answered`
  return { why: 'slots', over: 'type', text: `${others} (agent.max_questions)` }
}

function allTaken(slots: number): string {
  return slots === 1 ? 'another type of incident has the only slot' : `other types of incidents have all ${slots} slots`
}

/** Describes what delays a follower: its leader, or the limit for its type. */
async function reasonInGroup(db: Db, own: Waiting, settings: SettingsReader): Promise<Reason | null> {
  const state = await groupState(db, own.type)
  const leader = state?.leader
  if (!state || !leader) return null
  const over = 'type'
  const wait = waitForLeader(own.severity, leader)
  if (wait === null || wait > 0) {
    if (leader.status === 'investigating')
      return { why: 'leader', over, text: `its leader ${leader.incidentId} is investigated first` }
    const leftSeconds = settings.value<number>('agent.leader_wait') - leader.waitingSeconds
    if (leader.status === 'awaiting_approval' && leftSeconds > 0) {
      const text = `its leader ${leader.incidentId} awaits approval; this incident starts without the leader in ${Math.ceil(leftSeconds)} s at the latest`
      return { why: 'leader', over, text }
    }
  }
  if (own.severity === 'critical') {
    const { max, atWork } = await criticalRoom(db, settings.value<number>('agent.max_critical'))
    if (atWork < max) return null
  }
  const limit = settings.value<number>('agent.concurrency', own.type)
  if (state.investigating >= limit)
    return {
      why: 'followers',
      over,
      text: `${state.investigating} of its type are investigated at the same time (agent.concurrency)`,
    }
  const everywhere = settings.value<number>('agent.max_followers')
  if (state.followersEverywhere >= everywhere)
    return {
      why: 'followers',
      over,
      text: `${everywhere} followers are investigated at the same time (agent.max_followers)`,
    }
  return null
}

/**
 * Counts incidents that the queue takes before this incident: the more urgent, and the older of
 * equal urgency. Leaves out questions, which use separate slots.
 */
async function countAhead(db: Db, incidentId: string, type: string | null): Promise<number> {
  const { rows } = await sql<{ ahead: number }>`
    select count(*)::int as ahead from incident
    where ${isWaiting} and ${type === null ? sql`type <> ${questionType}` : sql`type = ${type}`}
      and (${urgency}, created_at, id) < (select ${urgency}, created_at, id from incident where id = ${incidentId})`.execute(
    db,
  )
  return rows[0]?.ahead ?? 0
}

/** An incident that the queue should have taken. */
export type Neglected = { incidentId: string; minutes: number }

/**
 * Minutes of waiting after which an incident counts as neglected. Two ticks, and the time for a
 * group to begin, take far less.
 */
const neglectedMinutes = 5

/** Finds the most urgent incident that waits without a reason; null if no incident does. */
export async function findNeglected(scope: Scope, environment: EnvironmentDefaults = {}): Promise<Neglected | null> {
  // Counts from the last change of an incident that was investigated before.
  const { rows } = await sql<{ id: string; minutes: number }>`
    select id, floor(extract(epoch from (select nightshift_now()) - since) / 60)::int as minutes from (
      select id, severity, created_at, case attempt when 0 then created_at else updated_at end as since
      from incident where ${isWaiting}
    ) waiting
    order by ${urgency}, created_at limit 1`.execute(scope.db)
  const [first] = rows
  if (!first || first.minutes < neglectedMinutes) return null
  const place = await queuePlaceOf(scope, first.id, environment)
  if (place?.why !== 'soon') return null
  const minutes = Math.min(first.minutes, await minutesOfRest(scope.db, first.id))
  return minutes < neglectedMinutes ? null : { incidentId: first.id, minutes }
}

/**
 * Returns the minutes in which nothing happened that the incident may have waited for: its own
 * assignment, work on its type, and, until it is assigned, any work. In a storm some incident has
 * always waited long, although it is taken soon.
 */
async function minutesOfRest(db: Scope['db'], incidentId: string): Promise<number> {
  const { rows } = await sql<{ minutes: number | null }>`
    select floor(extract(epoch from (select nightshift_now()) - greatest(own.queued_at, (
      select max(updated_at) from incident where not ${isWaiting} and (own.group_id is null or type = own.type)
    ))) / 60)::int as minutes
    from incident own where id = ${incidentId}`.execute(db)
  return rows[0]?.minutes ?? Number.POSITIVE_INFINITY
}
