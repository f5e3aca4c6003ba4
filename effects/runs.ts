import { type Client, ScheduleNotFoundError, ScheduleOverlapPolicy, WorkflowNotFoundError } from '@temporalio/client'
import proto from '@temporalio/proto'
import type { Logger } from 'pino'
import { startManualChange } from '../clients/manual-change-run.ts'
import { defaultTaskQueue, investigationId, queueScheduleId } from '../domain/step-key.ts'
import { cleanse } from '../safety/redact.ts'
import { alertResolved, cancelInvestigation, decided, searchAttributeNames } from '../workflows/outcome.ts'

const signals = { decided, alertResolved, cancelInvestigation }
export type RunSignal = keyof typeof signals

/**
 * Investigations, as this process reaches them through Temporal. Calls have a time limit and may
 * fail: the rows decide, the queue ticks once a minute, and a run reads its rows when it continues.
 */
export type Runs = {
  /** Sends a signal to a run. `gone`: the run is not open. `unreached`: Temporal did not answer. */
  tell(
    run: { incidentId: string; attempt: number },
    signal: RunSignal,
    withinMs: number,
  ): Promise<'told' | 'gone' | 'unreached'>
  /**
   * Starts the run of a person's own write. Returns false if Temporal does not answer; the queue
   * then starts the run within a minute.
   */
  startManualChange(incidentId: string): Promise<boolean>
  /** Triggers the queue now instead of at the next minute. Many triggers at once count as one. */
  triggerQueue(): void
  isReachable(withinMs: number): Promise<boolean>
  /**
   * Whether an execution is open for this attempt. `gone`: Temporal has no execution, it ended, or
   * the open one is not that which claimed the incident. `unreached`: Temporal does not answer.
   */
  carries?(
    run: { incidentId: string; attempt: number; runId: string | null },
    withinMs: number,
  ): Promise<'open' | 'gone' | 'unreached'>
  /** Reads the queue's Schedule and the workers; null if Temporal did not answer in time. */
  queue?(withinMs: number): Promise<QueueState | null>
}

export type QueueState = {
  schedule: ScheduleState | null
  /** Names of the workers that polled in the last minutes. */
  workers: string[]
  /** Search attributes that the workflows set and that the namespace lacks. */
  missingAttributes: string[]
}

/** The Schedule as Temporal reports it. `note` is untrusted text. */
type ScheduleState = {
  paused: boolean
  note: string | null
  everySeconds: number | null
  lastAt: string | null
  nextAt: string | null
}

const triggerWithinMs = 2_000

/**
 * Statuses of a run that has ended. With any other status, such as a status of a later Temporal,
 * the run may be open.
 */
const ended: ReadonlySet<string> = new Set(['COMPLETED', 'FAILED', 'CANCELLED', 'TERMINATED', 'TIMED_OUT'])

export function temporalRuns(client: Client, log: Logger): Runs {
  const within = <T>(ms: number, ask: () => Promise<T>): Promise<T> => client.withDeadline(Date.now() + ms, ask)
  return {
    triggerQueue: queueTrigger(client, log),
    async tell({ incidentId, attempt }, signal, withinMs) {
      try {
        const handle = client.workflow.getHandle(investigationId({ incidentId, attempt }))
        await within(withinMs, () => handle.signal(signals[signal]))
        return 'told'
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return 'gone'
        log.warn({ incidentId, attempt, signal, err: error }, 'a run could not be notified')
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
    async startManualChange(incidentId) {
      try {
        await within(triggerWithinMs, () => startManualChange(client, incidentId))
        return true
      } catch (error) {
        log.warn({ incidentId, err: error }, "a person's own write could not be started now")
        return false
      }
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

/** Returns a function that triggers a tick of the queue. Calls during a trigger cause one more. */
function queueTrigger(client: Client, log: Logger): () => void {
  let isTriggering = false
  let again = false
  const trigger = async () => {
    isTriggering = true
    try {
      while (again) {
        again = false
        const handle = client.schedule.getHandle(queueScheduleId)
        await client.withDeadline(Date.now() + triggerWithinMs, () => handle.trigger(ScheduleOverlapPolicy.SKIP))
      }
    } catch (error) {
      log.debug({ err: error }, 'the queue was not triggered; its Schedule triggers the queue later')
    } finally {
      isTriggering = false
    }
  }
  return () => {
    again = true
    if (!isTriggering) void trigger()
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

/** Reads the Schedule of the queue; null if it was deleted. */
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

/** Runs for a process without Temporal. */
export const noRuns: Runs = {
  tell: async () => 'unreached',
  startManualChange: async () => false,
  triggerQueue: () => {},
  isReachable: async () => false,
}
