import { flushCompileCache } from 'node:module'
import { hostname } from 'node:os'
import { fileURLToPath } from 'node:url'
import { serve } from '@hono/node-server'
import { Client, Connection } from '@temporalio/client'
import pino from 'pino'
import { baseUrlOf, serverName } from '../clients/model.ts'
import { createOidc } from '../clients/oidc.ts'
import { connectionOptions, troubleWith } from '../clients/temporal.ts'
import { listEnvironment } from '../config/environment.ts'
import {
  givenDefaults,
  knowledgeSettings,
  meshSettings,
  oidcSettings,
  readConfigOrExit,
  slackSettings,
  temporalSettings,
} from '../config/settings.ts'
import { connect } from '../db/connect.ts'
import { systemScope } from '../db/scope.ts'
import { unconfirmedPairs } from '../db/trust/levels.ts'
import { commandPrefix } from '../domain/own-command.ts'
import { nonceSetting, sayingNonce } from '../domain/start-nonce.ts'
import { openConnections } from '../effects/devices/connections.ts'
import { openMesh } from '../effects/devices/executor.ts'
import { watchMesh } from '../effects/devices/health.ts'
import { JobsFileError, readJobsFile } from '../effects/jobs/jobs.ts'
import { choosePlatform } from '../effects/platform.ts'
import { startRetention } from '../effects/retention.ts'
import { temporalRuns } from '../effects/runs.ts'
import { startWatchdog } from '../effects/watchdog.ts'
import { openKnowledge } from '../knowledge/knowledge.ts'
import { newerSchema } from '../migrations/migrate.ts'
import { createSlackClient } from '../notify/slack/client.ts'
import { warmPlanner } from '../placement/planner.ts'
import { loadSql } from '../safety/sql/inspect.ts'
import { openAgentDoor } from './agent-door.ts'
import { createApi } from './app.ts'
import { startHeartbeat } from './heartbeat.ts'
import { startSilences } from './read-silences.ts'
import { startDatabaseSamples } from './sample-databases.ts'
import { takeUpSitePolicy } from './site-policy.ts'
import { startTargetSync } from './sync-targets.ts'

/**
 * The process of the API: routes, watchdog, and the synchronization of inventory and targets. The
 * process starts, and receives alerts, even if Temporal is down.
 */
const config = readConfigOrExit(['DATABASE_URL'])
const log = pino({
  level: config.LOG_LEVEL,
  name: 'api',
  redact: {
    paths: ['authorization', '*.authorization', 'token', '*.token', 'apiKey', '*.apiKey'],
    censor: '[redacted]',
  },
})
const databaseUrl = config.DATABASE_URL as string
const db = connect(databaseUrl, { name: 'nightshift-api', max: 20 })
const locks = connect(databaseUrl, { name: 'nightshift-api-locks', max: 10 })
const temporal = temporalSettings(config)
// Connects to Temporal at the first call. If this fails, a later call connects.
const connection = Connection.lazy(connectionOptions(temporal))
const client = new Client({ connection, namespace: temporal.namespace })
const platform = choosePlatform(config, db)
const jobs = readJobsOrExit(config.JOBS_FILE)

const knowledge = openKnowledge(knowledgeSettings(config))

const keys = openMesh(meshSettings(config))
const mesh = keys && {
  ...keys,
  connections: openConnections({ db, log, keys: keys.keys, name: `${hostname()}:${process.pid}` }),
}

const provider = oidcSettings(config)
const workspace = slackSettings(config)

const closing = new AbortController()
// Starts even if the database cannot be reached; `/readyz` checks the schema later.
const newer = await newerSchema(db).catch(() => null)
if (newer !== null) {
  log.fatal(`the API does not start: ${newer}`)
  process.exit(1)
}
await loadSql()
await knowledge.readFolders()
const { app, deps } = createApi({
  db,
  locks,
  platform,
  mesh,
  jobs,
  sourcesDirectory: config.SOURCES_DIR,
  knowledge,
  placement: {
    engine: config.PLACEMENT_ENGINE,
    limits: {
      cpuOvercommitPercent: config.PLACEMENT_CPU_OVERCOMMIT_PERCENT,
      ramReservePercent: config.PLACEMENT_RAM_RESERVE_PERCENT,
    },
  },
  runs: temporalRuns(client, log),
  log,
  environment: givenDefaults(),
  variables: listEnvironment(process.env),
  publicUrl: config.PUBLIC_URL ?? null,
  commandPrefix: commandPrefix(process.env),
  oidc: provider && createOidc(provider),
  slack: workspace && createSlackClient(workspace),
  pushServices: config.PUSH_SERVICES,
  temporalPage: config.TEMPORAL_UI_URL ? { url: config.TEMPORAL_UI_URL, namespace: temporal.namespace } : null,
  modelInUse: config.LLM_BASE_URL
    ? {
        server: serverName(baseUrlOf(config.LLM_BASE_URL)),
        model: config.LLM_MODEL,
        isEnabled: config.AGENT_ENABLED,
      }
    : null,
  webDir: fileURLToPath(new URL('../web/dist', import.meta.url)),
  closing: closing.signal,
})
// Keeps idle connections longer than a proxy or client keeps them for its next request, so that no
// request uses a connection that is closing.
const serverOptions = { keepAliveTimeout: 75_000 }
const fetch = sayingNonce(app.fetch, process.env[nonceSetting])
const server = serve({ fetch, port: config.PORT, hostname: config.HOST, serverOptions }, (address) => {
  const platformAddress = config.PLATFORM_URL ?? config.PROXMOX_URL ?? null
  log.info({ port: address.port, platform: platformAddress }, 'the API is ready')
  warmPlanner()
})
openAgentDoor(server, deps)
void troubleWith(temporal).then(
  (trouble) => trouble && log.warn(trouble, 'Temporal does not answer: alerts are accepted and wait'),
  (error) => log.warn({ err: error }, 'the reason why Temporal cannot be reached is unknown'),
)
void unconfirmedPairs(systemScope(deps.db)).then(
  (pairs) =>
    pairs.length > 0 &&
    log.warn(
      { pairs },
      'an older version ran these pairs of type and tool without approval: confirm or revoke each pair',
    ),
  (error) => log.warn({ err: error }, 'the pairs that run without approval could not be read'),
)
server.on('error', (error) => {
  log.fatal({ err: error }, `the API cannot listen on port ${config.PORT}: free it, or set PORT`)
  process.exit(1)
})
// Writes the compile cache (NODE_COMPILE_CACHE) at once, because a process that is killed writes
// nothing.
flushCompileCache()
// Begins to count at once, and not only at the first scrape.
void deps.metrics.register.metrics().catch(() => {})
const stopHeartbeat = startHeartbeat(deps, config.HEARTBEAT_URL ?? null)
const stopWatchdog = startWatchdog(deps, config.WATCHDOG_INTERVAL_SECONDS)
const stopRetention = startRetention(deps)
const stopMesh = watchMesh(deps)
const stopTargets = startTargetSync(deps, 300_000, 30_000)
const stopSamples = startDatabaseSamples(deps, 60_000)
const stopSilences = startSilences(deps, 60_000)
const stopKnowledge = knowledge.keepFresh(60_000, () => takeUpSitePolicy(deps))
const stopSync = deps.state.startSync(platform ? 2_000 : 60_000)

/**
 * Maximum milliseconds for stopping. Longer work is left to the key of the effect and the lock of
 * the row, which both survive this process.
 */
const stopWithinMs = 4_000

const stop = async () => {
  closing.abort()
  stopHeartbeat()
  stopWatchdog()
  stopRetention()
  stopSync()
  stopTargets()
  stopSamples()
  stopSilences()
  stopKnowledge()
  stopMesh()
  setTimeout(() => process.exit(0), stopWithinMs).unref()
  const moved = mesh?.connections.stop()
  const closed = new Promise((resolve) => server.close(resolve))
  // Closes connections that are idle. A busy connection may complete its request.
  const idle = setInterval(() => 'closeIdleConnections' in server && server.closeIdleConnections(), 100)
  await Promise.all([closed, moved])
  clearInterval(idle)
  // Leaves the connection to Temporal open until the process ends. After a close, a retried call
  // would throw an uncaught error.
  await Promise.allSettled([db.destroy(), locks.destroy()])
  process.exit(0)
}
process.once('SIGTERM', stop)
process.once('SIGINT', stop)

/**
 * Reads the declared jobs. If the file has errors, the process ends and reports all errors in one
 * message, because half of a file must not apply.
 */
function readJobsOrExit(file: string | undefined) {
  try {
    return file === undefined ? [] : readJobsFile(file)
  } catch (error) {
    if (!(error instanceof JobsFileError)) throw error
    console.error(error.message)
    process.exit(1)
  }
}
