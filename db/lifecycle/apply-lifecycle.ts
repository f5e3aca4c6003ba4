import { sql, type UpdateObject } from 'kysely'
import { type NotedCode, systemActor } from '../../domain/event.ts'
import {
  attemptsPerDay,
  decideLifecycle,
  type LifecycleDecision,
  nextCheckMs,
  type QuietProof,
  type ReopenReason,
  reopenText,
} from '../../domain/lifecycle.ts'
import { settleExpected } from '../alerts/expectations.ts'
import { settleUnknown } from '../alerts/mass-resolve.ts'
import { now, onceNow } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { closeIncident } from '../incidents/close-incident.ts'
import { lockIncident } from '../incidents/incidents.ts'
import { lapseOwner } from '../incidents/owners.ts'
import { keepIfNotInvestigated } from '../incidents/queue.ts'
import { reopenIncident } from '../incidents/reopen-incident.ts'
import { append } from '../log/append.ts'
import { enqueueNotification } from '../outbox/deliveries.ts'
import { readSettings } from '../settings.ts'
import type { Database, IncidentRow } from '../tables.ts'
import { loseRepair } from '../trust/lose.ts'
import { attemptStories } from './attempts.ts'
import { lifecycleRules, lifecycleView } from './read-lifecycle.ts'

/** Work that the caller must do after the transaction has ended. */
export type LifecycleEffect = {
  wakesQueue: boolean
  /** The run to inform that all alerts of its incident are over; null if there is none. */
  tellRun: { incidentId: string; attempt: number } | null
}

export const noEffect: LifecycleEffect = { wakesQueue: false, tellRun: null }

/**
 * Decides about one incident because time has passed, and executes the decision, under the
 * incident's lock. Stores the time of the next decision. The caller wakes the queue and informs the
 * run.
 */
export async function tickIncident(db: Db, incidentId: string): Promise<LifecycleEffect> {
  return await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, incidentId)
    if (!row) return noEffect
    const settings = await readSettings(trx)
    await settleUnknown(trx, incidentId, settings)
    if (await lapseOwner(trx, row, settings)) return await tickAgain(trx, incidentId)
    if (row.status === 'open' && row.lookWanted === 'expected') {
      // Treats the state as not expected, because it was not read in time.
      const differs = 'the resource could not be read in time'
      return { wakesQueue: await settleExpected(trx, incidentId, { differs, seen: '' }), tellRun: null }
    }
    const view = await lifecycleView(trx, row, settings)
    const decision = decideLifecycle(view, 'tick', lifecycleRules(settings, row.type))
    const effect = await applyLifecycle(trx, row, decision)
    // Sends a run one signal each time the alerts become quiet. More signals would fill the history
    // of a run that waits.
    if (effect.tellRun) await storeCheck(trx, incidentId, null)
    else await scheduleCheck(trx, incidentId, { isAsked: decision.do === 'look' })
    return effect
  })
}

/** Makes the next round decide again, because the owner lost the incident after this tick began. */
async function tickAgain(trx: Trx, incidentId: string): Promise<LifecycleEffect> {
  await change(trx, incidentId, { checkAt: now })
  return noEffect
}

/** Lists incidents for which a decision is due, the most overdue first. */
export async function dueIncidents(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('incident')
    .select('id')
    .where('checkAt', '<=', onceNow)
    .orderBy('checkAt')
    .limit(200)
    .execute()
  return rows.map(({ id }) => id)
}

/** Milliseconds after which a request to a run that got no response is repeated. */
const askAgainMs = 15_000

/** Schedules another attempt to inform a run that its alerts are over. */
export async function tellAgainLater(db: Db, incidentId: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, incidentId)
    if (row)
      await change(trx, incidentId, { checkAt: sql`nightshift_now() + make_interval(secs => ${askAgainMs / 1000})` })
  })
}

/** Stores when the watchdog decides again about the incident, whose lock the caller holds. */
export async function scheduleCheck(trx: Trx, incidentId: string, { isAsked = false } = {}): Promise<void> {
  const row = await lockIncident(trx, incidentId)
  // Stops, because a read for an expected state has its own deadline.
  if (!row || row.lookWanted === 'expected') return
  const settings = await readSettings(trx)
  const view = await lifecycleView(trx, row, settings)
  const dueMs = nextCheckMs(view, lifecycleRules(settings, row.type))
  const checkMs = dueMs !== null && isAsked ? Math.max(dueMs, view.nowMs + askAgainMs) : dueMs
  await storeCheck(trx, incidentId, checkMs)
}

/**
 * Stores a known time of the next decision. `atMs` is null if no decision is due until something is
 * received.
 */
export async function storeCheck(trx: Trx, incidentId: string, atMs: number | null): Promise<void> {
  await change(trx, incidentId, { checkAt: atMs === null ? null : new Date(atMs).toISOString() })
}

/**
 * Executes a decision that does not need the body of an alert. The caller holds the incident's
 * lock.
 */
export async function applyLifecycle(
  trx: Trx,
  row: IncidentRow,
  decision: LifecycleDecision,
): Promise<LifecycleEffect> {
  switch (decision.do) {
    case 'close_quiet':
      await closeQuiet(trx, row.id, decision.by)
      break
    case 'tell_run':
      return { wakesQueue: false, tellRun: { incidentId: row.id, attempt: row.attempt } }
    case 'start_watch':
      await startWatch(trx, row)
      break
    case 'end_watch':
      await endWatch(trx, row, decision.word)
      break
    case 'confirm_repair':
      await confirmRepair(trx, row, decision.next)
      break
    case 'look':
      await requestLook(trx, row.id, row.status === 'resolved' ? 'watch' : 'crowd')
      break
    case 'remind':
      await remind(trx, row)
      break
    case 'mark_quiet':
      await markQuiet(trx, row)
      break
    case 'reopen':
      await reopenBecause(trx, row, decision.why)
      await tellReopened(trx, row.id, decision.why)
      return { wakesQueue: true, tellRun: null }
    case 'escalate':
      await escalateByTable(trx, row, decision.code)
      break
  }
  return noEffect
}

async function note(trx: Trx, incidentId: string, code: NotedCode, text: string): Promise<void> {
  await append(trx, incidentId, null, {
    kind: 'noted',
    actor: systemActor,
    detail: text,
    metadata: { code, text },
  })
}

async function change(trx: Trx, incidentId: string, set: UpdateObject<Database, 'incident'>): Promise<void> {
  await trx.updateTable('incident').set(set).where('id', '=', incidentId).execute()
}

/**
 * Puts a message about an incident into the outbox, with the incident's state after the writes of
 * the caller.
 */
async function tell(trx: Trx, incidentId: string, trigger: Parameters<typeof enqueueNotification>[2], text: string) {
  const row = await lockIncident(trx, incidentId)
  if (row) await enqueueNotification(trx, row, trigger, text)
}

const quietText: Record<QuietProof, string> = {
  ends: 'Every alert of this incident ended before an investigation began',
  look: 'The resource was nominal before an investigation began, and it is not known whether the alert ended',
  nothing: 'Quiet, unproven: the alert was not repeated, and nothing shows that the problem is over',
}

async function closeQuiet(trx: Trx, incidentId: string, by: QuietProof): Promise<void> {
  await closeIncident(
    trx,
    incidentId,
    null,
    {
      status: 'resolved',
      outcome: by === 'nothing' ? 'unproven' : 'self_resolved',
      resolution: quietText[by],
      claims: [],
      confidence: null,
    },
    { actor: systemActor, stepKey: null },
  )
}

/** Starts the watch after a repair, when an alert of a sender without ends is repeated. */
async function startWatch(trx: Trx, row: IncidentRow): Promise<void> {
  const settings = await readSettings(trx)
  const { settleSeconds } = lifecycleRules(settings, row.type)
  await change(trx, row.id, {
    watchUntil: sql`closed_at + make_interval(secs => ${settleSeconds})`,
    checkAt: sql`greatest(nightshift_now(), closed_at + make_interval(secs => ${settleSeconds}))`,
  })
  await note(trx, row.id, 'watch_started', 'The alert was repeated after the repair, so the incident is watched')
}

async function endWatch(trx: Trx, row: IncidentRow, word: 'over' | 'unknown'): Promise<void> {
  await change(trx, row.id, { watchUntil: null, lookWanted: null, lookWantedAt: null })
  if (word === 'over')
    return await note(trx, row.id, 'watch_over', 'The alert ended after the repair, so the problem is over')
  await note(trx, row.id, 'watch_unknown', 'The alert was not repeated, so it is unknown whether the problem is over')
}

async function confirmRepair(trx: Trx, row: IncidentRow, next: 'watch' | 'escalate'): Promise<void> {
  const text =
    'The write was verified, but the alert still fires: check the alert rule, and other reasons why it may fire'
  await change(trx, row.id, { repairConfirmedAt: now })
  await note(trx, row.id, 'repair_confirmed', text)
  if (next === 'watch') await tell(trx, row.id, 'watch', text)
  else await escalateByTable(trx, row, 'ALERT_GOES_ON')
}

/** Requests a read of a resource's state, which a worker makes without a lock and stores. */
async function requestLook(
  trx: Trx,
  incidentId: string,
  purpose: NonNullable<IncidentRow['lookWanted']>,
): Promise<void> {
  await trx
    .updateTable('incident')
    .set({ lookWanted: purpose, lookWantedAt: now })
    .where('id', '=', incidentId)
    .where('lookWanted', 'is', null)
    .execute()
}

async function remind(trx: Trx, row: IncidentRow): Promise<void> {
  const text = 'You closed this incident, and its alert still fires'
  await change(trx, row.id, { remindedAt: now })
  await note(trx, row.id, 'reminded', text)
  await tell(trx, row.id, 'reminder', text)
}

async function markQuiet(trx: Trx, row: IncidentRow): Promise<void> {
  const text = 'The alerts have ended; the incident stays with people'
  await note(trx, row.id, 'quiet', text)
  const settings = await readSettings(trx)
  const isDue = await trx
    .updateTable('incident')
    .set({ remindedAt: now })
    .where('id', '=', row.id)
    .where((where) =>
      where.or([
        where('remindedAt', 'is', null),
        where(
          'remindedAt',
          '<=',
          sql<string>`nightshift_now() - make_interval(secs => ${settings.value<number>('escalation.remind')})`,
        ),
      ]),
    )
    .returning('id')
    .executeTakeFirst()
  if (isDue) await tell(trx, row.id, 'quiet', text)
}

/** Notifies the people to whom the end was reported that the incident is not over. */
export async function tellReopened(trx: Trx, incidentId: string, why: ReopenReason): Promise<void> {
  await tell(trx, incidentId, 'reopened', reopenText[why])
}

/** Returns an incident to the queue. The caller notifies people with `tellReopened`. */
export async function reopenBecause(trx: Trx, row: IncidentRow, why: ReopenReason): Promise<void> {
  if (why === 'came_back' || why === 'did_not_last') await loseRepair(trx, row, reopenText[why])
  await reopenIncident(trx, row.id)
  await note(trx, row.id, 'reopened', reopenText[why])
  // Lets an agent that is at work continue. Otherwise a reopened incident is investigated only if
  // `agent.investigate` selects it.
  if (why !== 'did_not_last') await keepIfNotInvestigated(trx, row.id, await newestLabels(trx, row.id))
}

async function newestLabels(trx: Trx, incidentId: string): Promise<Record<string, string>> {
  const alert = await trx
    .selectFrom('alert')
    .select('labels')
    .where('incidentId', '=', incidentId)
    .orderBy('lastSeenAt', 'desc')
    .limit(1)
    .executeTakeFirst()
  return alert?.labels ?? {}
}

/** Escalates an incident that another attempt would not repair, and quotes earlier attempts. */
export async function escalateByTable(
  trx: Trx,
  row: IncidentRow,
  code: 'ALERT_GOES_ON' | 'DOES_NOT_LAST',
): Promise<void> {
  const stories = await attemptStories(trx, row.id)
  const reason =
    code === 'ALERT_GOES_ON'
      ? 'The write was verified, but the alert still fires: the alert is about something else, or its rule is wrong'
      : `The incident came back after ${attemptsPerDay} attempts within a day. Another attempt would hide the cause`
  await loseRepair(trx, row, reason)
  if (row.closedAt !== null) await reopenIncident(trx, row.id)
  await closeIncident(
    trx,
    row.id,
    null,
    {
      status: 'escalated',
      code,
      category: code === 'ALERT_GOES_ON' ? 'alert_goes_on' : 'does_not_last',
      reason: [`${reason}.`, ...stories].join('\n'),
    },
    { actor: systemActor, stepKey: null },
  )
}
