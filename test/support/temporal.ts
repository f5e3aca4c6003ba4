import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Context, type RunningScriptOptions, Script } from 'node:vm'
import { afterAll, beforeAll } from '@jest/globals'
import { Client, Connection } from '@temporalio/client'
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import proto from '@temporalio/proto'
import { TestWorkflowEnvironment } from '@temporalio/testing'
import { DefaultLogger, makeTelemetryFilterString, NativeConnection, Runtime, Worker } from '@temporalio/worker'
import { globalHandlers } from '@temporalio/worker/lib/workflow/vm-shared.js'
import { lineTaskQueue, llmTaskQueue } from '../../domain/step-key.ts'
import { searchAttributes } from '../../start/temporal.ts'
import { findTemporalCli } from '../../start/temporal-cli.ts'
import { workflowBundle } from '../../worker/bundle.ts'
import { ensureSearchAttributes } from '../../worker/search-attributes.ts'
import { registerNamespace, temporalAddress, timeSkippingServerPath } from './broker.ts'
import { patienceMs } from './directory.ts'

export type Activities = Record<string, (...args: never[]) => Promise<unknown>>

type TestTemporal = {
  client: Client
  /**
   * Runs the workflows and these activities, on task queues of their own, for as long as the work
   * takes.
   */
  working<T>(
    activities: Activities,
    work: (taskQueue: string) => Promise<T>,
    taskQueue?: string,
    cachedRuns?: number,
  ): Promise<T>
  /** Lets this much time pass; the time-skipping server alone can. */
  skip(ms: number): Promise<void>
}

/** For a test that starts or signals a workflow before anybody works on it. */
export function newTaskQueue(): string {
  return `test-${randomBytes(4).toString('hex')}`
}

type TestTemporalOptions = {
  /**
   * Skips ahead while a result is awaited. One clock for all: tests of a file run one after the
   * other.
   */
  timeSkipping?: boolean
  /** A server of its own that asks runs to continue as new after this many events. */
  continueAsNewAfterEvents?: number
  /** 0: every task of a workflow replays its whole history, as after a restart. */
  cached?: number
}

/**
 * Temporal for one test file: a namespace on the development server, or a server whose clock can be
 * moved.
 */
export function useTemporal({ cached = 0, ...options }: TestTemporalOptions = {}): TestTemporal {
  let connection: NativeConnection
  let namespace: string
  let stop: () => Promise<void>
  const temporal: TestTemporal = {
    client: undefined as never,
    async skip() {
      throw new Error('only the time-skipping server moves its clock')
    },
    async working(activities, work, taskQueue = newTaskQueue(), cachedRuns = cached) {
      const common = {
        connection,
        namespace,
        activities,
        maxHeartbeatThrottleInterval: '100ms' as const,
        // Workflows run in this thread: to start one for each worker takes longer than most of
        // these tests.
        debugMode: true,
      }
      const main = await Worker.create({
        ...common,
        taskQueue,
        workflowBundle: await workflowBundle(),
        maxCachedWorkflows: cachedRuns,
      })
      const llm = await Worker.create({ ...common, taskQueue: llmTaskQueue(taskQueue) })
      const line = await Worker.create({ ...common, taskQueue: lineTaskQueue(taskQueue) })
      return await line.runUntil(() => llm.runUntil(() => main.runUntil(() => inTime(work(taskQueue)))))
    },
  }
  beforeAll(async () => {
    installRuntime()
    const started = await server(options)
    connection = started.connection
    namespace = started.client.options.namespace
    temporal.client = started.client
    if (started.skip) temporal.skip = started.skip
    stop = started.stop
  })
  afterAll(async () => {
    await stop?.()
  })
  return temporal
}

/** A test that hangs must still stop its workers, or nothing else can be closed. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  const stopped = new AbortController()
  const late = sleep(2 * patienceMs, undefined, { signal: stopped.signal }).then(() => {
    throw new Error(`not done after ${(2 * patienceMs) / 1000} s`)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    stopped.abort()
    late.catch(() => {})
  }
}

/** The bound of a worker in debug mode on one step of a workflow: 49 days. */
const boundlessMs = 4_294_967_295

/**
 * Node starts a thread for each call into a workflow that has a bound, to end it in time. A bound
 * of 49 days ends none, and the threads took half the time of these tests.
 */
function callWithoutWatchdog(): void {
  const { runInContext } = Script.prototype
  Script.prototype.runInContext = function run(this: Script, context: Context, options: RunningScriptOptions = {}) {
    const { timeout, ...unbounded } = options
    return runInContext.call(this, context, timeout === boundlessMs ? unbounded : options)
  }
}

/**
 * Once per process, before any worker. What a worker warns of when a test ends early says nothing
 * to a reader.
 */
export function installRuntime(): void {
  const process = globalThis as { isRuntimeInstalled?: boolean }
  if (process.isRuntimeInstalled) return
  process.isRuntimeInstalled = true
  callWithoutWatchdog()
  // Stacks for a query that no test sends: once a worker runs in this thread, every promise of
  // every file after it would pay.
  Object.assign(globalHandlers, { setPromiseHook: () => {} })
  Runtime.install({
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'ERROR' }) } },
  })
}

type Started = { client: Client; connection: NativeConnection; stop(): Promise<void>; skip?(ms: number): Promise<void> }

async function server(options: TestTemporalOptions): Promise<Started> {
  if (options.timeSkipping) return await timeSkippingServer()
  if (options.continueAsNewAfterEvents) return await impatientServer(options.continueAsNewAfterEvents)
  const address = await temporalAddress()
  const clientConnection = await Connection.connect({ address })
  const namespace = `test-${randomBytes(4).toString('hex')}`
  await registerNamespace(clientConnection, namespace)
  await ensureSearchAttributes(clientConnection, namespace)
  const connection = await NativeConnection.connect({ address })
  return {
    client: new Client({ connection: clientConnection, namespace }),
    connection,
    async stop() {
      await connection.close()
      await clientConnection.close()
    },
  }
}

async function timeSkippingServer(): Promise<Started> {
  const environment = await TestWorkflowEnvironment.createTimeSkipping({
    server: { executable: { type: 'existing-path', path: await timeSkippingServerPath() } },
  })
  // This server knows how to add search attributes and not how to list them.
  const { INDEXED_VALUE_TYPE_KEYWORD } = proto.temporal.api.enums.v1.IndexedValueType
  for (const name of searchAttributes) {
    await environment.connection.operatorService.addSearchAttributes({
      namespace: 'default',
      searchAttributes: { [name]: INDEXED_VALUE_TYPE_KEYWORD },
    })
  }
  return { ...inEnvironment(environment), skip: (ms) => environment.sleep(ms) }
}

async function impatientServer(events: number): Promise<Started> {
  const cli = await findTemporalCli({ rootDir: `${import.meta.dirname}/../..`, env: process.env })
  const names = searchAttributes.flatMap((name) => ['--search-attribute', `${name}=Keyword`])
  const environment = await TestWorkflowEnvironment.createLocal({
    server: {
      executable: { type: 'existing-path', path: cli.path },
      log: { format: 'json', level: 'error' },
      extraArgs: [...names, '--dynamic-config-value', `limit.historyCount.suggestContinueAsNew=${events}`],
    },
  })
  return inEnvironment(environment)
}

function inEnvironment(environment: TestWorkflowEnvironment): Started {
  return {
    client: environment.client,
    connection: environment.nativeConnection,
    stop: () => environment.teardown(),
  }
}

export type History = proto.temporal.api.history.v1.IHistory

/** The names of the activities a run asked for, in order. */
export function scheduled(history: History): string[] {
  return (history.events ?? []).flatMap((event) => event.activityTaskScheduledEventAttributes?.activityType?.name ?? [])
}

/**
 * All that a history says in words: every string of a payload, every failure, every summary, and
 * the whole as text.
 */
export function spoken(history: History) {
  const payloads: string[] = []
  const failures: string[] = []
  const summaries: string[] = []
  let everything = ''
  const visit = (value: unknown, key: string): void => {
    if (typeof value === 'string') {
      everything += `${value}\n`
      return
    }
    if (value === null || typeof value !== 'object') return
    const node = value as Record<string, unknown>
    if (typeof node.data === 'string' && node.metadata) {
      const text = Buffer.from(node.data, 'base64').toString()
      everything += `${text}\n`
      if (text !== '') (key === 'summary' ? summaries : payloads).push(...stringsOf(JSON.parse(text)))
      return
    }
    if (key === 'failure' || key === 'lastFailure') failures.push(String(node.message ?? ''))
    if (key === 'cause') failures.push(String(node.message ?? ''))
    for (const [name, child] of Object.entries(node)) visit(child, Array.isArray(value) ? key : name)
  }
  visit(JSON.parse(historyToJSON(history)), '')
  return { payloads, failures, summaries, everything }
}

function stringsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (value === null || typeof value !== 'object') return []
  return Object.values(value).flatMap(stringsOf)
}
