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
  /** The user's environment. It replaces parts, and its settings are passed on to the parts. */
  env: Environment
  /** A signal that, aborted during the start, stops every part that was started. */
  signal?: AbortSignal
  /** The state folder. By default it is this checkout's folder for the lab or the site. */
  stateDir?: string
  /** False starts no lab, for a site with its own hosts. Without a model, the agent is then off. */
  lab?: boolean
  /** Entry files of programs to use instead of the checkout's own. */
  entries?: Entries
  /** The most milliseconds that a part may take to become ready. */
  readyTimeoutMs?: number
  /**
   * Milliseconds to wait before an ended part is restarted: the first value after its first end,
   * the second after its second end.
   */
  restartDelaysMs?: readonly number[]
}

export interface RunningStart {
  run: LocalRun
  /**
   * The address of the pages, which signs in one browser within ten minutes, or the reason why
   * there are no pages. Null if another API is used.
   */
  page: string | null
  /** Stops every part, the last started first, within ten seconds. Safe to call twice. */
  stop(): Promise<void>
}

const notSet = 'is filled in at the start'

/**
 * Starts every part that the environment does not replace, each when the parts that it needs are
 * ready. Returns when all parts are ready. Throws ConfigError for a wrong setting, before anything
 * starts. If a part fails, stops the other parts and throws its error. Restarts a part that ends
 * later a few times.
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

type Started = { run: LocalRun /** The obstacle to pages; null without one. */; pages: Promise<string | null> }

async function startAll(parts: Parts, ledger: Ledger, options: StartOptions & { stateDir: string }): Promise<Started> {
  const { rootDir, stateDir, signal, entries, lab = true } = options
  const env = lab ? options.env : withoutRuleTable(options.env)
  const previous = readRunFile(stateDir)
  // Builds the pages. If the build fails, the start continues, and the addresses of the pages show
  // an explanation.
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

/** Formats a path as a person in the checkout would type it. */
const nameOf = (rootDir: string, path: string) =>
  relative(rootDir, path).startsWith('..') ? path : relative(rootDir, path)

/** Turns the agent off if no model is set, because the rule table knows only the lab's faults. */
function withoutRuleTable(env: Environment): Environment {
  return setting(env, 'LLM_BASE_URL') === undefined ? { ...env, AGENT_ENABLED: env.AGENT_ENABLED || 'false' } : env
}

type Held = { ran(started: Started): void; release(): void }

/** Reserves the state directory for this start. */
function holdState(stateDir: string, purpose: Purpose): Held {
  mkdirSync(stateDir, { recursive: true })
  // Lets other users pass through the directory, but not list it, if root starts Nightshift: some
  // programs run as other users.
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
        // Ignores a full disk. The file then still names this process, but readers check that the
        // process runs.
      }
      run = null
      lock.release()
    },
  }
}

type Guarded = { stop(): Promise<void> }

/**
 * Ends the child processes when this process ends, except after SIGKILL, and when `signal` aborts.
 */
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
 * Checks the settings with the values that the start fills in. Throws ConfigError with every
 * problem that a part would find.
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
  return `${said} too often, so it is not started again: stop everything with Ctrl-C and start again. Its log ends with:\n${exit.tail}`
}

/**
 * Prints the events of a start for a person: one line for each part with its time. A terminal also
 * gets one changing line about the parts that are still starting.
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
        // Prints the first progress of a part into a log, and then at most one line in ten seconds.
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
        line(`${mark.done} ${event.part.padEnd(11)} ${event.result}  (not started here; set in the environment)`)
        break
      case 'failed':
        inProgress.delete(event.part)
        // Leaves out the error, which ends the start and is printed at the end.
        line(`${mark.wrong} ${event.part.padEnd(11)} did not start`)
        break
      case 'exited':
        line(`${mark.wrong} ${event.part.padEnd(11)} ${endOf(event)}`)
        break
      case 'restarted':
        line(`${mark.done} ${event.part.padEnd(11)} runs again`)
        break
      case 'tidied':
        line(`.. stopped processes of an earlier start: ${event.names.join(', ')}`)
        break
    }
    moving()
  }
}

/**
 * Starts everything and keeps it running until SIGINT, SIGTERM or SIGHUP. Then stops everything and
 * returns the exit code. A second signal kills all parts at once. `whenReady` gets the running
 * system and a signal that aborts at the stop. If `whenReady` throws, stops everything and throws
 * the error.
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
      // Ends this process, which also kills its children (see `guard`).
      process.exit(128 + constants.signals[signal])
    }
    // Counts Ctrl-C as a normal end of Nightshift, not as a failure.
    code = signal === 'SIGINT' ? 0 : 128 + constants.signals[signal]
    stopped.abort()
  }
  const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, onSignal)
  // Keeps this process alive, because its child processes do not.
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
