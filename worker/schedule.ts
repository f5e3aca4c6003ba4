import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
} from '@temporalio/client'
import { queueScheduleId } from '../domain/step-key.ts'

/**
 * `site`: the Nightshift installation that owns the Schedule (`db/site-id.ts`). Any installation
 * may change a Schedule without an owner.
 */
export type ScheduleOptions = { taskQueue: string; intervalSeconds: number; enabled: boolean; site?: string }

/**
 * Thrown if the Schedule in this namespace belongs to another installation, whose workers would do
 * the work of this installation on their own database.
 */
export class ForeignScheduleError extends Error {
  override name = 'ForeignScheduleError' as const
}

/**
 * Creates or updates the Schedule of the queue: a tick every interval, never two ticks at once, and
 * after an outage at most the ticks of two minutes. If the agent is off, the Schedule is paused,
 * not deleted, and its note explains why.
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
 * Restores the Schedule if somebody deleted or edited it. Returns the change that was found, or
 * null. A pause remains, because a person may have set it, and the health page shows it.
 */
export async function keepSchedule(client: Client, options: ScheduleOptions): Promise<ScheduleFault> {
  const found = await scheduleFault(client, options)
  if (found === 'edited') await putBack(client, options, {})
  if (found === 'deleted') await ensureSchedule(client, options)
  return found
}

type ScheduleFault = 'deleted' | 'edited' | null

/**
 * Returns the fault of the Schedule; null if the Schedule has no fault. Changes nothing. Throws
 * ForeignScheduleError if the Schedule belongs to another installation.
 */
export async function scheduleFault(client: Client, options: ScheduleOptions): Promise<ScheduleFault> {
  try {
    const found = await client.schedule.getHandle(queueScheduleId).describe()
    if (isForeign(found, options))
      throw new ForeignScheduleError('The Schedule of the queue belongs to another Nightshift')
    return isAsWanted(found, options) ? null : 'edited'
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error
    return 'deleted'
  }
}

async function refuseForeign(client: Client, options: ScheduleOptions): Promise<void> {
  const found = await client.schedule.getHandle(queueScheduleId).describe()
  if (isForeign(found, options))
    throw new ForeignScheduleError('The Schedule of the queue belongs to another Nightshift')
}

/**
 * Compares the installation that owns the Schedule. An older build records no owner, and removes
 * the owner when it restores the Schedule.
 */
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
    // Resets the rest of the state, because somebody may have limited the number of runs.
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
