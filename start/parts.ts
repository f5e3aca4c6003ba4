import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { nonceSetting } from '../domain/start-nonce.ts'
import type { Ledger } from './ledger.ts'
import { type Exit, type RunningProcess, startProcess, waitUntilReady } from './process.ts'

export type PartName = 'PostgreSQL' | 'Temporal' | 'Database' | 'Lab' | 'Devices' | 'Model' | 'API' | 'Worker'

/** What happens to a part, in the order it happens: `starting`, any number of `progress`, then `ready` or `failed`. */
export type PartEvent =
  | { kind: 'starting'; part: PartName }
  | { kind: 'progress'; part: PartName; text: string }
  | { kind: 'ready'; part: PartName; result: string; durationMs: number }
  /** Not started, because the environment names another. */
  | { kind: 'replaced'; part: PartName; result: string }
  | { kind: 'failed'; part: PartName; message: string }
  /** Ended by itself after it was ready. Null: it ended too often, and is not started again. */
  | { kind: 'exited'; part: PartName; exit: Exit; restartInMs: number | null }
  | { kind: 'restarted'; part: PartName }
  | { kind: 'tidied'; names: string[] }

export type Report = (event: PartEvent) => void

/** What can be stopped: a process, or a server around one. */
type Stoppable = { process: Pick<RunningProcess, 'kill'>; stop(graceMs?: number): Promise<void> }

/** A part that runs: what others need of it, and a line about it. */
export type Begun<T> = Stoppable & { value: T; words: string }
type Begin<T> = (progress: (text: string) => void, onExit: (exit: Exit) => void) => Promise<Begun<T>>

type PartsOptions = {
  rootDir: string
  logDir: string
  ledger: Ledger
  signal?: AbortSignal
  readyTimeoutMs?: number
  /** How long to wait before a part that ended is started again, for each time in a row. After the last one it stays down. */
  restartDelaysMs?: readonly number[]
}

/** How long each tier gets to leave: nine seconds if all of them are stubborn. The worker, on top, has most to finish. */
const graceMs = [2_000, 1_500, 2_000, 3_500]

/** Five times within ten minutes; who ran for longer starts from the first delay. */
const restartDelaysMs = [500, 2_000, 5_000, 10_000, 30_000]
const forgottenAfterMs = 600_000

/** The running parts in tiers: a higher tier needs the lower ones, so it is stopped before them. */
export function openParts(options: PartsOptions, report: Report) {
  const { ledger, logDir, rootDir, signal } = options
  mkdirSync(logDir, { recursive: true, mode: 0o700 })
  const tiers: Stoppable[][] = graceMs.map(() => [])
  const delays = options.restartDelaysMs ?? restartDelaysMs
  let stopping = false

  const logFile = (name: string) => join(logDir, `${name}.log`)

  /** Runs `begin` as the start of a part and reports how it goes; it answers a value and a line about it. */
  const start = async <T>(part: PartName, begin: (progress: (text: string) => void) => Promise<[T, string]>) => {
    signal?.throwIfAborted()
    const startedAt = Date.now()
    report({ kind: 'starting', part })
    try {
      const [value, result] = await begin((text) => report({ kind: 'progress', part, text }))
      report({ kind: 'ready', part, result, durationMs: Date.now() - startedAt })
      return value
    } catch (error) {
      if (!stopping) report({ kind: 'failed', part, message: (error as Error).message })
      throw error
    }
  }

  /** Starts a part that keeps running; when it ends by itself it is started again, a few times. */
  const serve = <T>(part: PartName, tier: number, begin: Begin<T>): Promise<T> =>
    start(part, async (progress) => {
      const ends: number[] = []
      let running: Begun<T>
      let ready = false
      const onExit = (exit: Exit) => {
        if (ready && !stopping) void restart(exit)
      }
      const restart = async (exit: Exit): Promise<void> => {
        ready = false
        const now = Date.now()
        ends.push(now)
        const recent = ends.filter((at) => now - at < forgottenAfterMs).length
        const restartInMs = delays[recent - 1] ?? null
        report({ kind: 'exited', part, exit, restartInMs })
        // What it had started may live on.
        await running.stop(0)
        if (restartInMs === null) return
        await sleep(restartInMs, undefined, { ref: false })
        if (stopping) return
        try {
          running = await begin(() => {}, onExit)
          ready = true
          if (stopping) running.process.kill()
          else report({ kind: 'restarted', part })
        } catch (error) {
          if (!stopping) await restart({ name: exit.name, code: 1, tail: `  ${(error as Error).message}` })
        }
      }
      running = await begin(progress, onExit)
      ready = true
      // Stopped while this part was starting: its tier may have been passed already.
      if (stopping) running.process.kill()
      tiers[tier]?.push({
        process: { kill: () => running.process.kill() },
        stop: (grace) => running.stop(grace),
      })
      return [running.value, running.words]
    })

  return {
    logFile,
    start,
    serve,

    /** What the environment gives instead of a part, reported; undefined when it gives nothing. */
    replaced<T>(part: PartName, given: T | undefined, words: (given: T) => string): T | undefined {
      if (given !== undefined) report({ kind: 'replaced', part, result: words(given) })
      return given
    },

    /** Waits for all of them even if one fails, so that nothing starts behind the back of the tidying up. */
    async all<T extends readonly unknown[]>(starts: [...T]): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
      await Promise.allSettled(starts)
      return Promise.all(starts)
    },

    /** Starts an entry file of ours, which says on `/readyz` when it is ready, and that it is the one. */
    child(part: PartName, tier: number, entry: string, port: number, env: Record<string, string | undefined>) {
      return serve(part, tier, async (_progress, onExit): Promise<Begun<undefined>> => {
        const nonce = randomBytes(16).toString('base64url')
        const child = await startProcess({
          name: part.toLowerCase(),
          command: process.execPath,
          args: [entry],
          cwd: rootDir,
          // Compiled once for all starts: of the second one that is a second less.
          env: { NODE_COMPILE_CACHE: join(rootDir, '.cache', 'compile'), ...env, [nonceSetting]: nonce },
          logFile: logFile(part.toLowerCase()),
          ledger,
          onExit,
        })
        const url = `http://127.0.0.1:${port}`
        try {
          await waitUntilReady(child, `${url}/readyz`, { timeoutMs: options.readyTimeoutMs ?? 60_000, nonce })
        } catch (error) {
          await child.stop(stopping ? 0 : graceMs[tier])
          throw error
        }
        return { value: undefined, words: url, process: child, stop: child.stop }
      })
    },

    /** Stops the tiers from this one up: something of theirs did not start, and they are started again. */
    async stopFrom(tier: number): Promise<void> {
      for (let at = tiers.length - 1; at >= tier; at -= 1) {
        await Promise.all((tiers[at] ?? []).splice(0).map((part) => part.stop(graceMs[at])))
      }
    },

    /** Stops tier after tier and returns when nothing is left. */
    async stop(): Promise<void> {
      stopping = true
      for (const [tier, parts] of [...tiers.entries()].reverse()) {
        await Promise.all(parts.map((part) => part.stop(graceMs[tier])))
      }
      // One that was still on its way up is in no tier yet.
      ledger.kill()
    },

    /** Kills everything at once and synchronously. */
    kill(): void {
      stopping = true
      ledger.kill()
    },
  }
}

export type Parts = ReturnType<typeof openParts>
