import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
} from '@temporalio/client'
import { queueScheduleId } from '../domain/step-key.ts'

/** `site`: the Schedule's owner (`db/site-id.ts`). Any site takes one without an owner. */
export type ScheduleOptions = { taskQueue: string; intervalSeconds: number; enabled: boolean; site?: string }

/**
 * The namespace is another site's: its workers would take this one's work, and carry it out over
 * their own database.
 */
export class ForeignScheduleError extends Error {
  override name = 'ForeignScheduleError' as const
}

/**
 * Sets the queue's Schedule: every interval, never two at once, and after an outage at most two
 * minutes' ticks. With the agent off it is paused, not deleted: its history says so.
 */
export async function ensureSchedule(client: Client, options: ScheduleOptions): Promise<void> {
  const { spec, policies, action } = wanted(options)
  const state = { paused: !options.enabled, note: options.enabled ? 'agent enabled' : 'AGENT_ENABLED is false' }
  try {
    await client.schedule.create({ scheduleId: queueScheduleId, spec, policies, action, state })
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error
    await refuseForeign(client, options)
    await putBack(client, options, state)
  }
}

/**
 * Looks whether somebody deleted or edited the Schedule, and sets it again: answers what was found,
 * null where all was right. A pause stays: it may be a person's, and the health page shows it.
 */
export async function keepSchedule(client: Client, options: ScheduleOptions): Promise<ScheduleFault> {
  const found = await scheduleFault(client, options)
  if (found === 'edited') await putBack(client, options, {})
  if (found === 'deleted') await ensureSchedule(client, options)
  return found
}

type ScheduleFault = 'deleted' | 'edited' | null

/**
 * The Schedule's fault; null where there is none. Changes nothing. Throws ForeignScheduleError
 * where it is another site's.
 */
export async function scheduleFault(client: Client, options: ScheduleOptions): Promise<ScheduleFault> {
  try {
    const found = await client.schedule.getHandle(queueScheduleId).describe()
    if (isForeign(found, options)) throw new ForeignScheduleError('The Schedule of the queue is another site’s')
    return isAsWanted(found, options) ? null : 'edited'
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error
    return 'deleted'
  }
}

async function refuseForeign(client: Client, options: ScheduleOptions): Promise<void> {
  const found = await client.schedule.getHandle(queueScheduleId).describe()
  if (isForeign(found, options)) throw new ForeignScheduleError('The Schedule of the queue is another site’s')
}

/** An older build writes no mark, and takes one away where it puts the Schedule back. */
function isForeign({ action }: ScheduleDescription, { site }: ScheduleOptions): boolean {
  const marked = action.type === 'startWorkflow' ? action.memo?.[siteMark] : undefined
  return site !== undefined && typeof marked === 'string' && marked !== site
}

const siteMark = 'nightshiftSite'

function wanted({ taskQueue, intervalSeconds, site }: ScheduleOptions) {
  return {
    spec: { intervals: [{ every: `${intervalSeconds} seconds` as const }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '2 minutes' as const, pauseOnFailure: false },
    action: {
      type: 'startWorkflow' as const,
      workflowType: 'ProcessIncidentQueue',
      taskQueue,
      args: [],
      workflowId: queueScheduleId,
      workflowRunTimeout: '5 minutes' as const,
      staticSummary: 'one tick of the queue',
      ...(site && { memo: { [siteMark]: site } }),
    },
  }
}

async function putBack(client: Client, options: ScheduleOptions, state: object): Promise<void> {
  const { spec, policies, action } = wanted(options)
  await client.schedule.getHandle(queueScheduleId).update((previous) => ({
    spec,
    policies,
    action: { ...action, ...(!options.site && { memo: previous.action.memo }) },
    // Somebody may have let it run a few times more and then no more.
    state: { paused: previous.state.paused, note: previous.state.note, ...state },
  }))
}

function isAsWanted({ spec, policies, action, state }: ScheduleDescription, options: ScheduleOptions): boolean {
  const { intervals = [], calendars = [], skip = [], startAt, endAt, jitter } = spec
  const [interval] = intervals
  const ticks =
    intervals.length === 1 && interval?.every === options.intervalSeconds * 1_000 && Number(interval.offset ?? 0) === 0
  const onlyTicks = calendars.length === 0 && skip.length === 0 && !startAt && !endAt && !jitter
  const starts =
    action.type === 'startWorkflow' &&
    action.workflowType === 'ProcessIncidentQueue' &&
    action.taskQueue === options.taskQueue &&
    action.workflowId === queueScheduleId &&
    (action.args ?? []).length === 0
  const skips = policies.overlap === ScheduleOverlapPolicy.SKIP && !policies.pauseOnFailure
  return ticks && onlyTicks && starts && skips && state.remainingActions === undefined
}
