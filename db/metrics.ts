import { sql } from 'kysely'
import { admittedTypes, waitsForLeader } from '../domain/admission.ts'
import type { QueuePlace, QueueReason, Severity } from '../domain/incident.ts'
import { type Db, now, onceNow, type Scope, systemScope, type Trx } from './connect.ts'
import { type StreamedEvent, type StreamPosition, streamAfter, streamEnd } from './events.ts'
import { groupState, isWaiting, leadingTypes, urgency, waitingTypes } from './queue.ts'
import { type EnvironmentDefaults, readSettings, type SettingsReader } from './settings.ts'
import { spentCap } from './usage.ts'

/** Values of a label from outside that have a series of their name; later ones are `other`. */
export const namedValues = 50

export type Increment = { counter: string; labels: Record<string, string> }
type Folded<M> = { increments: Increment[]; memory: M }

/**
 * Counts the next rows of the log, exactly once however many processes ask at once: position, memory and counts are written in
 * one transaction, behind one lock. Answers how many rows that were; less than `limit`: none is left.
 */
export async function foldCounters<M>(
  db: Db,
  limit: number,
  fold: (rows: StreamedEvent[], memory: unknown, provider: string) => Folded<M>,
): Promise<number> {
  return await db.transaction().execute(async (trx) => {
    const stored = await trx
      .selectFrom('metricPosition')
      .select(['memory', 'provider', 'rowId as id'])
      .select(sql<string>`tx::text`.as('tx'))
      .select(sql<boolean>`tx > pg_snapshot_xmax(pg_current_snapshot())`.as('isAhead'))
      .forUpdate()
      .executeTakeFirstOrThrow()
    // A backup in a new server, whose transactions are numbered from the beginning: counting goes on from now.
    if (stored.isAhead) return await moveTo(trx, await streamEnd(systemScope(trx)), stored.memory)
    const rows = await streamAfter(systemScope(trx), { tx: stored.tx, id: stored.id }, { limit })
    const newest = rows.at(-1)?.position
    if (!newest) return 0
    const { increments, memory } = fold(rows, stored.memory, stored.provider)
    await add(trx, increments)
    await moveTo(trx, newest, memory)
    return rows.length
  })
}

async function moveTo(trx: Trx, { tx, id }: StreamPosition, memory: unknown): Promise<number> {
  await trx
    .updateTable('metricPosition')
    .set({
      tx: sql<string>`${tx}::xid8`,
      rowId: Math.min(id, Number.MAX_SAFE_INTEGER),
      memory: JSON.stringify(memory),
    })
    .execute()
  return 0
}

async function add(trx: Trx, increments: readonly Increment[]): Promise<void> {
  const summed = new Map<string, { name: string; labels: string; value: number }>()
  for (const { counter, labels } of increments) {
    const text = JSON.stringify(labels)
    const key = `${counter} ${text}`
    const entry = summed.get(key) ?? { name: counter, labels: text, value: 0 }
    summed.set(key, { ...entry, value: entry.value + 1 })
  }
  if (summed.size === 0) return
  await trx
    .insertInto('metricCounter')
    .values([...summed.values()])
    .onConflict((conflict) =>
      conflict.columns(['name', 'labels']).doUpdateSet({ value: sql`metric_counter.value + excluded.value` }),
    )
    .execute()
}

export type Count = { name: string; labels: Record<string, string>; value: number }

export async function countersNow(db: Db): Promise<Count[]> {
  return await db.selectFrom('metricCounter').select(['name', 'labels', 'value']).execute()
}

/**
 * The values of a label that have a series of their name: the first fifty ever seen, the same in every process and after every
 * restart. So what comes from outside cannot make series without end.
 */
export async function namedOf(db: Db, label: string, values: readonly string[]): Promise<ReadonlySet<string>> {
  const read = async () =>
    new Set(
      (await db.selectFrom('metricLabel').select('value').where('label', '=', label).execute()).map(
        ({ value }) => value,
      ),
    )
  const known = await read()
  const fresh = [...new Set(values)].filter((value) => !known.has(value))
  if (fresh.length === 0 || known.size >= namedValues) return known
  await db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(hashtextextended('metric_label', 0))`.execute(trx)
    const { count } = await trx
      .selectFrom('metricLabel')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('label', '=', label)
      .executeTakeFirstOrThrow()
    const added = fresh.slice(0, Math.max(0, namedValues - count)).map((value) => ({ label, value }))
    if (added.length > 0) {
      await trx
        .insertInto('metricLabel')
        .values(added)
        .onConflict((conflict) => conflict.doNothing())
        .execute()
    }
  })
  return await read()
}

/** Who serves the model from now on, as a worker knows it: rows name the model alone. */
export async function noteProvider(db: Db, provider: string): Promise<void> {
  await db.updateTable('metricPosition').set({ provider }).where('provider', '!=', provider).execute()
}

/** What is open now, by type and severity. */
export async function openIncidentCounts(db: Db) {
  return await db
    .selectFrom('incident')
    .select(['type', 'severity'])
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('status', 'in', ['open', 'investigating', 'awaiting_approval'])
    .groupBy(['type', 'severity'])
    .execute()
}

/** What people are asked now, by risk. */
export async function pendingApprovalCounts(db: Db) {
  return await db
    .selectFrom('approval')
    .select('risk')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('status', '=', 'pending')
    .where('expiresAt', '>', now)
    .groupBy('risk')
    .execute()
}

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
  const spent = await spentCap(db)
  if (spent) return { why: 'budget', over: 'all', text: `${spent.text}, nothing is taken up` }
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
      const text = `its leader ${leader.incidentId} awaits approval; this one goes on without it in ${Math.ceil(leftSeconds)} s at the latest`
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
