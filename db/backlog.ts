import { sql } from 'kysely'
import { admittedTypes, waitsForLeader } from '../domain/admission.ts'
import type { QueuePlace, QueueReason, Severity } from '../domain/incident.ts'
import { type Db, onceNow } from './connect.ts'
import { groupState, isWaiting, leadingTypes, urgency, waitingTypes } from './queue.ts'
import type { Scope } from './scope.ts'
import { type EnvironmentDefaults, readSettings, type SettingsReader } from './settings.ts'

/** What waits for whom, now. */
export async function backlogOf({ db }: Scope) {
  const { rows } = await sql<{
    waiting: number
    oldestWaitingAt: string | null
    investigating: number
    awaitingApproval: number
    deliveries: number
    failedDeliveries: number
  }>`
    select
      (select count(*) from incident where status = 'open')::int as waiting,
      (select min(created_at) from incident where status = 'open') as oldest_waiting_at,
      (select count(*) from incident where status = 'investigating')::int as investigating,
      (select count(*) from incident where status = 'awaiting_approval')::int as awaiting_approval,
      (select count(*) from delivery where status in ('pending', 'sending'))::int as deliveries,
      (select count(*) from delivery where status in ('failed', 'dropped')
        and created_at > ${onceNow} - interval '1 day')::int as failed_deliveries`.execute(db)
  return rows[0]!
}

/** How the model did in the last hour, and when it last answered at all. */
export async function modelHealth(db: Db) {
  const last = await db
    .selectFrom('incidentEvent')
    .select(['at'])
    .select(sql<string>`metadata->>'model'`.as('model'))
    .select(sql<number>`(metadata->>'durationMs')::float8`.as('durationMs'))
    .where('kind', '=', 'model_answered')
    .orderBy('at', 'desc')
    .limit(1)
    .executeTakeFirst()
  const { rows } = await sql<{ answers: number; failures: number }>`
    select count(*) filter (where kind = 'model_answered')::int as answers,
      count(*) filter (where kind = 'model_failed')::int as failures
    from incident_event
    where kind in ('model_answered', 'model_failed') and at > ${onceNow} - interval '1 hour'`.execute(db)
  return { last: last ?? null, lastHour: rows[0]! }
}

type Waiting = { type: string; severity: Severity; groupId: string | null }
type Reason = { why: QueueReason; text: string; over: 'type' | 'all' }

/** Where an incident stands that waits to be investigated, by the rules of the queue itself; null when it does not wait. */
export async function queuePlaceOf(
  { db }: Scope,
  incidentId: string,
  environment: EnvironmentDefaults = {},
): Promise<QueuePlace | null> {
  const own = await db
    .selectFrom('incident')
    .select(['type', 'severity', 'groupId'])
    .where('id', '=', incidentId)
    .where(isWaiting)
    .executeTakeFirst()
  if (!own) return null
  const settings = await readSettings(db, environment)
  const { why, text, over } = await reasonOf(db, own, settings)
  const ahead = await countAhead(db, incidentId, over === 'type' ? own.type : null)
  return { ahead, why, text: `Queued, ${ahead === 0 ? 'next' : `${ahead} ahead`}: ${text}.` }
}

async function reasonOf(db: Db, own: Waiting, settings: SettingsReader): Promise<Reason> {
  if (settings.value<boolean>('agent.paused'))
    return { why: 'paused', over: 'all', text: 'the agent is paused (agent.paused), nothing is taken up' }
  const ofGroup = await reasonInGroup(db, own, settings)
  if (ofGroup) return ofGroup
  const slots = settings.value<number>('agent.max_concurrent')
  const leading = await leadingTypes(db)
  const admitted = admittedTypes(await waitingTypes(db), leading, slots)
  if (own.groupId !== null || admitted.includes(own.type))
    return { why: 'soon', over: 'type', text: 'the queue takes it up at its next tick' }
  const taken = leading.length < slots ? `the free slot of ${slots} is kept for critical incidents` : allTaken(slots)
  return { why: 'slots', over: 'all', text: `${taken} (agent.max_concurrent)` }
}

function allTaken(slots: number): string {
  return slots === 1 ? 'another type of incident has the only slot' : `other types of incidents have all ${slots} slots`
}

/** What holds a follower up: its leader, or as many of its type at work as may be. */
async function reasonInGroup(db: Db, own: Waiting, settings: SettingsReader): Promise<Reason | null> {
  const state = await groupState(db, own.type)
  const leader = state?.leader
  if (!state || !leader) return null
  const over = 'type'
  if (waitsForLeader(own.severity, leader.severity)) {
    if (leader.status === 'investigating')
      return { why: 'leader', over, text: `its leader ${leader.incidentId} is investigated first` }
    const leftSeconds = settings.value<number>('agent.leader_wait') - leader.waitingSeconds
    if (leader.status === 'awaiting_approval' && leftSeconds > 0) {
      const text = `its leader ${leader.incidentId} waits for a person; this one goes on without it in ${Math.ceil(leftSeconds)} s at the latest`
      return { why: 'leader', over, text }
    }
  }
  const limit = settings.value<number>('agent.concurrency', own.type)
  if (state.investigating >= limit)
    return {
      why: 'followers',
      over,
      text: `${state.investigating} of its type are investigated at once (agent.concurrency)`,
    }
  const everywhere = settings.value<number>('agent.max_followers')
  if (state.followersEverywhere >= everywhere)
    return { why: 'followers', over, text: `${everywhere} followers are investigated at once (agent.max_followers)` }
  return null
}

/** Those that the queue takes before it: more urgent, or as urgent and older. */
async function countAhead(db: Db, incidentId: string, type: string | null): Promise<number> {
  const { rows } = await sql<{ ahead: number }>`
    select count(*)::int as ahead from incident
    where ${isWaiting} ${type === null ? sql`` : sql`and type = ${type}`}
      and (${urgency}, created_at, id) < (select ${urgency}, created_at, id from incident where id = ${incidentId})`.execute(
    db,
  )
  return rows[0]?.ahead ?? 0
}
