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

/** A group whose members waited this long without being started is dead. */
const strandedAfterSeconds = 180

const dropAnswersEveryMs = 3_600_000

const reasons = {
  silent: {
    code: 'WATCHDOG_SILENT',
    reason: 'The investigation wrote nothing for twice its time budget: no run seems to carry it any more',
  },
  unexpired: {
    code: 'WATCHDOG_UNEXPIRED',
    reason: 'The approval it waited for is long over and the investigation did not go on',
  },
} satisfies Record<Overdue['why'], { code: string; reason: string }>

type WatchdogDeps = Pick<EffectDeps, 'db' | 'locks' | 'log'> & { runs: Runs; metrics: { watchdog: Counter } }

/** One round: escalates incidents without a run, releases dead groups. One process at a time. */
export async function runWatchdogRound({ db, locks, runs, metrics, log }: WatchdogDeps): Promise<void> {
  await withAdvisoryLock(locks, 'watchdog', async () => {
    for (const { incidentId, attempt, why } of await overdueIncidents(db)) {
      try {
        const closed = await db.transaction().execute((trx) =>
          // Closes only the overdue attempt: a run that started meanwhile goes on.
          closeIncident(trx, incidentId, attempt + 1, { status: 'escalated', ...reasons[why] }, watchdogActor),
        )
        if (!closed) continue
        metrics.watchdog.inc({ why })
        log.warn({ incidentId, attempt, why }, 'escalated an incident that no run carries')
      } catch (error) {
        if (!(error instanceof NotAllowedError || error instanceof StaleRunError))
          log.error({ err: error, incidentId }, 'could not escalate')
      }
    }
    await reclaimLostRuns({ db, locks, runs, metrics, log })
    if ((await releaseStranded(db, strandedAfterSeconds)) > 0) runs.triggerQueue()
    await followAlerts({ db, locks, runs, metrics, log })
  })
}

const carriesWithinMs = 2_000

/** Runs asked a round; the next goes on with the longest silent then. */
const maxLooks = 200

/**
 * Asks Temporal for each silent incident's run, and reopens an incident whose run two looks in a
 * row did not find. An unanswered question ends the round: an absent Temporal says nothing of any
 * run.
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
      log.warn({ ...carried, became }, 'took an incident back from a run that is gone')
    }
  }
  if (isAnyOpen) runs.triggerQueue()
}

const tellWithinMs = 2_000

/** Decides, under each incident's lock, what its alerts and the passing of time mean for it. */
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

/** Runs a round every `intervalSeconds`. Answers how to stop. */
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
      deps.log.error({ err: error }, 'the watchdog failed; the next round comes')
    }
    if (!stopped) timer = setTimeout(round, intervalSeconds * 1000)
  }
  timer = setTimeout(round, intervalSeconds * 1000)
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}
