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
import { defaultTaskQueue, llmTaskQueue, queueScheduleId } from '../domain/step-key.ts'
import { type Runs, temporalRuns } from '../effects/runs.ts'
import { readPrompts } from '../prompts/render.ts'
import { workflowBundle } from './bundle.ts'
import { ensureSchedule, ForeignScheduleError, keepSchedule } from './schedule.ts'
import { ensureSearchAttributes } from './search-attributes.ts'

const keepEveryMs = 60_000

type Workers = {
  /** The runs, as other code of this process reaches them. */
  runs: Runs
  /** Temporal's own words: INITIALIZED, RUNNING, STOPPING, … */
  states(): string[]
  /** Stops polling, lets activities finish or stops them, and returns when both workers ended. */
  stop(): Promise<void>
  /** Settles when a worker ends by itself; rejects when it failed. */
  ended: Promise<void>
}

type WorkerOptions = {
  taskQueue?: string
  /** By default those of the environment. */
  models?: DeclaredModel[]
  /** Other workflows than ours, for measurements. */
  bundle?: { code: string }
  /** What `platform_config` falls back to; by default what the process was given. */
  environment?: Record<string, string | undefined>
  /** The queue's Schedule is made and kept; tests that tick by hand go without. */
  schedule?: boolean
}

/**
 * Builds the two workers: `nightshift` for workflows, tools and rows, `nightshift-llm` for the
 * model alone, since a rate limit holds only where activities are not dispatched eagerly. With the
 * agent off nothing is claimed: only running ones go on.
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
  // Without a model of LLM_BASE_URL there is none to show.
  await declareModels(db, config.LLM_BASE_URL ? named : named.slice(1)).catch((error) =>
    log.warn({ err: error }, 'which models there are was not made known'),
  )
  const workers = [await createMainWorker(parts), await createModelWorker(parts)]
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
    // As many as may work at once and some. Beyond it, runs that wait for a person are replayed
    // from their short history when they wake, which slows no decision; kept, each costs a third of
    // a megabyte meanwhile.
    maxCachedWorkflows: config.WORKER_CACHED_WORKFLOWS,
    workflowThreadPoolSize: config.WORKER_WORKFLOW_THREADS,
    // What writes rows or acts comes to its end; what only waits is given back after that.
    shutdownGraceTime: '5s',
    shutdownForceTime: '15s',
  })
}

async function createModelWorker(parts: WorkerParts): Promise<Worker> {
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
  return await Worker.create({
    connection,
    namespace,
    taskQueue: llmTaskQueue(taskQueue),
    activities: sanitizeFailures(activities, log),
    // Rows decide over all workers how many ask the model at once; this many more may wait here.
    maxConcurrentActivityTaskExecutions: config.LLM_MAX_CONCURRENT + 100,
    maxTaskQueueActivitiesPerSecond: config.LLM_REQUESTS_PER_SECOND,
    // An answer may take minutes: SIGTERM gives the question back at once, and its slot with it.
    shutdownGraceTime: 0,
    shutdownForceTime: '15s',
  })
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
 * Makes the Schedule and search attributes, also again when somebody changes them. Answers how to
 * stop looking.
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
 * The worker's two connections. The first words to the namespace are said here: a missing or
 * refusing one is known before anything is built.
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
 * An outside change of the Schedule is undone and noted. Temporal may be away: then the next look
 * comes.
 */
async function recordScheduleChange(db: Db, log: Logger, keep: () => ReturnType<typeof keepSchedule>): Promise<void> {
  try {
    const found = await keep()
    if (found === null) return
    log.warn({ found }, "the queue's Schedule was not what it should be, and is again")
    const detail = `The queue's Schedule was ${found} in Temporal; a worker made it again what it should be`
    await recordAudit(db, { who: 'unknown', what: 'security.schedule_changed', subject: queueScheduleId, detail })
  } catch (error) {
    log.warn({ err: error }, "the queue's Schedule could not be looked at")
  }
}

/** Without them every run of a Temporal that was emptied would fail at its first step. */
async function keepSearchAttributes(connection: Connection, namespace: string, log: Logger): Promise<void> {
  try {
    const missing = await ensureSearchAttributes(connection, namespace)
    if (missing.length > 0)
      log.warn({ missing }, 'search attributes were missing in Temporal, and are registered again')
  } catch (error) {
    log.warn({ err: error }, 'the search attributes could not be looked at')
  }
}

let installed = false
/**
 * Once a process and before any connection. Signals are ours: the SDK must not end workers behind
 * our back.
 */
function installRuntime(): void {
  if (installed) return
  installed = true
  Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [] })
}

/** Says in the log where incidents are left to a model below C, or one that nobody measured. */
export async function warnOfGrade(db: Db, log: Pick<Logger, 'warn'>, key: ModelKey): Promise<void> {
  const known = await passportOf(db, key)
  const warning = warnOfModel(key.model, known)
  if (warning) log.warn({ ...key, grade: known?.grade ?? null }, warning)
}
