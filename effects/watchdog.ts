import type { Counter } from 'prom-client'
import { withAdvisoryLock } from '../db/advisory-lock.ts'
import { findSilentHeartbeats } from '../db/alerts/heartbeats.ts'
import { findStale } from '../db/alerts/mass-resolve.ts'
import { dropOldBodies } from '../db/alerts/waiting-bodies.ts'
import { dropOldAnswers } from '../db/idempotency-keys.ts'
import { closeIncident } from '../db/incidents/close-incident.ts'
import { NotAllowedError } from '../db/incidents/incidents.ts'
import { carriedIncidents, noteRunMissing, noteRunSeen, releaseLostRun } from '../db/incidents/lost-runs.ts'
import { type Overdue, overdueIncidents, releaseStranded } from '../db/incidents/overdue.ts'
import { findLapsedOwners } from '../db/incidents/owners.ts'
import { dropOldChanges } from '../db/inventory/changes.ts'
import { dropOldSnapshots } from '../db/inventory/statement-snapshots.ts'
import { dueIncidents, tellAgainLater, tickIncident } from '../db/lifecycle/apply-lifecycle.ts'
import { StaleRunError } from '../db/log/append.ts'
import { sendDigests } from '../db/outbox/digests.ts'
import { sendHandOver, sendMorning } from '../db/outbox/shift-cards.ts'
import { systemActor } from '../domain/event.ts'
import type { EffectDeps } from './effect.ts'
import type { Runs } from './runs.ts'

/** Seconds after which a group counts as dead if incidents wait in it and no run starts. */
const strandedAfterSeconds = 180

const dropAnswersEveryMs = 3_600_000

const reasons = {
  silent: {
    code: 'WATCHDOG_SILENT',
    reason: 'The investigation wrote nothing for twice its time budget, so its run seems to be lost',
  },
  unexpired: {
    code: 'WATCHDOG_UNEXPIRED',
    reason: 'The approval ended long ago, but the investigation did not continue',
  },
} satisfies Record<Overdue['why'], { code: string; reason: string }>

type WatchdogDeps = Pick<EffectDeps, 'db' | 'locks' | 'log'> & { runs: Runs; metrics: { watchdog: Counter } }

/**
 * Runs one round, in one process at a time: escalates incidents without a run, and releases dead
 * groups.
 */
export async function runWatchdogRound({ db, locks, runs, metrics, log }: WatchdogDeps): Promise<void> {
  await withAdvisoryLock(locks, 'watchdog', async () => {
    for (const { incidentId, attempt, why } of await overdueIncidents(db)) {
      try {
        const closed = await db.transaction().execute((trx) =>
          // Closes only the overdue attempt, so that a run that started meanwhile continues.
          closeIncident(trx, incidentId, attempt + 1, { status: 'escalated', ...reasons[why] }, watchdogActor),
        )
        if (!closed) continue
        metrics.watchdog.inc({ why })
        log.warn({ incidentId, attempt, why }, 'escalated an incident without a run')
      } catch (error) {
        if (!(error instanceof NotAllowedError || error instanceof StaleRunError))
          log.error({ err: error, incidentId }, 'could not escalate an incident without a run')
      }
    }
    await reclaimLostRuns({ db, locks, runs, metrics, log })
    if ((await releaseStranded(db, strandedAfterSeconds)) > 0) runs.triggerQueue()
    await followAlerts({ db, locks, runs, metrics, log })
  })
}

const carriesWithinMs = 2_000

/**
 * Most runs that are checked in one round. The next round continues with the runs that have been
 * silent longest.
 */
const maxLooks = 200

/**
 * Checks at Temporal whether silent incidents still have their runs, and reopens an incident whose
 * run two checks in a row did not find. A request without an answer ends the round, because it says
 * nothing about any run.
 */
async function reclaimLostRuns({ db, runs, metrics, log }: WatchdogDeps): Promise<void> {
  if (!runs.carries) return
  let isAnyOpen = false
  for (const carried of await carriedIncidents(db, maxLooks)) {
    const answer = await runs.carries(carried, carriesWithinMs)
    if (answer === 'unreached') break
    if (answer === 'open') await noteRunSeen(db, carried)
    else if (await noteRunMissing(db, carried)) {
      const became = await releaseLostRun(db, carried)
      if (became === null) continue
      isAnyOpen ||= became === 'open'
      metrics.watchdog.inc({ why: 'lost' })
      log.warn({ ...carried, became }, 'released an incident from a run that no longer exists')
    }
  }
  if (isAnyOpen) runs.triggerQueue()
}

const tellWithinMs = 2_000

/**
 * Decides, under each incident's lock, what ended alerts and the passing of time change about the
 * incident.
 */
async function followAlerts({ db, runs, log }: WatchdogDeps): Promise<void> {
  await findStale(db)
  await findLapsedOwners(db)
  if (await findSilentHeartbeats(db)) runs.triggerQueue()
  for (const incidentId of await dueIncidents(db)) {
    try {
      const { wakesQueue, tellRun } = await tickIncident(db, incidentId)
      if (wakesQueue) runs.triggerQueue()
      if (tellRun && (await runs.tell(tellRun, 'alertResolved', tellWithinMs)) === 'unreached') {
        await tellAgainLater(db, incidentId)
      }
    } catch (error) {
      log.error({ err: error, incidentId }, 'could not decide what the alerts of an incident mean')
    }
  }
  await sendDigests(db)
  await sendMorning(db)
  await sendHandOver(db)
}

const watchdogActor = { actor: systemActor, stepKey: null, nextAttempt: true }

/** Runs a round every `intervalSeconds`. Returns a function that stops the rounds. */
export function startWatchdog(deps: WatchdogDeps, intervalSeconds: number): () => void {
  let timer: NodeJS.Timeout
  let stopped = false
  let droppedAt = Number.NEGATIVE_INFINITY
  const round = async () => {
    try {
      await runWatchdogRound(deps)
      if (performance.now() - droppedAt > dropAnswersEveryMs) {
        await dropOldAnswers(deps.db)
        await dropOldChanges(deps.db)
        await dropOldBodies(deps.db)
        await dropOldSnapshots(deps.db)
        droppedAt = performance.now()
      }
    } catch (error) {
      deps.log.error({ err: error }, 'a run of the watchdog failed; the next run tries it again')
    }
    if (!stopped) timer = setTimeout(round, intervalSeconds * 1000)
  }
  timer = setTimeout(round, intervalSeconds * 1000)
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}
