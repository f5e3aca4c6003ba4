import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { holderOf } from './agent-processes.ts'

/** The state that an agent that calls out writes of itself: it has no port to be asked at. */
const standing = z.object({
  pid: z.number().int(),
  isConnected: z.boolean(),
  /** The last thing that it said about its connection. */
  said: z.string(),
  status: z.string(),
  reason: z.string().nullable(),
  /** Since when all of this is so. */
  at: z.string(),
})
type Standing = z.infer<typeof standing>
type Look = () => Omit<Standing, 'pid' | 'at'>

const fileIn = (state: string) => join(state, 'standing.json')

/**
 * Writes the agent's state whenever it changed since the last `note`. Never throws: a full disk
 * ends no connection.
 */
export function keepStanding(state: string, look: Look): { note(): void } {
  let before = ''
  return {
    note() {
      const now = { pid: process.pid, ...look() }
      const text = JSON.stringify(now)
      if (text === before) return
      const file = fileIn(state)
      try {
        writeFileSync(`${file}.new`, `${JSON.stringify({ ...now, at: new Date().toISOString() })}\n`, { mode: 0o600 })
        renameSync(`${file}.new`, file)
        before = text
      } catch {
        // The next note tries again.
      }
    },
  }
}

/** An agent that listens is asked over its port: what one that called out left there is over. */
export function endStanding(state: string): void {
  rmSync(fileIn(state), { force: true })
}

/**
 * The reason why the agent that calls out from this state is not ready; `null` where it is,
 * `undefined` where none called out last. A killed agent's file does not count.
 */
export function whyNotConnected(state: string): string | null | undefined {
  const kept = readStanding(state)
  if (!kept) return undefined
  if (holderOf(state) !== kept.pid) return `no agent runs in ${state}`
  if (!kept.isConnected) return `it is not connected since ${kept.at.slice(0, 19)}Z: ${kept.said}`
  return kept.status === 'ready' ? null : `it refuses: ${kept.reason ?? 'it does not say why'}`
}

function readStanding(state: string): Standing | null {
  try {
    return standing.safeParse(JSON.parse(readFileSync(fileIn(state), 'utf8'))).data ?? null
  } catch {
    return null
  }
}
