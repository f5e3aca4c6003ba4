import { type Client, ScheduleNotFoundError, ScheduleOverlapPolicy, WorkflowNotFoundError } from '@temporalio/client'
import proto from '@temporalio/proto'
import type { Logger } from 'pino'
import type { Counter } from 'prom-client'
import { withAdvisoryLock } from '../db/advisory-lock.ts'
import { findSilentHeartbeats } from '../db/alerts/heartbeats.ts'
import { findStale } from '../db/alerts/mass-resolve.ts'
import { dropOldAnswers } from '../db/idempotency-keys.ts'
import { closeIncident } from '../db/incidents/close-incident.ts'
import { NotAllowedError } from '../db/incidents/incidents.ts'
import { carriedIncidents, missedRun, releaseLostRun, sawRun } from '../db/incidents/lost-runs.ts'
import { type Overdue, overdueIncidents, releaseStranded } from '../db/incidents/overdue.ts'
import { findLapsedOwners } from '../db/incidents/owners.ts'
import { dropOldChanges } from '../db/inventory/changes.ts'
import { dueIncidents, tellAgainLater, tickIncident } from '../db/lifecycle/apply-lifecycle.ts'
import { StaleRunError } from '../db/log/append.ts'
import { sendDigests } from '../db/outbox/digests.ts'
import { systemActor } from '../domain/event.ts'
import { defaultTaskQueue, investigationId, queueScheduleId } from '../domain/step-key.ts'
import { cleanse } from '../safety/redact.ts'
import { alertResolved, cancelInvestigation, decided, searchAttributeNames } from '../workflows/outcome.ts'
import type { EffectDeps } from './effect.ts'

const signals = { decided, alertResolved, cancelInvestigation }
export type RunSignal = keyof typeof signals

/**
 * The runs, as this process reaches them through Temporal. Every call is best effort and ends in time: rows decide, the queue
 * ticks once a minute, and a run reads its rows when it wakes.
 */
export type Runs = {
  /** `gone`: no such run is open. `unreached`: Temporal did not answer. */
  tell(
    run: { incidentId: string; attempt: number },
    signal: RunSignal,
    withinMs: number,
  ): Promise<'told' | 'gone' | 'unreached'>
  /** Triggers the queue now instead of at the next minute. Many triggers at once are one. */
  triggerQueue(): void
  isReachable(withinMs: number): Promise<boolean>
  /**
   * Is an execution open for this attempt? `gone`: Temporal knows none, it ended, or the open one is not the run that made the
   * claim. `unreached`: Temporal did not answer, and nothing may be concluded from it.
   */
  carries?(
    run: { incidentId: string; attempt: number; runId: string | null },
    withinMs: number,
  ): Promise<'open' | 'gone' | 'unreached'>
  /** The queue's Schedule and the workers; null where Temporal did not answer in time. */
  queue?(withinMs: number): Promise<QueueState | null>
}

export type QueueState = {
  schedule: ScheduleState | null
  /** Workers that asked for work in the last minutes, by name. */
  workers: string[]
  /** Search attributes that the workflows set and the namespace does not know. */
  missingAttributes: string[]
}

/** The Schedule as Temporal reports it; its note is free text from outside. */
export type ScheduleState = {
  paused: boolean
  note: string | null
  everySeconds: number | null
  lastAt: string | null
  nextAt: string | null
}

const triggerWithinMs = 2_000

/** With any other status, also one that a later Temporal adds, the run may go on. */
const ended: ReadonlySet<string> = new Set(['COMPLETED', 'FAILED', 'CANCELLED', 'TERMINATED', 'TIMED_OUT'])

export function temporalRuns(client: Client, log: Logger): Runs {
  const within = <T>(ms: number, ask: () => Promise<T>): Promise<T> => client.withDeadline(Date.now() + ms, ask)
  let isTriggering = false
  let again = false

  const trigger = async () => {
    isTriggering = true
    try {
      while (again) {
        again = false
        const handle = client.schedule.getHandle(queueScheduleId)
        await within(triggerWithinMs, () => handle.trigger(ScheduleOverlapPolicy.SKIP))
      }
    } catch (error) {
      log.debug({ err: error }, 'the queue was not triggered: it ticks by itself')
    } finally {
      isTriggering = false
    }
  }

  return {
    async tell({ incidentId, attempt }, signal, withinMs) {
      try {
        const handle = client.workflow.getHandle(investigationId({ incidentId, attempt }))
        await within(withinMs, () => handle.signal(signals[signal]))
        return 'told'
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return 'gone'
        log.warn({ incidentId, attempt, signal, err: error }, 'a run could not be told')
        return 'unreached'
      }
    },
    async carries({ incidentId, attempt, runId }, withinMs) {
      try {
        const handle = client.workflow.getHandle(investigationId({ incidentId, attempt }))
        const { status, raw } = await within(withinMs, () => handle.describe())
        if (ended.has(status.name)) return 'gone'
        return runId === null || raw.workflowExecutionInfo?.firstRunId === runId ? 'open' : 'gone'
      } catch (error) {
        return error instanceof WorkflowNotFoundError ? 'gone' : 'unreached'
      }
    },
    triggerQueue() {
      again = true
      if (!isTriggering) void trigger()
    },
    async queue(withinMs) {
      try {
        return await within(withinMs, () => queueState(client))
      } catch (error) {
        log.debug({ err: error }, 'the schedule could not be read')
        return null
      }
    },
    async isReachable(withinMs) {
      try {
        await within(withinMs, () => client.connection.workflowService.getSystemInfo({}))
        return true
      } catch {
        return false
      }
    },
  }
}

async function queueState(client: Client): Promise<QueueState> {
  const { namespace } = client.options
  const [schedule, { pollers }, { customAttributes }] = await Promise.all([
    scheduleState(client),
    client.connection.workflowService.describeTaskQueue({
      namespace,
      taskQueue: { name: defaultTaskQueue },
      taskQueueType: proto.temporal.api.enums.v1.TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    }),
    client.connection.operatorService.listSearchAttributes({ namespace }),
  ])
  return {
    schedule,
    workers: (pollers ?? []).flatMap(({ identity }) => identity ?? []),
    missingAttributes: searchAttributeNames.filter((name) => !(name in (customAttributes ?? {}))),
  }
}

/** Null where it was deleted. */
async function scheduleState(client: Client): Promise<ScheduleState | null> {
  try {
    const { info, spec, state } = await client.schedule.getHandle(queueScheduleId).describe()
    const every = spec.intervals?.[0]?.every
    return {
      paused: state.paused,
      note: state.note ? cleanse(state.note).slice(0, 200) : null,
      everySeconds: typeof every === 'number' ? every / 1000 : null,
      lastAt: info.recentActions.at(-1)?.takenAt.toISOString() ?? null,
      nextAt: state.paused ? null : (info.nextActionTimes[0]?.toISOString() ?? null),
    }
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return null
    throw error
  }
}

/** Where no Temporal is configured. */
export const noRuns: Runs = {
  tell: async () => 'unreached',
  triggerQueue: () => {},
  isReachable: async () => false,
}

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

/** One round: escalates incidents that no run carries, and releases those that a dead group holds. One process at a time. */
export async function watch({ db, locks, runs, metrics, log }: WatchdogDeps): Promise<void> {
  await withAdvisoryLock(locks, 'watchdog', async () => {
    for (const { incidentId, attempt, why } of await overdueIncidents(db)) {
      try {
        const closed = await db.transaction().execute((trx) =>
          // Closes the attempt that was found overdue and no other: a run that started meanwhile goes on.
          closeIncident(trx, incidentId, attempt + 1, { status: 'escalated', ...reasons[why] }, by),
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
/** Asks for this many runs a round; the next round continues with those that are silent for longest then. */
const maxLooks = 200

/**
 * Asks Temporal for the run of each incident that was silent for a while, and reopens an incident whose run two looks in a
 * row did not find. A question without an answer ends the round: an absent Temporal says nothing about any run.
 */
async function reclaimLostRuns({ db, runs, metrics, log }: WatchdogDeps): Promise<void> {
  if (!runs.carries) return
  let isAnyOpen = false
  for (const carried of await carriedIncidents(db, maxLooks)) {
    const answer = await runs.carries(carried, carriesWithinMs)
    if (answer === 'unreached') break
    if (answer === 'open') await sawRun(db, carried)
    else if (await missedRun(db, carried)) {
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
}

const by = { actor: systemActor, stepKey: null, nextAttempt: true }

/** Runs a round every `intervalSeconds`. Answers how to stop. */
export function startWatchdog(deps: WatchdogDeps, intervalSeconds: number): () => void {
  let timer: NodeJS.Timeout
  let stopped = false
  let droppedAt = Number.NEGATIVE_INFINITY
  const round = async () => {
    try {
      await watch(deps)
      if (performance.now() - droppedAt > dropAnswersEveryMs) {
        await dropOldAnswers(deps.db)
        await dropOldChanges(deps.db)
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
