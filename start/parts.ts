import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { nonceSetting } from '../domain/start-nonce.ts'
import { type Exit, type RunningProcess, startProcess, waitUntilReady } from './process.ts'
import type { Ledger } from './process-table.ts'

type PartName = 'PostgreSQL' | 'Temporal' | 'Database' | 'Lab' | 'Devices' | 'Model' | 'API' | 'Worker'

/**
 * An event of a part. The order is `starting`, any number of `progress`, then `ready` or `failed`.
 */
export type PartEvent =
  | { kind: 'starting'; part: PartName }
  | { kind: 'progress'; part: PartName; text: string }
  | { kind: 'ready'; part: PartName; result: string; durationMs: number }
  /** The part was not started, because the environment names another part. */
  | { kind: 'replaced'; part: PartName; result: string }
  | { kind: 'failed'; part: PartName; message: string }
  /**
   * The part ended by itself after it was ready. `restartInMs` is null if the part ended too often
   * and is not started again.
   */
  | { kind: 'exited'; part: PartName; exit: Exit; restartInMs: number | null }
  | { kind: 'restarted'; part: PartName }
  | { kind: 'tidied'; names: string[] }

export type PartReporter = (event: PartEvent) => void

/** A process, or a server around one, that can be stopped. */
type Stoppable = { process: Pick<RunningProcess, 'kill'>; stop(graceMs?: number): Promise<void> }

/** A running part. `value`: what other parts need of it. `words`: a line about it for people. */
export type StartedPart<T> = Stoppable & { value: T; words: string }
type Begin<T> = (progress: (text: string) => void, onExit: (exit: Exit) => void) => Promise<StartedPart<T>>

type PartsOptions = {
  rootDir: string
  logDir: string
  ledger: Ledger
  signal?: AbortSignal
  readyTimeoutMs?: number
  /**
   * Milliseconds to wait before an ended part starts again: the first value after its first end,
   * the second after its second end. After the last value the part stays down.
   */
  restartDelaysMs?: readonly number[]
}

/**
 * Milliseconds in which the parts of each tier have to end: nine seconds in all. The worker, in the
 * highest tier, has the most work to finish.
 */
const graceMs = [2_000, 1_500, 2_000, 3_500]

/**
 * Milliseconds before each restart, for five restarts within ten minutes. A part that ran for
 * longer begins with the first delay again.
 */
const restartDelaysMs = [500, 2_000, 5_000, 10_000, 30_000]
const forgottenAfterMs = 600_000

/** The running parts in tiers. A higher tier needs the lower tiers, so it is stopped first. */
export type Parts = {
  options: PartsOptions
  report: PartReporter
  tiers: Stoppable[][]
  isStopping: boolean
}

export function openParts(options: PartsOptions, report: PartReporter): Parts {
  mkdirSync(options.logDir, { recursive: true, mode: 0o700 })
  return { options, report, tiers: graceMs.map(() => []), isStopping: false }
}

export function logFileOf({ options }: Parts, name: string): string {
  return join(options.logDir, `${name}.log`)
}

/**
 * Runs `begin` as the start of a part, and reports its course. `begin` returns a value and a line
 * for the report.
 */
export async function startPart<T>(
  parts: Parts,
  part: PartName,
  begin: (progress: (text: string) => void) => Promise<[T, string]>,
): Promise<T> {
  const { options, report } = parts
  options.signal?.throwIfAborted()
  const startedAt = Date.now()
  report({ kind: 'starting', part })
  try {
    const [value, result] = await begin((text) => report({ kind: 'progress', part, text }))
    report({ kind: 'ready', part, result, durationMs: Date.now() - startedAt })
    return value
  } catch (error) {
    if (!parts.isStopping) report({ kind: 'failed', part, message: (error as Error).message })
    throw error
  }
}

/** A part that keeps running, with the times at which it ended. */
type Served<T> = {
  part: PartName
  begin: Begin<T>
  running: StartedPart<T> | null
  isReady: boolean
  endedAtMs: number[]
}

/**
 * Starts a part that keeps running. If the part ends by itself, starts it again a few times.
 */
export function servePart<T>(parts: Parts, part: PartName, tier: number, begin: Begin<T>): Promise<T> {
  return startPart(parts, part, async (progress) => {
    const served: Served<T> = { part, begin, running: null, isReady: false, endedAtMs: [] }
    const running = await begin(progress, (exit) => onExit(parts, served, exit))
    served.running = running
    served.isReady = true
    // Kills the part if all parts were stopped while it was starting, because the stop of its tier
    // may be over.
    if (parts.isStopping) running.process.kill()
    parts.tiers[tier]?.push({
      process: { kill: () => served.running?.process.kill() },
      stop: async (grace) => await served.running?.stop(grace),
    })
    return [running.value, running.words]
  })
}

function onExit<T>(parts: Parts, served: Served<T>, exit: Exit): void {
  if (served.isReady && !parts.isStopping) void restart(parts, served, exit)
}

async function restart<T>(parts: Parts, served: Served<T>, exit: Exit): Promise<void> {
  const { options, report } = parts
  const { part } = served
  served.isReady = false
  const nowMs = Date.now()
  served.endedAtMs.push(nowMs)
  const recent = served.endedAtMs.filter((atMs) => nowMs - atMs < forgottenAfterMs).length
  const restartInMs = (options.restartDelaysMs ?? restartDelaysMs)[recent - 1] ?? null
  report({ kind: 'exited', part, exit, restartInMs })
  // Stops the part's child processes, which may still be running.
  await served.running?.stop(0)
  if (restartInMs === null) return
  await sleep(restartInMs, undefined, { ref: false })
  if (parts.isStopping) return
  try {
    served.running = await served.begin(
      () => {},
      (again) => onExit(parts, served, again),
    )
    served.isReady = true
    if (parts.isStopping) served.running.process.kill()
    else report({ kind: 'restarted', part })
  } catch (error) {
    const tail = `  ${(error as Error).message}`
    if (!parts.isStopping) await restart(parts, served, { name: exit.name, code: 1, tail })
  }
}

/** Reports that the environment replaces a part. Returns undefined if the environment does not. */
export function replacePart<T>(
  parts: Parts,
  part: PartName,
  given: T | undefined,
  words: (given: T) => string,
): T | undefined {
  if (given !== undefined) parts.report({ kind: 'replaced', part, result: words(given) })
  return given
}

/** Waits for all starts even if one fails, so that no part is still starting during the cleanup. */
export async function waitForAll<T extends readonly unknown[]>(
  starts: [...T],
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(starts)
  return Promise.all(starts)
}

type Child = { tier: number; entry: string; port: number; env: Record<string, string | undefined> }

/**
 * Starts an entry file of the checkout. The program is ready when `/readyz` responds with the
 * program's nonce.
 */
export function serveChild(parts: Parts, part: PartName, { tier, entry, port, env }: Child): Promise<undefined> {
  const { rootDir, ledger, readyTimeoutMs } = parts.options
  const name = part.toLowerCase()
  return servePart(parts, part, tier, async (progress, onChildExit): Promise<StartedPart<undefined>> => {
    const nonce = randomBytes(16).toString('base64url')
    const child = await startProcess({
      name,
      command: process.execPath,
      args: [entry],
      cwd: rootDir,
      // Keeps the compiled code for all starts, which makes the second start a second faster.
      env: { NODE_COMPILE_CACHE: join(rootDir, '.cache', 'compile'), ...env, [nonceSetting]: nonce },
      logFile: logFileOf(parts, name),
      ledger,
      onExit: onChildExit,
    })
    const url = `http://127.0.0.1:${port}`
    try {
      await waitUntilReady(child, `${url}/readyz`, { timeoutMs: readyTimeoutMs, nonce, progress })
    } catch (error) {
      await child.stop(parts.isStopping ? 0 : graceMs[tier])
      throw error
    }
    return { value: undefined, words: url, process: child, stop: child.stop }
  })
}

/** Stops the parts of this tier and above, so that they can start again after one failed. */
export async function stopFrom({ tiers }: Parts, tier: number): Promise<void> {
  for (let at = tiers.length - 1; at >= tier; at -= 1) {
    await Promise.all((tiers[at] ?? []).splice(0).map((part) => part.stop(graceMs[at])))
  }
}

/** Stops one tier after another, the highest first. Returns when no part is left. */
export async function stopParts(parts: Parts): Promise<void> {
  parts.isStopping = true
  for (const [tier, stoppables] of [...parts.tiers.entries()].reverse()) {
    await Promise.all(stoppables.map((part) => part.stop(graceMs[tier])))
  }
  // Kills parts that are still starting, because they are in no tier yet.
  parts.options.ledger.kill()
}

/** Kills all parts at once and synchronously. */
export function killParts(parts: Parts): void {
  parts.isStopping = true
  parts.options.ledger.kill()
}
