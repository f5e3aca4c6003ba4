import { flushCompileCache } from 'node:module'
import { serve } from '@hono/node-server'
import pino from 'pino'
import { createCoreClient } from '../clients/core.ts'
import { baseUrlOf, serverName } from '../clients/model.ts'
import { TemporalError } from '../clients/temporal.ts'
import { listEnvironment } from '../config/environment.ts'
import { modelsOf, orExit, readConfigOrExit, slackSettings } from '../config/settings.ts'
import { connect } from '../db/connect.ts'
import { noteProvider } from '../db/event-counters.ts'
import { noteWorkerEnvironment } from '../db/settings.ts'
import { commandPrefix } from '../domain/own-command.ts'
import { nonceSetting, sayingNonce } from '../domain/start-nonce.ts'
import { newerSchema } from '../migrations/migrate.ts'
import { createSlackClient } from '../notify/slack/client.ts'
import { startSlack } from '../notify/slack/send.ts'
import { toMetricLabel } from '../safety/safety-metrics.ts'
import { loadSql } from '../safety/sql/inspect.ts'
import { startDeliveries } from './deliver.ts'
import { freeMemoryWhenIdle } from './free-memory.ts'
import { healthApp } from './health.ts'
import { startLooks } from './looks.ts'
import { watchSchema } from './schema.ts'
import { startBodies } from './take-bodies.ts'
import { waitForSchema } from './wait-for-schema.ts'
import { startWorkers, warnOfGrade } from './workers.ts'

/**
 * Runs the worker process: workflows, activities, Temporal's Schedule and the outbox. Ends cleanly
 * on SIGTERM.
 */
const config = readConfigOrExit(['DATABASE_URL'])
const models = orExit(() => modelsOf(config))
const log = pino({ level: config.LOG_LEVEL, name: 'worker' })
const db = connect(config.DATABASE_URL as string, { name: 'nightshift-worker', max: 20 })

// Opens the port first, so that a port in use ends the process before it begins any work.
let states: () => readonly string[] = () => ['STARTING']
const health = healthApp(db, () => states())
const fetch = sayingNonce(health.fetch, process.env[nonceSetting])
const server = serve({ fetch, port: config.WORKER_PORT, hostname: config.HOST })
server.on('error', (error) => {
  log.fatal({ err: error }, `the worker cannot listen on port ${config.WORKER_PORT}: free it, or set WORKER_PORT`)
  process.exit(1)
})

// Handles the signals during the start, because the first process of a container would otherwise
// ignore them.
const leave = () => process.exit(0)
process.once('SIGTERM', leave).once('SIGINT', leave)
const newer = await newerSchema(db).catch(() => null)
if (newer !== null) {
  log.fatal(`the worker does not start: ${newer}`)
  process.exit(1)
}
await waitForSchema(db, log)
// Loads the SQL parser first: without it every SQL text counts as a write, which is safe but
// needlessly strict.
await loadSql()
const workers = await startWorkers(config, db, log, { models }).catch((error): never => {
  // Logs a fault at Temporal in one line that names the setting, without a stack trace.
  if (!(error instanceof TemporalError)) throw error
  log.fatal(`the worker does not start: ${error.message}`)
  process.exit(1)
})
states = workers.states
const publicUrl = config.PUBLIC_URL?.replace(/\/+$/, '') ?? `http://127.0.0.1:${config.PORT}`
// Writes commands in messages as people type them on this machine, as the API does.
const site = { publicUrl, commandPrefix: commandPrefix(process.env), pushServices: config.PUSH_SERVICES }
const deliveries = startDeliveries(db, log, site)
const workspace = slackSettings(config)
const slack = startSlack(db, log, workspace && createSlackClient(workspace), site)
const core = createCoreClient({ baseUrl: config.CORE_API_URL, apiKey: config.AGENT_API_KEY ?? '' })
const looks = startLooks({ db, core, log })
const bodies = startBodies({ db, runs: workers.runs, log })
const stopGivingBack = freeMemoryWhenIdle(log)

const provider = toMetricLabel(config.LLM_BASE_URL ? new URL(config.LLM_BASE_URL).host : 'none')
await noteProvider(db, provider).catch((error) =>
  log.warn({ err: error }, 'the server of the model could not be recorded'),
)
await noteWorkerEnvironment(db, listEnvironment(process.env)).catch((error) =>
  log.warn({ err: error }, 'the settings of the worker could not be recorded'),
)
log.info({ port: config.WORKER_PORT, agent: config.AGENT_ENABLED }, 'the worker is ready')
if (config.AGENT_ENABLED && config.LLM_BASE_URL) {
  const key = { server: serverName(baseUrlOf(config.LLM_BASE_URL)), model: config.LLM_MODEL }
  await warnOfGrade(db, log, key).catch((error) => log.warn({ err: error }, "the model's grade could not be read"))
}
// Writes the compile cache now (if NODE_COMPILE_CACHE is set); a killed process writes none.
flushCompileCache()

const stop = async (code = 0) => {
  stopWatching()
  server.close()
  stopGivingBack()
  await Promise.allSettled([workers.stop(), deliveries.stop(), slack.stop(), looks.stop(), bodies.stop()])
  await db.destroy()
  process.exit(code)
}
// Hands the worker's tasks back, as at any stop, so that a worker of a newer build takes them.
const stopWatching = watchSchema(db, (why) => {
  log.fatal(`the worker stops: ${why}`)
  void stop(1)
})
process.once('SIGTERM', () => stop())
process.once('SIGINT', () => stop())
process.off('SIGTERM', leave).off('SIGINT', leave)
workers.ended.catch((error) => {
  log.fatal({ err: error }, 'a worker failed')
  process.exit(1)
})
