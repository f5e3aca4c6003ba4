import { Client, Connection } from '@temporalio/client'
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker'
import type { Logger } from 'pino'
import { actActivities } from '../activities/act.ts'
import { approvalActivities } from '../activities/approvals.ts'
import type { RoutedModel } from '../activities/choose-model.ts'
import { contextActivities } from '../activities/context.ts'
import { sanitizeFailures } from '../activities/failures.ts'
import { groupActivities, queueActivities } from '../activities/queue.ts'
import { servedModels } from '../activities/served-models.ts'
import { thinkActivities } from '../activities/think.ts'
import { createCoreClient } from '../clients/core.ts'
import { baseUrlOf, createModelClient, serverName } from '../clients/model.ts'
import {
  connectionOptions,
  explainTrouble,
  foreignNamespace,
  onceNamespaceIsKnown,
  type TemporalSettings,
} from '../clients/temporal.ts'
import { type Config, type DeclaredModel, givenDefaults, modelsOf, temporalSettings } from '../config/settings.ts'
import type { Db } from '../db/connect.ts'
import { recordAudit } from '../db/log/audit.ts'
import { declareModels } from '../db/models/declared-models.ts'
import { passportOf } from '../db/models/passports.ts'
import type { ModelKey } from '../db/models/profiles.ts'
import { siteId } from '../db/site-id.ts'
import { warnOfModel } from '../domain/passport.ts'
import { defaultTaskQueue, lineTaskQueue, llmTaskQueue, queueScheduleId } from '../domain/step-key.ts'
import { type Runs, temporalRuns } from '../effects/runs.ts'
import { readPrompts } from '../prompts/render.ts'
import { workflowBundle } from './bundle.ts'
import { ensureSchedule, ForeignScheduleError, keepSchedule } from './schedule.ts'
import { ensureSearchAttributes } from './search-attributes.ts'

const keepEveryMs = 60_000

type Workers = {
  /** The investigations at Temporal, for other code of this process. */
  runs: Runs
  /** States of the workers in Temporal's words: INITIALIZED, RUNNING, STOPPING, … */
  states(): string[]
  /**
   * Stops polling, lets activities finish or stops them, and returns when all workers have ended.
   */
  stop(): Promise<void>
  /** Settles when a worker ends without `stop`; rejects if the worker failed. */
  ended: Promise<void>
}

type WorkerOptions = {
  taskQueue?: string
  /** Models to use; by default those of `config`. */
  models?: DeclaredModel[]
  /** Bundled workflows that replace the product's, for measurements. */
  bundle?: { code: string }
  /** The fallback for settings in `platform_config`; by default the process' environment. */
  environment?: Record<string, string | undefined>
  /** Whether to create and keep the queue's Schedule; tests that start ticks themselves do not. */
  schedule?: boolean
}

/**
 * Builds three kinds of workers, each for a task queue. `nightshift` runs workflows, tools and
 * statements on rows. `nightshift-llm` sends requests to the model, on a separate queue because a
 * rate limit does not apply to eagerly dispatched activities. `nightshift-line` is for runs that
 * wait for the model. If the agent is off, no incident is claimed, and only running investigations
 * continue.
 */
export async function startWorkers(config: Config, db: Db, log: Logger, options: WorkerOptions = {}): Promise<Workers> {
  installRuntime()
  const temporal = temporalSettings(config)
  const { connection, clientConnection } = await explainTrouble(temporal, () => connectBoth(temporal))
  const { namespace } = temporal
  const parts: WorkerParts = {
    config,
    db,
    log,
    options,
    connection,
    namespace,
    client: new Client({ connection: clientConnection, namespace }),
    models: options.models ?? modelsOf(config),
    taskQueue: options.taskQueue ?? defaultTaskQueue,
  }
  const named = parts.models.map(({ name, baseUrl, model, fallbacks, protocol }) => ({
    name,
    server: serverName(baseUrlOf(baseUrl)),
    model,
    fallbacks,
    protocol,
  }))
  // Leaves out the model of LLM_BASE_URL if that setting is empty.
  await declareModels(db, config.LLM_BASE_URL ? named : named.slice(1)).catch((error) =>
    log.warn({ err: error }, 'the list of models could not be stored'),
  )
  const workers = [await createMainWorker(parts), ...(await createModelWorkers(parts))]
  const stopKeeping = options.schedule === false ? () => {} : await keepTemporalReady(parts, clientConnection)
  const running = Promise.all(workers.map((worker) => worker.run())).then(() => undefined)
  return {
    runs: temporalRuns(parts.client, log),
    states: () => workers.map((worker) => worker.getState()),
    ended: running,
    async stop() {
      stopKeeping()
      for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown()
      await running.catch(() => {})
      await connection.close()
      await clientConnection.close()
    },
  }
}

type WorkerParts = {
  config: Config
  db: Db
  log: Logger
  options: WorkerOptions
  connection: NativeConnection
  namespace: string
  client: Client
  models: DeclaredModel[]
  taskQueue: string
}

async function createMainWorker(parts: WorkerParts): Promise<Worker> {
  const { config, db, log, options, client, taskQueue } = parts
  const environment = options.environment ?? givenDefaults()
  const isEnabled = config.AGENT_ENABLED
  const core = createCoreClient({ baseUrl: config.CORE_API_URL, apiKey: config.AGENT_API_KEY ?? '' })
  const queue = queueActivities({ db, client, taskQueue, environment, isEnabled, log })
  const context = contextActivities({
    db,
    core,
    prompts: readPrompts(),
    protocol: config.LLM_PROTOCOL,
    model: config.LLM_MODEL,
    models: new Map(
      parts.models.map(({ name, model, protocol, ...server }) => [
        name,
        { model, protocol, served: servedModels(db, server, log) },
      ]),
    ),
    environment,
    isEnabled,
  })
  return await Worker.create({
    connection: parts.connection,
    namespace: parts.namespace,
    taskQueue,
    workflowBundle: options.bundle ?? (await workflowBundle()),
    activities: {
      ...sanitizeFailures(queue, log),
      ...sanitizeFailures(groupActivities({ db, environment, queue, isEnabled }), log),
      ...sanitizeFailures(context, log),
      ...sanitizeFailures(actActivities({ db, core, environment }), log),
      ...sanitizeFailures(approvalActivities({ db }), log),
    },
    maxConcurrentWorkflowTaskExecutions: 40,
    maxConcurrentActivityTaskExecutions: config.WORKER_ACTIVITY_SLOTS,
    // Runs that stay in the cache. Without the cache, a run is replayed at each of its steps.
    // Replay is cheap for one run that wakes, but for hundreds of runs at once it costs more than
    // all other work. A cached run takes a third of a megabyte.
    maxCachedWorkflows: config.WORKER_CACHED_WORKFLOWS,
    workflowThreadPoolSize: config.WORKER_WORKFLOW_THREADS,
    // Lets activities that write rows or change the platform finish. Activities that only wait are
    // handed back after these times.
    shutdownGraceTime: '5s',
    shutdownForceTime: '15s',
  })
}

/** Most runs that wait for a model's slot at once on this worker; a wait costs almost nothing. */
const maxWaiting = 1_000

/**
 * Builds the worker that sends requests to the models, and the worker for runs that wait for a
 * slot.
 */
async function createModelWorkers(parts: WorkerParts): Promise<Worker[]> {
  const { config, db, log, connection, namespace, taskQueue } = parts
  const [first, ...others] = parts.models.map((each) => routedModel(parts, each))
  if (!first) throw new Error('there is no model')
  const activities = thinkActivities({
    db,
    models: [first, ...others],
    temperature: config.LLM_TEMPERATURE,
    maxTokens: config.LLM_MAX_TOKENS,
    contextTokens: config.LLM_CONTEXT_TOKENS ?? null,
    slots: { limit: config.LLM_MAX_CONCURRENT },
    prompts: readPrompts(),
  })
  const common = {
    connection,
    namespace,
    activities: sanitizeFailures(activities, log),
    // Hands a request to the model back at once on SIGTERM, with its slot, because an answer may
    // take minutes.
    shutdownGraceTime: 0,
    shutdownForceTime: '15s',
  } as const
  const asking = await Worker.create({
    ...common,
    taskQueue: llmTaskQueue(taskQueue),
    // Allows 100 more than the model's limit, because rows limit the requests of all workers. The
    // other activities are requests that find all slots taken, and waits that an older build has
    // scheduled on this queue.
    maxConcurrentActivityTaskExecutions: config.LLM_MAX_CONCURRENT + 100,
    maxTaskQueueActivitiesPerSecond: config.LLM_REQUESTS_PER_SECOND,
  })
  const waiting = await Worker.create({
    ...common,
    taskQueue: lineTaskQueue(taskQueue),
    maxConcurrentActivityTaskExecutions: maxWaiting,
  })
  return [asking, waiting]
}

function routedModel(
  { config, db, log }: WorkerParts,
  { name, model, fallbacks, protocol, ...server }: DeclaredModel,
): RoutedModel {
  const served = servedModels(db, server, log)
  const client = createModelClient({
    ...server,
    timeoutMs: config.LLM_TIMEOUT_SECONDS * 1000,
    stallMs: config.LLM_STALL_SECONDS * 1000,
    memory: served.memory,
  })
  return { name, model, fallbacks, protocol, client, served }
}

/**
 * Creates the Schedule and the search attributes, and restores them after changes. Returns a
 * function that stops the checks.
 */
async function keepTemporalReady(parts: WorkerParts, connection: Connection): Promise<() => void> {
  const { config, db, log, client, namespace, taskQueue } = parts
  const site = (await siteId(db)) ?? ''
  const schedule = { taskQueue, intervalSeconds: config.QUEUE_INTERVAL_SECONDS, enabled: config.AGENT_ENABLED, site }
  await onceNamespaceIsKnown(async () => {
    await ensureSearchAttributes(connection, namespace)
    await ensureSchedule(client, schedule)
  }).catch((error: unknown): never => {
    throw error instanceof ForeignScheduleError ? foreignNamespace(temporalSettings(config), error) : error
  })
  const timer = setInterval(() => {
    void recordScheduleChange(db, log, () => keepSchedule(client, schedule))
    void keepSearchAttributes(connection, namespace, log)
  }, keepEveryMs)
  return () => clearInterval(timer)
}

/**
 * Opens the worker's two connections. The first request is about the namespace, so that a namespace
 * that is missing or refuses requests is found before anything is built.
 */
async function connectBoth(settings: TemporalSettings) {
  const options = connectionOptions(settings)
  const clientConnection = await Connection.connect(options)
  try {
    await clientConnection.workflowService.describeNamespace({ namespace: settings.namespace })
    return { clientConnection, connection: await NativeConnection.connect(options) }
  } catch (error) {
    await clientConnection.close()
    throw error
  }
}

/**
 * Undoes and records an outside change of the Schedule. If Temporal is unreachable, the next check
 * tries again.
 */
async function recordScheduleChange(db: Db, log: Logger, keep: () => ReturnType<typeof keepSchedule>): Promise<void> {
  try {
    const found = await keep()
    if (found === null) return
    log.warn({ found }, "the queue's Schedule was changed, and is restored")
    const detail = `The queue's Schedule was ${found} in Temporal; a worker restored the Schedule`
    await recordAudit(db, { who: 'unknown', what: 'security.schedule_changed', subject: queueScheduleId, detail })
  } catch (error) {
    log.warn({ err: error }, "the queue's Schedule could not be read")
  }
}

/**
 * Registers missing search attributes. Without them every run would fail at its first step, for
 * example after Temporal lost its data.
 */
async function keepSearchAttributes(connection: Connection, namespace: string, log: Logger): Promise<void> {
  try {
    const missing = await ensureSearchAttributes(connection, namespace)
    if (missing.length > 0)
      log.warn({ missing }, 'search attributes were missing in Temporal, and are registered again')
  } catch (error) {
    log.warn({ err: error }, 'the search attributes could not be read')
  }
}

let installed = false
/**
 * Runs once per process, before any connection. This process handles signals itself, because the
 * SDK must not end workers on a signal.
 */
function installRuntime(): void {
  if (installed) return
  installed = true
  Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [] })
}

/** Warns in the log if incidents are left to a model with a grade below C or without a grade. */
export async function warnOfGrade(db: Db, log: Pick<Logger, 'warn'>, key: ModelKey): Promise<void> {
  const known = await passportOf(db, key)
  const warning = warnOfModel(key.model, known)
  if (warning) log.warn({ ...key, grade: known?.grade ?? null }, warning)
}
