import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../config.ts'
import { killParts, openParts, type Parts, type Report, stopParts } from './parts.ts'
import { type Ledger, openLedger, stopLeftovers } from './process-table.ts'
import { type Entries, enrolDevices, startPrograms } from './programs.ts'
import {
  type Environment,
  type Run,
  readRunFile,
  setting,
  signInLink,
  stateDirOf,
  takeLock,
  writeRunFile,
} from './run-file.ts'
import { prepareDatabase, startStores } from './stores.ts'
import { ensureWeb } from './web.ts'

export interface StartOptions {
  rootDir: string
  /** The environment of the user; it replaces parts and passes settings on. */
  env: Environment
  /** Aborting it during the start stops what was started. */
  signal?: AbortSignal
  /** Where the state is kept; `.nightshift/` of the checkout when absent. */
  stateDir?: string
  /** False: no lab, for a site of one's own hosts. Without a model of one's own the agent is off then. */
  lab?: boolean
  /** Entry files instead of the checkout's own. */
  entries?: Entries
  /** How long a part may take to become ready. */
  readyTimeoutMs?: number
  /** How long to wait before a part that ended is started again, for each time in a row. */
  restartDelaysMs?: readonly number[]
}

export interface Running {
  run: Run
  /** Where the pages are, signed in once within ten minutes; or why there are none. Null where another API is used. */
  page: string | null
  /** Stops every part, the last started first, within ten seconds. Safe to call twice. */
  stop(): Promise<void>
}

const notSet = 'is filled in at the start'

/**
 * Starts every part that the environment does not replace, each when those it needs are ready, and returns when all are. If
 * one fails, the others are stopped before the error is thrown. A wrong setting is thrown before anything is started. A part that
 * ends later is started again, a few times.
 */
export async function startEverything(options: StartOptions, report: Report): Promise<Running> {
  checkSettings(options.env)
  const held = holdState(options)
  const { stateDir } = held
  let guarded: Guarded | undefined
  try {
    const ledgerFile = join(stateDir, 'processes.json')
    const names = await stopLeftovers(ledgerFile)
    if (names.length > 0) report({ kind: 'tidied', names })
    const ledger = openLedger(ledgerFile)
    const parts = openParts({ ...options, ledger, logDir: join(stateDir, 'logs') }, report)
    guarded = guard(parts, options.signal, held.release)
    const run = await startAll(parts, ledger, { ...options, stateDir })
    held.ran(run)
    const unbuilt = await run.pages
    const page =
      setting(options.env, 'CORE_API_URL') !== undefined ? null : (unbuilt ?? (await signInLink(run.run, options.env)))
    return { run: run.run, page, stop: guarded.stop }
  } catch (error) {
    await guarded?.stop()
    held.release()
    throw options.signal?.aborted ? new Error('Stopped while starting.') : error
  }
}

type Started = { run: Run /** Why there are no pages; null where there are. */; pages: Promise<string | null> }

async function startAll(parts: Parts, ledger: Ledger, options: StartOptions & { stateDir: string }): Promise<Started> {
  const { rootDir, stateDir, signal, entries, lab = true } = options
  const env = lab ? options.env : withoutRuleTable(options.env)
  const previous = readRunFile(stateDir)
  // Without pages there are still signposts at their addresses.
  const pages = ensureWeb(rootDir).then(
    () => null,
    (error: Error) => error.message,
  )
  const [databaseUrl, temporal] = await startStores(parts, { rootDir, stateDir, env, ledger, signal })
  const tokens = await prepareDatabase(parts, databaseUrl, { env, previous })
  await pages
  const run = await startPrograms(parts, { rootDir, stateDir, env, lab, entries, databaseUrl, temporal, tokens })
  const kept = { ...run, tokens: { ...previous?.tokens, ...tokens } }
  writeRunFile(stateDir, kept)
  if (!entries?.lab) await enrolDevices(parts, kept)
  return { run: kept, pages }
}

/** The rule table knows the lab alone: where there is none it would investigate nothing well. */
function withoutRuleTable(env: Environment): Environment {
  return setting(env, 'LLM_BASE_URL') === undefined ? { ...env, AGENT_ENABLED: env.AGENT_ENABLED || 'false' } : env
}

type Held = { stateDir: string; ran(started: Started): void; release(): void }

/** Takes the state directory for this start alone. */
function holdState({ rootDir, stateDir = stateDirOf(rootDir) }: StartOptions): Held {
  mkdirSync(stateDir, { recursive: true })
  // Where root starts it, other users have to get through to what runs with their rights; they cannot list what is there.
  chmodSync(stateDir, process.getuid?.() === 0 ? 0o711 : 0o700)
  const lock = takeLock(join(stateDir, 'lock'))
  if ('heldBy' in lock) throw new Error(alreadyRuns(stateDir, lock.heldBy))
  let run: Run | null = null
  return {
    stateDir,
    ran: (started) => {
      run = started.run
    },
    release: () => {
      if (run) writeRunFile(stateDir, { ...run, pid: null })
      run = null
      lock.release()
    },
  }
}

type Guarded = { stop(): Promise<void> }

/** Whatever ends this process, short of SIGKILL, ends the children with it; so does the signal. */
function guard(parts: Parts, signal: AbortSignal | undefined, release: () => void): Guarded {
  const onExit = () => {
    killParts(parts)
    release()
  }
  const onAbort = () => void stopParts(parts)
  process.once('exit', onExit)
  signal?.addEventListener('abort', onAbort, { once: true })
  let stopping: Promise<void> | undefined
  return {
    stop() {
      stopping ??= stopParts(parts).then(() => {
        process.off('exit', onExit)
        signal?.removeEventListener('abort', onAbort)
        release()
      })
      return stopping
    },
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
