import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Ledger } from './ledger.ts'
import { type Exit, type RunningProcess, startProcess, waitUntilReady } from './process.ts'

export type PartName = 'PostgreSQL' | 'Temporal' | 'Database' | 'Lab' | 'Model' | 'API' | 'Worker' | 'Page'

/** What happens to a part, in the order it happens: `starting`, any number of `progress`, then `ready` or `failed`. */
export type PartEvent =
  | { kind: 'starting'; part: PartName }
  | { kind: 'progress'; part: PartName; text: string }
  | { kind: 'ready'; part: PartName; result: string; durationMs: number }
  /** Not started, because the environment names another. */
  | { kind: 'replaced'; part: PartName; result: string }
  | { kind: 'failed'; part: PartName; message: string }
  /** Ended by itself after it was ready; nothing restarts it. */
  | { kind: 'exited'; part: PartName; exit: Exit }
  | { kind: 'tidied'; names: string[] }

export type Report = (event: PartEvent) => void

/** What can be stopped: a process, or a server around one. */
interface Stoppable {
  process: RunningProcess
  stop(graceMs?: number): Promise<void>
}

interface PartsOptions {
  rootDir: string
  logDir: string
  ledger: Ledger
  signal?: AbortSignal
  readyTimeoutMs?: number
}

/** How long each tier gets to leave: nine seconds if all of them are stubborn. The worker, on top, has most to finish. */
const graceMs = [2_000, 1_500, 2_000, 3_500]

/** The running parts in tiers: a higher tier needs the lower ones, so it is stopped before them. */
export function openParts(options: PartsOptions, report: Report) {
  const { ledger, logDir, rootDir, signal } = options
  mkdirSync(logDir, { recursive: true, mode: 0o700 })
  const tiers: Stoppable[][] = graceMs.map(() => [])
  let stopping = false

  const logFile = (name: string) => join(logDir, `${name}.log`)

  const keep = (tier: number, part: Stoppable) => {
    // Stopped while this part was starting: its tier may have been passed already.
    if (stopping) part.process.kill()
    tiers[tier]?.push(part)
  }

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

  const hasExited = (part: PartName, exit: Exit) => {
    if (!stopping) report({ kind: 'exited', part, exit })
  }

  return {
    logFile,
    keep,
    start,

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

    /** Starts an entry file of ours, which tells on `/readyz` when it is ready. */
    child(part: PartName, tier: number, entry: string, port: number, env: Record<string, string | undefined>) {
      return start(part, async (): Promise<[undefined, string]> => {
        let ready = false
        const child = await startProcess({
          name: part.toLowerCase(),
          command: process.execPath,
          args: [entry],
          cwd: rootDir,
          // Compiled once for all starts: of the second one that is a second less.
          env: { NODE_COMPILE_CACHE: join(rootDir, '.cache', 'compile'), ...env },
          logFile: logFile(part.toLowerCase()),
          ledger,
          onExit: (exit) => ready && hasExited(part, exit),
        })
        keep(tier, { process: child, stop: child.stop })
        const url = `http://127.0.0.1:${port}`
        await waitUntilReady(child, `${url}/readyz`, options.readyTimeoutMs ?? 60_000)
        ready = true
        return [undefined, url]
      })
    },

    /** For a part that is started elsewhere and tells there when it ends by itself. */
    onExit: (part: PartName) => (exit: Exit) => hasExited(part, exit),

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
