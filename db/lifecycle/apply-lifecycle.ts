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

/** Work that is left outside the transaction. */
export type LifecycleEffect = {
  wakesQueue: boolean
  /** The run whose alerts have all been over for long enough. */
  tellRun: { incidentId: string; attempt: number } | null
}

export const noEffect: LifecycleEffect = { wakesQueue: false, tellRun: null }

/**
 * Decides about one incident because time passed, and carries it out, under the incident's lock.
 * Stores when the watchdog comes back. The caller wakes the queue and tells the run.
 */
export async function tickIncident(db: Db, incidentId: string): Promise<LifecycleEffect> {
  return await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, incidentId)
    if (!row) return noEffect
    const settings = await readSettings(trx)
    await settleUnknown(trx, incidentId, settings)
    if (await lapseOwner(trx, row, settings)) return await tickAgain(trx, incidentId)
    if (row.status === 'open' && row.lookWanted === 'expected') {
      // Nobody took the look in time: what cannot be looked at is not expected.
      const differs = 'it could not be looked at in time'
      return { wakesQueue: await settleExpected(trx, incidentId, { differs, seen: '' }), tellRun: null }
    }
    const view = await lifecycleView(trx, row, settings)
    const decision = decideLifecycle(view, 'tick', lifecycleRules(settings, row.type))
    const effect = await applyLifecycle(trx, row, decision)
    // One signal each time the alerts go quiet: more would fill a waiting run's history.
    if (effect.tellRun) await storeCheck(trx, incidentId, null)
    else await scheduleCheck(trx, incidentId, { isAsked: decision.do === 'look' })
    return effect
  })
}

/** The owner is gone since this tick began: decided again at the next round. */
async function tickAgain(trx: Trx, incidentId: string): Promise<LifecycleEffect> {
  await change(trx, incidentId, { checkAt: now })
  return noEffect
}

/** Incidents that are to be decided about now, the most overdue first. */
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

/** An unanswered request is made again after this. */
const askAgainMs = 15_000

/** The run could not be told that its alerts are over: the watchdog tries again. */
export async function tellAgainLater(db: Db, incidentId: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, incidentId)
    if (row)
      await change(trx, incidentId, { checkAt: sql`nightshift_now() + make_interval(secs => ${askAgainMs / 1000})` })
  })
}

/** Stores when the watchdog has to decide again. The caller holds the incident's lock. */
export async function scheduleCheck(trx: Trx, incidentId: string, { isAsked = false } = {}): Promise<void> {
  const row = await lockIncident(trx, incidentId)
  // What waits to be looked at has its own deadline.
  if (!row || row.lookWanted === 'expected') return
  const settings = await readSettings(trx)
  const view = await lifecycleView(trx, row, settings)
  const dueMs = nextCheckMs(view, lifecycleRules(settings, row.type))
  const checkMs = dueMs !== null && isAsked ? Math.max(dueMs, view.nowMs + askAgainMs) : dueMs
  await storeCheck(trx, incidentId, checkMs)
}

/** The same where the time is known already. Null: nothing is due until something comes in. */
export async function storeCheck(trx: Trx, incidentId: string, atMs: number | null): Promise<void> {
  await change(trx, incidentId, { checkAt: atMs === null ? null : new Date(atMs).toISOString() })
}

/** Carries out a decision that needs no alert's body. The caller holds the incident's lock. */
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

/** Puts a message about an incident into the outbox, with its state after the caller's writes. */
async function tell(trx: Trx, incidentId: string, trigger: Parameters<typeof enqueueNotification>[2], text: string) {
  const row = await lockIncident(trx, incidentId)
  if (row) await enqueueNotification(trx, row, trigger, text)
}

const quietText: Record<QuietProof, string> = {
  ends: 'Every alert of this incident ended before an investigation began',
  look: 'Its resource was read as nominal before an investigation began, and whether its alert ended is not known',
  nothing: 'Quiet, unproven: nothing more was heard of its alert, and nothing shows that the trouble is over',
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

/** An alert of a sender without ends came in again after the repair: from now on it is watched. */
async function startWatch(trx: Trx, row: IncidentRow): Promise<void> {
  const settings = await readSettings(trx)
  const { settleSeconds } = lifecycleRules(settings, row.type)
  await change(trx, row.id, {
    watchUntil: sql`closed_at + make_interval(secs => ${settleSeconds})`,
    checkAt: sql`greatest(nightshift_now(), closed_at + make_interval(secs => ${settleSeconds}))`,
  })
  await note(trx, row.id, 'watch_started', 'Its alert came in again after the repair: it is watched')
}

async function endWatch(trx: Trx, row: IncidentRow, word: 'over' | 'unknown'): Promise<void> {
  await change(trx, row.id, { watchUntil: null, lookWanted: null, lookWantedAt: null })
  if (word === 'over') return await note(trx, row.id, 'watch_over', 'Its alert ended after the repair: it is over')
  await note(trx, row.id, 'watch_unknown', 'Nothing was heard of its alert any more: whether it is over is unknown')
}

async function confirmRepair(trx: Trx, row: IncidentRow, next: 'watch' | 'escalate'): Promise<void> {
  const text = 'The write held, the alert fires on: look at the alert rule, or at what else may raise it'
  await change(trx, row.id, { repairConfirmedAt: now })
  await note(trx, row.id, 'repair_confirmed', text)
  if (next === 'watch') await tell(trx, row.id, 'watch', text)
  else await escalateByTable(trx, row, 'ALERT_GOES_ON')
}

/** Asks for a look at the world: a worker takes it without a lock and writes it down. */
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
  const text = 'Its alerts have ended; it stays with the people who have it'
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

/** Notifies people, who heard of its end, that it is not over. */
export async function tellReopened(trx: Trx, incidentId: string, why: ReopenReason): Promise<void> {
  await tell(trx, incidentId, 'reopened', reopenText[why])
}

/** Back to the queue for the next attempt. The caller notifies people: `tellReopened`. */
export async function reopenBecause(trx: Trx, row: IncidentRow, why: ReopenReason): Promise<void> {
  if (why === 'came_back' || why === 'did_not_last') await loseRepair(trx, row, reopenText[why])
  await reopenIncident(trx, row.id)
  await note(trx, row.id, 'reopened', reopenText[why])
  // An agent at work stays at work; else coming back makes no uninvestigated kind investigated.
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

/** Hands over what another attempt would not repair, quoting what was tried. */
export async function escalateByTable(
  trx: Trx,
  row: IncidentRow,
  code: 'ALERT_GOES_ON' | 'DOES_NOT_LAST',
): Promise<void> {
  const stories = await attemptStories(trx, row.id)
  const reason =
    code === 'ALERT_GOES_ON'
      ? 'The write held, the alert fires on: it is not about what was repaired, or its rule is wrong'
      : `It came back after ${attemptsPerDay} attempts within a day: another one would hide the cause`
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
