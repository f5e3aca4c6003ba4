import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort as firstFreePort } from '../../start/process.ts'

/**
 * Where the product keeps what it compiled, for every process that a test starts: each would
 * compile the same.
 */
export const compileCache = join(import.meta.dirname, '../../.cache/compile')

/** An empty directory that other users can get through, and its removal. */
export function temporaryDirectory(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'nightshift-dir-'))
  chmodSync(path, 0o711)
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }) }
}

/**
 * Each worker of jest looks for ports in a stretch of the range alone: what one has found, no other
 * takes before it is used.
 */
const stretch = 2_500
const worker = Number(process.env.JEST_WORKER_ID ?? 1) - 1
const lowest = 10_240 + (worker % 8) * stretch
let next = lowest + Math.floor(Math.random() * (stretch - 500))

/**
 * A port of 127.0.0.1 on which nobody listens, and which no other run of tests on this machine was
 * given.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = await firstFreePort(next)
    next = port + 1 < lowest + stretch - 250 ? port + 1 : lowest
    if (claim(port)) return port
  }
}

/**
 * Two runs at once have workers of the same numbers. A file per port says whose it is, for as long
 * as that process lives.
 */
const claims = join(tmpdir(), 'nightshift-test-ports')

function claim(port: number): boolean {
  mkdirSync(claims, { recursive: true, mode: 0o777 })
  const file = join(claims, String(port))
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' })
    return true
  } catch {
    const owner = Number(readFileSync(file, { encoding: 'utf8', flag: 'a+' }))
    if (owner > 0 && existsSync(`/proc/${owner}`)) return false
    writeFileSync(file, String(process.pid))
    return true
  }
}

/**
 * How long any wait of a test lasts before it ends a hang. Far beyond what a busy machine needs:
 * being slow is not wrong.
 */
export const patienceMs = 240_000

/**
 * Waits for a fact, and answers it: for what another process or a loop does in its own time. A test
 * gives a deadline only where it is the absence of something that it is about.
 */
export async function eventually<T>(
  what: string,
  condition: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  timeoutMs = patienceMs,
): Promise<T> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const answer = await condition()
    if (answer) return answer
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
