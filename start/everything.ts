import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { readConfig } from '../config.ts'
import { connect } from '../db/connect.ts'
import { ensureFirstRunTokens } from '../db/tokens.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import {
  basics,
  type Environment,
  meshOf,
  replacement,
  setting,
  withoutFiles,
  withoutMesh,
  withoutTemporal,
} from './environment.ts'
import { labDirectory } from './lab-directory.ts'
import { openLedger, stopLeftovers } from './ledger.ts'
import { takeLock } from './lock.ts'
import { pageAddress } from './page.ts'
import { openParts, type Report } from './parts.ts'
import { freePort, isFree } from './port.ts'
import { startPostgres } from './postgres.ts'
import { type Run, readRunFile, stateDirOf, writeRunFile } from './run-file.ts'
import { searchAttributes, startTemporal } from './temporal.ts'
import { findTemporalCli } from './temporal-cli.ts'
import { ensureWeb } from './web.ts'

export interface StartOptions {
  rootDir: string
  /** The environment of the user; it replaces parts and passes settings on. */
  env: Environment
  /** Aborting it during the start stops what was started. */
  signal?: AbortSignal
  /** Where the state is kept; `.nightshift/` of the checkout when absent. */
  stateDir?: string
  /** Entry files instead of the checkout's own. */
  entries?: Partial<Record<'lab' | 'runbook' | 'api' | 'worker', string>>
  /** How long a part may take to become ready. */
  readyTimeoutMs?: number
}

export interface Running {
  run: Run
  /** Stops every part, the last started first, within ten seconds. Safe to call twice. */
  stop(): Promise<void>
}

const notSet = 'is filled in at the start'

/**
 * Starts every part that the environment does not replace, each when those it needs are ready, and returns when all are. If
 * one fails, the others are stopped before the error is thrown. A wrong setting is thrown before anything is started.
 */
export async function startEverything(options: StartOptions, report: Report): Promise<Running> {
  const { rootDir, env } = options
  checkSettings(env)
  const stateDir = options.stateDir ?? stateDirOf(rootDir)
  mkdirSync(stateDir, { recursive: true })
  // Where root starts it, other users have to get through to what runs with their rights; they cannot list what is there.
  chmodSync(stateDir, process.getuid?.() === 0 ? 0o711 : 0o700)

  const lock = takeLock(join(stateDir, 'lock'))
  if ('heldBy' in lock) throw new Error(alreadyRuns(stateDir, lock.heldBy))
  const previous = readRunFile(stateDir)
  let run: Run | undefined
  let cleared: (() => void) | undefined
  let giveUp: (() => Promise<void>) | undefined
  let stopping: Promise<void> | undefined
  const markStopped = () => {
    if (run) writeRunFile(stateDir, { ...run, pid: null })
    lock.release()
    cleared?.()
  }
  try {
    const ledgerFile = join(stateDir, 'processes.json')
    const names = await stopLeftovers(ledgerFile)
    if (names.length > 0) report({ kind: 'tidied', names })
    const ledger = openLedger(ledgerFile)
    const parts = openParts({ ...options, ledger, logDir: join(stateDir, 'logs') }, report)
    // Whatever ends this process, short of SIGKILL, ends the children with it.
    const onExit = () => {
      parts.kill()
      markStopped()
    }
    giveUp = parts.stop
    const onAbort = () => void parts.stop()
    process.once('exit', onExit)
    options.signal?.addEventListener('abort', onAbort, { once: true })
    cleared = () => {
      process.off('exit', onExit)
      options.signal?.removeEventListener('abort', onAbort)
    }
    const stop = () => {
      stopping ??= parts.stop().then(markStopped)
      return stopping
    }
    const ports = await choosePorts(env)
    // Without pages there are still signposts at their addresses.
    const pages = ensureWeb(rootDir).catch((error: Error) => error)

    const [databaseUrl, temporal] = await parts.all([
      parts.replaced('PostgreSQL', setting(env, 'DATABASE_URL'), withoutPassword) ??
        parts.start('PostgreSQL', async (progress) => {
          const postgres = await startPostgres({
            dir: join(stateDir, 'postgres'),
            port: 5433,
            logFile: parts.logFile('postgres'),
            ledger,
            progress,
            onExit: parts.onExit('PostgreSQL'),
          })
          parts.keep(0, postgres)
          const kept = relative(rootDir, postgres.dataDir).startsWith('..') ? postgres.dataDir : `.nightshift/postgres`
          return [postgres.url, `${withoutPassword(postgres.url)}  ${postgres.version}, data in ${kept}`]
        }),
      parts.replaced(
        'Temporal',
        replacement(env, 'TEMPORAL_ADDRESS', (address) => ({ address, uiUrl: null })),
        (given) => given.address,
      ) ??
        parts.start('Temporal', async (progress) => {
          const cli = await findTemporalCli({ rootDir, env, progress, signal: options.signal })
          progress('starting')
          const server = await startTemporal({
            cli: cli.path,
            dir: join(stateDir, 'temporal'),
            ports: { frontend: 7233, ui: 8233 },
            searchAttributes,
            logFile: parts.logFile('temporal'),
            ledger,
            env,
            onExit: parts.onExit('Temporal'),
          })
          parts.keep(0, server)
          return [{ address: server.address, uiUrl: server.uiUrl }, `${server.address}  page ${server.uiUrl}`]
        }),
    ])

    const ownApi = setting(env, 'CORE_API_URL') === undefined
    const tokens = await parts.start<Run['tokens']>('Database', async (progress) => {
      const { applied } = await migrateToLatest(databaseUrl)
      const done = applied.length === 0 ? 'up to date' : `${applied.length} migrations applied`
      // Another core API has tokens of its own.
      if (!ownApi) return [{ agent: setting(env, 'AGENT_API_KEY') }, done]
      progress('minting tokens')
      const db = connect(databaseUrl, { owner: true, name: 'nightshift start' })
      try {
        const agent = setting(env, 'AGENT_API_KEY') ?? previous?.tokens.agent
        return [
          await ensureFirstRunTokens(db, { ...previous?.tokens, agent }),
          `${done}, tokens in .nightshift/run.json`,
        ]
      } finally {
        await db.destroy()
      }
    })

    const unbuilt = await pages
    const url = setting(env, 'CORE_API_URL') ?? `http://127.0.0.1:${ports.api}`
    const platformToken = setting(env, 'PLATFORM_TOKEN') ?? newSecret()
    const labControlToken = newSecret()
    const platform = setting(env, 'PLATFORM_URL') ?? setting(env, 'PROXMOX_URL')
    const ownLab = ownApi && platform === undefined
    const labUrl = ownLab ? `http://127.0.0.1:${ports.lab}` : null
    const entry = (name: 'lab' | 'runbook' | 'api' | 'worker') =>
      options.entries?.[name] ??
      join(rootDir, { lab: 'lab', runbook: 'lab/runbook', api: 'api', worker: 'worker' }[name], 'main.ts')
    const shared = {
      ...withoutMesh(withoutTemporal(env, setting(env, 'TEMPORAL_ADDRESS') === undefined)),
      ...withoutFiles(env, ['DATABASE_URL', 'PLATFORM_TOKEN', 'AGENT_API_KEY']),
      DATABASE_URL: databaseUrl,
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: env.TEMPORAL_NAMESPACE || 'default',
      ...(temporal.uiUrl && { TEMPORAL_UI_URL: env.TEMPORAL_UI_URL || temporal.uiUrl }),
      AGENT_ENABLED: env.AGENT_ENABLED || 'true',
      AGENT_API_KEY: tokens.agent,
    }
    const model = replacement(env, 'LLM_BASE_URL', (base) => ({ LLM_BASE_URL: base })) ?? {
      LLM_BASE_URL: `http://127.0.0.1:${ports.runbook}`,
      LLM_MODEL: env.LLM_MODEL || 'runbook-rules',
    }
    run = {
      url,
      temporalAddress: temporal.address,
      temporalUiUrl: temporal.uiUrl,
      databaseUrl,
      labUrl,
      labControlToken: ownLab ? labControlToken : null,
      tokens: { ...previous?.tokens, ...tokens },
      pid: process.pid,
    }

    await parts.all([
      ownLab
        ? parts.child('Lab', 1, entry('lab'), ports.lab, {
            ...basics(env),
            LAB_PORT: String(ports.lab),
            LAB_DIR: labDirectory(stateDir),
            LAB_PLATFORM_TOKEN: platformToken,
            LAB_CONTROL_TOKEN: labControlToken,
            ALERT_URL: `${url}/api/v1/ingest/alertmanager`,
            ALERT_TOKEN: tokens.ingest,
          })
        : parts.replaced('Lab', ownApi ? platform : setting(env, 'CORE_API_URL'), (given) => `platform ${given}`),
      parts.replaced('Model', setting(env, 'LLM_BASE_URL'), (base) => `${env.LLM_MODEL ?? 'model'} at ${base}`) ??
        parts.child('Model', 1, entry('runbook'), ports.runbook, {
          ...basics(env),
          RUNBOOK_PORT: String(ports.runbook),
        }),
      parts.replaced('API', setting(env, 'CORE_API_URL'), (given) => given) ??
        parts.child('API', 2, entry('api'), ports.api, {
          ...shared,
          ...model,
          ...meshOf(env, stateDir),
          PORT: String(ports.api),
          CORE_API_URL: url,
          PUBLIC_URL: env.PUBLIC_URL || url,
          PLATFORM_URL: labUrl ?? setting(env, 'PLATFORM_URL'),
          PLATFORM_TOKEN: platformToken,
        }),
    ])
    await parts.child('Worker', 3, entry('worker'), ports.worker, {
      ...shared,
      ...model,
      WORKER_PORT: String(ports.worker),
      // As the image: each thread of the SDK would keep freed memory of its own.
      MALLOC_ARENA_MAX: env.MALLOC_ARENA_MAX || '2',
      CORE_API_URL: url,
      PUBLIC_URL: env.PUBLIC_URL || url,
    })
    writeRunFile(stateDir, run)
    if (ownApi) {
      await parts.start('Page', async () => [
        undefined,
        unbuilt instanceof Error ? unbuilt.message : await pageAddress(url, env.PUBLIC_URL || url, tokens.admin),
      ])
    }
    return { run, stop }
  } catch (error) {
    await giveUp?.()
    markStopped()
    throw options.signal?.aborted ? new Error('Stopped while starting.') : error
  }
}

/** Throws ConfigError with every problem of the settings, as the parts would find them once the start has filled in its own. */
function checkSettings(env: Environment): void {
  const filledIn: Environment = { ...env, AGENT_ENABLED: env.AGENT_ENABLED || 'true' }
  const ownApi = setting(env, 'CORE_API_URL') === undefined
  if (!env.LLM_BASE_URL) filledIn.LLM_BASE_URL = 'http://127.0.0.1:1'
  if (ownApi && !env.AGENT_API_KEY && !env.AGENT_API_KEY_FILE) filledIn.AGENT_API_KEY = notSet
  readConfig(filledIn)
}

function alreadyRuns(stateDir: string, pid: number): string {
  const run = readRunFile(stateDir)
  const where = run?.pid === pid ? ` at ${run.url}` : ', and is still starting'
  return `Nightshift already runs from this checkout, as process ${pid}${where}. Stop it with Ctrl-C in its terminal, or with "kill ${pid}".`
}

/** All ports are chosen before anything starts, because the lab needs the API's and the API the lab's. */
async function choosePorts(env: Environment) {
  const choose = async (name: string, from: number) => {
    const asked = env[name] ? Number(env[name]) : undefined
    if (asked === undefined || asked === 0) return freePort(from)
    if (await isFree(asked)) return asked
    throw new Error(
      `Port ${asked} is in use, and ${name} asks for it. Free it, choose another, or leave ${name} unset.`,
    )
  }
  return {
    api: await choose('PORT', 8080),
    worker: await choose('WORKER_PORT', 8081),
    lab: await choose('LAB_PORT', 8090),
    runbook: await choose('RUNBOOK_PORT', 8100),
  }
}

function withoutPassword(databaseUrl: string): string {
  const { host } = new URL(databaseUrl)
  return `postgresql://${host}`
}

function newSecret(): string {
  return randomBytes(32).toString('base64url')
}
