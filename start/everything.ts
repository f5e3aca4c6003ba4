import { chmodSync, mkdirSync } from 'node:fs'
import { constants } from 'node:os'
import { join, relative } from 'node:path'
import { readConfig } from '../config/settings.ts'
import { type Environment, setting } from './environment.ts'
import { takeLock } from './lock.ts'
import { killParts, openParts, type PartEvent, type PartReporter, type Parts, stopParts } from './parts.ts'
import { lastError } from './process.ts'
import { type Ledger, openLedger, stopAfterDeath, stopLeftovers } from './process-table.ts'
import { type Entries, enrolDevices, startPrograms } from './programs.ts'
import { claimState, type Purpose, purposeOf, refuseSharedStores, stateDirFor } from './purpose.ts'
import { explainFullDisk, type LocalRun, readRunFile, signInLink, writeRunFile } from './run-file.ts'
import { prepareDatabase, startStores } from './stores.ts'
import { ensureWeb } from './web.ts'

interface StartOptions {
  rootDir: string
  /** The environment of the user; it replaces parts and passes settings on. */
  env: Environment
  /** Aborting it during the start stops what was started. */
  signal?: AbortSignal
  /** Where the state is kept; where this checkout keeps that of the lab or the site when absent. */
  stateDir?: string
  /** False: no lab, for a site's own hosts. The agent is off then without a model. */
  lab?: boolean
  /** Entry files instead of the checkout's own. */
  entries?: Entries
  /** How long a part may take to become ready. */
  readyTimeoutMs?: number
  /** How long to wait before a part that ended is started again, for each time in a row. */
  restartDelaysMs?: readonly number[]
}

export interface RunningStart {
  run: LocalRun
  /**
   * The pages' address, signed in once within ten minutes; or why there are none. Null where
   * another API is used.
   */
  page: string | null
  /** Stops every part, the last started first, within ten seconds. Safe to call twice. */
  stop(): Promise<void>
}

const notSet = 'is filled in at the start'

/**
 * Starts every part that the environment does not replace, each when its needs are ready, and
 * returns when all are. If one fails, the others are stopped before the error is thrown. A wrong
 * setting is thrown before anything starts. A part that ends later is started again, a few times.
 */
export async function startEverything(options: StartOptions, report: PartReporter): Promise<RunningStart> {
  checkSettings(options.env)
  const { rootDir, env, lab = true } = options
  const stateDir = options.stateDir ?? stateDirFor(rootDir, purposeOf(env, lab))
  try {
    return await startIn(stateDir, options, report)
  } catch (error) {
    throw explainFullDisk(error as Error, rootDir, stateDir)
  }
}

async function startIn(stateDir: string, options: StartOptions, report: PartReporter): Promise<RunningStart> {
  const purpose = purposeOf(options.env, options.lab ?? true)
  refuseSharedStores(options.rootDir, stateDir, purpose, options.env)
  const held = holdState(stateDir, purpose)
  let guarded: Guarded | undefined
  try {
    claimState(stateDir, purpose)
    const ledgerFile = join(stateDir, 'processes.json')
    const names = await stopLeftovers(ledgerFile)
    if (names.length > 0) report({ kind: 'tidied', names })
    const ledger = openLedger(ledgerFile)
    const logDir = join(stateDir, 'logs')
    const parts = openParts({ ...options, ledger, logDir }, report)
    const callOff = stopAfterDeath(ledgerFile, join(logDir, 'start.log'))
    guarded = guard(parts, options.signal, () => {
      callOff()
      held.release()
    })
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

type Started = { run: LocalRun /** Why there are no pages; null where there are. */; pages: Promise<string | null> }

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
  const tokens = await prepareDatabase(parts, databaseUrl, {
    env,
    previous,
    place: nameOf(rootDir, join(stateDir, 'run.json')),
    purpose: purposeOf(options.env, lab),
  })
  await pages
  const run = await startPrograms(parts, { rootDir, stateDir, env, lab, entries, databaseUrl, temporal, tokens })
  const kept = { ...run, tokens: { ...previous?.tokens, ...tokens } }
  writeRunFile(stateDir, kept)
  if (!entries?.lab) await enrolDevices(parts, kept)
  return { run: kept, pages }
}

/** As a person in the checkout would type it. */
const nameOf = (rootDir: string, path: string) =>
  relative(rootDir, path).startsWith('..') ? path : relative(rootDir, path)

/** The rule table knows the lab alone: where there is none it would investigate nothing well. */
function withoutRuleTable(env: Environment): Environment {
  return setting(env, 'LLM_BASE_URL') === undefined ? { ...env, AGENT_ENABLED: env.AGENT_ENABLED || 'false' } : env
}

type Held = { ran(started: Started): void; release(): void }

/** Takes the state directory for this start alone. */
function holdState(stateDir: string, purpose: Purpose): Held {
  mkdirSync(stateDir, { recursive: true })
  // When root starts it, other users have to get through to what runs with their rights; they
  // cannot list what is there.
  chmodSync(stateDir, process.getuid?.() === 0 ? 0o711 : 0o700)
  const lock = takeLock(join(stateDir, 'lock'))
  if ('heldBy' in lock) throw new Error(alreadyRuns(stateDir, purpose, lock.heldBy))
  let run: LocalRun | null = null
  return {
    ran: (started) => {
      run = started.run
    },
    release: () => {
      try {
        if (run) writeRunFile(stateDir, { ...run, pid: null })
      } catch {
        // On a full disk: its process is gone, and who reads it asks for that.
      }
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

/**
 * Throws ConfigError with every problem, as the parts would find them once the start filled in its
 * own.
 */
function checkSettings(env: Environment): void {
  const filledIn: Environment = { ...env, AGENT_ENABLED: env.AGENT_ENABLED || 'true' }
  const ownApi = setting(env, 'CORE_API_URL') === undefined
  if (!env.LLM_BASE_URL) filledIn.LLM_BASE_URL = 'http://127.0.0.1:1'
  if (ownApi && !env.AGENT_API_KEY && !env.AGENT_API_KEY_FILE) filledIn.AGENT_API_KEY = notSet
  readConfig(filledIn)
}

function alreadyRuns(stateDir: string, purpose: Purpose, pid: number): string {
  const run = readRunFile(stateDir)
  const where = run?.pid === pid ? ` at ${run.url}` : ', and is still starting'
  const what = purpose === 'lab' ? 'The lab' : 'Your site'
  return `${what} already runs from ${stateDir}, as process ${pid}${where}. Stop it with Ctrl-C in its terminal, or with "kill ${pid}".`
}

interface Screen {
  write(text: string): unknown
  isTTY?: boolean
  columns?: number
}

function endOf({ exit, restartInMs }: Extract<PartEvent, { kind: 'exited' }>): string {
  const said = `ended with code ${exit.code}`
  if (restartInMs !== null) {
    const why = lastError(exit.tail)
    return `${said}${why === null ? '' : `: ${why}`}; it is started again in ${restartInMs / 1000} s`
  }
  return `${said}, too often to be started again: stop everything with Ctrl-C and start afresh. Its log ends with:\n${exit.tail}`
}

/**
 * Writes a start's events for a person: a line a part with its time; on a terminal also one that
 * moves.
 */
export function terminalReport(screen: Screen): PartReporter {
  const inProgress = new Map<string, string>()
  const lastSaid = new Map<string, number>()
  const mark = screen.isTTY ? { done: '\x1b[32m✔\x1b[0m', wrong: '\x1b[31m✘\x1b[0m' } : { done: 'ok', wrong: '!!' }

  const line = (text: string) => screen.write(`${screen.isTTY ? '\r\x1b[2K' : ''}${text}\n`)
  const moving = () => {
    if (!screen.isTTY) return
    const text = [...inProgress].map(([part, doing]) => `${part} ${doing}`).join(', ')
    screen.write(`\r\x1b[2K${text === '' ? '' : `… ${text}`.slice(0, (screen.columns || 80) - 1)}`)
  }

  return (event: PartEvent) => {
    switch (event.kind) {
      case 'starting':
        inProgress.set(event.part, 'is starting')
        break
      case 'progress': {
        inProgress.set(event.part, `is ${event.text}`)
        // A log gets the first word of it and then a sign of life.
        const silentMs = Date.now() - (lastSaid.get(event.part) ?? 0)
        if (!screen.isTTY && silentMs > 10_000) {
          lastSaid.set(event.part, Date.now())
          line(`.. ${event.part.padEnd(11)} ${event.text}`)
        }
        break
      }
      case 'ready':
        inProgress.delete(event.part)
        line(`${mark.done} ${event.part.padEnd(11)} ${event.result}  ${(event.durationMs / 1000).toFixed(1)} s`)
        break
      case 'replaced':
        line(`${mark.done} ${event.part.padEnd(11)} ${event.result}  (not ours, from the environment)`)
        break
      case 'failed':
        inProgress.delete(event.part)
        // The error itself ends the start, which prints it.
        line(`${mark.wrong} ${event.part.padEnd(11)} did not start`)
        break
      case 'exited':
        line(`${mark.wrong} ${event.part.padEnd(11)} ${endOf(event)}`)
        break
      case 'restarted':
        line(`${mark.done} ${event.part.padEnd(11)} runs again`)
        break
      case 'tidied':
        line(`.. stopped what an earlier start had left behind: ${event.names.join(', ')}`)
        break
    }
    moving()
  }
}

/**
 * Starts everything and keeps it running until SIGINT, SIGTERM or SIGHUP, then stops it and answers
 * the exit code. A second signal kills the rest at once. `whenReady` gets the running system and an
 * abort signal for its stop; if it throws, everything is stopped and the error goes on.
 */
export async function runInForeground(
  options: Omit<StartOptions, 'signal'>,
  report: PartReporter,
  whenReady?: (running: RunningStart, signal: AbortSignal) => Promise<void>,
): Promise<number> {
  const stopped = new AbortController()
  let running: RunningStart | undefined
  let code = 0
  const onSignal = (signal: NodeJS.Signals) => {
    if (stopped.signal.aborted) {
      // Ending this process kills the children, see startEverything.
      process.exit(128 + constants.signals[signal])
    }
    // Ctrl-C is how one ends it, not a failure.
    code = signal === 'SIGINT' ? 0 : 128 + constants.signals[signal]
    stopped.abort()
  }
  const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, onSignal)
  // The children do not hold this process; without them something else must.
  const alive = setInterval(() => undefined, 60_000)
  try {
    running = await startEverything({ ...options, signal: stopped.signal }, report)
    const untilStopped = new Promise<void>((resolve) => {
      if (stopped.signal.aborted) resolve()
      stopped.signal.addEventListener('abort', () => resolve(), { once: true })
    })
    const follow = whenReady?.(running, stopped.signal)
    await Promise.race([untilStopped, (follow ?? Promise.resolve()).then(() => untilStopped)])
    return code
  } catch (error) {
    if (stopped.signal.aborted) return code
    throw error
  } finally {
    await running?.stop()
    clearInterval(alive)
    for (const signal of signals) process.off(signal, onSignal)
  }
}
