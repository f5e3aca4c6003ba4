import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort as firstFreePort } from '../../start/process.ts'

/** Where the product keeps what it compiled, for every process that a test starts: each would compile the same. */
export const compileCache = join(import.meta.dirname, '../../.cache/compile')

/** An empty directory that other users can get through, and its removal. */
export function temporaryDirectory(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'nightshift-dir-'))
  chmodSync(path, 0o711)
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }) }
}

/** Each worker of jest looks for ports in a stretch of the range alone: what one has found, no other takes before it is used. */
const stretch = 2_500
const worker = Number(process.env.JEST_WORKER_ID ?? 1) - 1
const lowest = 10_240 + (worker % 8) * stretch
let next = lowest + Math.floor(Math.random() * (stretch - 500))

/** A port of 127.0.0.1 on which nobody listens. */
export async function freePort(): Promise<number> {
  const port = await firstFreePort(next)
  next = port + 1 < lowest + stretch - 250 ? port + 1 : lowest
  return port
}

/**
 * Waits for a fact, and answers it: for what another process or a loop does in its own time. Almost as patient as the tests
 * themselves: a busy machine takes longer, and that is not wrong.
 */
export async function eventually<T>(
  what: string,
  condition: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  timeoutMs = 100_000,
): Promise<T> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const answer = await condition()
    if (answer) return answer
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
