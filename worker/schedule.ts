import {
  type Client,
  type Connection,
  isGrpcServiceError,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
} from '@temporalio/client'
import proto from '@temporalio/proto'
import { queueScheduleId } from '../domain/step-key.ts'
import { searchAttributeNames } from '../workflows/outcome.ts'

export type ScheduleOptions = { taskQueue: string; intervalSeconds: number; enabled: boolean }

/**
 * Makes the queue's Schedule what it should be: every interval, never two at once, and after an outage the ticks of two
 * minutes at most. With the agent off it is paused, not deleted: its history says so.
 */
export async function ensureSchedule(client: Client, options: ScheduleOptions): Promise<void> {
  const { spec, policies, action } = wanted(options)
  const state = { paused: !options.enabled, note: options.enabled ? 'agent enabled' : 'AGENT_ENABLED is false' }
  try {
    await client.schedule.create({ scheduleId: queueScheduleId, spec, policies, action, state })
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error
    await putBack(client, options, state)
  }
}

/**
 * Looks whether somebody deleted or edited the Schedule in Temporal, and makes it again what it should be: answers what was found, null
 * where there was nothing to do. A pause stays: it may be a person's, and the health page shows it.
 */
export async function keepSchedule(client: Client, options: ScheduleOptions): Promise<ScheduleFault> {
  const found = await scheduleFault(client, options)
  if (found === 'edited') await putBack(client, options, {})
  if (found === 'deleted') await ensureSchedule(client, options)
  return found
}

type ScheduleFault = 'deleted' | 'edited' | null

/** What is wrong with the Schedule; null where it is as it should be. Changes nothing. */
export async function scheduleFault(client: Client, options: ScheduleOptions): Promise<ScheduleFault> {
  try {
    const found = await client.schedule.getHandle(queueScheduleId).describe()
    return isAsWanted(found, options) ? null : 'edited'
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error
    return 'deleted'
  }
}

function wanted({ taskQueue, intervalSeconds }: ScheduleOptions) {
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
    },
  }
}

async function putBack(client: Client, options: ScheduleOptions, state: object): Promise<void> {
  const { spec, policies, action } = wanted(options)
  await client.schedule.getHandle(queueScheduleId).update((previous) => ({
    spec,
    policies,
    action,
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

const { INDEXED_VALUE_TYPE_KEYWORD } = proto.temporal.api.enums.v1.IndexedValueType

/**
 * Registers what operators filter investigations by in Temporal's own UI; what is there already is left alone. Answers what
 * was missing.
 */
export async function ensureSearchAttributes(connection: Connection, namespace: string): Promise<string[]> {
  const { missing } = await searchAttributeFaults(connection, namespace)
  if (missing.length === 0) return []
  try {
    await connection.operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing.map((name) => [name, INDEXED_VALUE_TYPE_KEYWORD])),
    })
    return missing
  } catch (error) {
    if (!isRefused(error)) throw error
    throw new Error(
      `The namespace "${namespace}" lacks the search attributes ${missing.join(', ')}, and Temporal does not let us make them. ` +
        'Make them there with the type Keyword: in Temporal Cloud on the page of the namespace, or with "tcld namespace search-attributes add".',
      { cause: error },
    )
  }
}

/** Which of our search attributes are not there, and which are of another type, so that a run which sets them cannot start. */
export async function searchAttributeFaults(
  connection: Connection,
  namespace: string,
): Promise<{ missing: string[]; ofOtherType: string[] }> {
  try {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace })
    const types = customAttributes ?? {}
    return {
      missing: searchAttributeNames.filter((name) => !(name in types)),
      ofOtherType: searchAttributeNames.filter((name) => name in types && types[name] !== INDEXED_VALUE_TYPE_KEYWORD),
    }
  } catch (error) {
    if (!isRefused(error)) throw error
    // Temporal Cloud answers no client about it. There the names are aliases that the namespace knows.
    const { config } = await connection.workflowService.describeNamespace({ namespace })
    const aliases = new Set(Object.values(config?.customSearchAttributeAliases ?? {}))
    return { missing: searchAttributeNames.filter((name) => !aliases.has(name)), ofOtherType: [] }
  }
}

/** PERMISSION_DENIED, UNIMPLEMENTED, UNAUTHENTICATED: the namespace has let us in by now, so it is this service that does not. */
function isRefused(error: unknown): boolean {
  return isGrpcServiceError(error) && [7, 12, 16].includes(error.code)
}
