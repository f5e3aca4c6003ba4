import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { holderOf } from './agent-processes.ts'

/** The state that a connected agent writes to a file, because it has no port for queries. */
const standing = z.object({
  pid: z.number().int(),
  isConnected: z.boolean(),
  /** The last message about the agent's connection. */
  said: z.string(),
  status: z.string(),
  reason: z.string().nullable(),
  /** The time since which all fields of the standing are true. */
  at: z.string(),
})
type Standing = z.infer<typeof standing>
type Look = () => Omit<Standing, 'pid' | 'at'>

const fileIn = (state: string) => join(state, 'standing.json')

/**
 * Writes the agent's state if it changed since the last `note`. Never throws, so that a full disk
 * does not end the connection.
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
        // Ignores the error, because the next call of `note` writes the file again.
      }
    },
  }
}

/**
 * Removes the file of an earlier agent that connected, because an agent that listens is queried
 * over its port.
 */
export function endStanding(state: string): void {
  rmSync(fileIn(state), { force: true })
}

/**
 * Returns why the connecting agent of this state directory is not ready: `null` if it is ready,
 * `undefined` if the last agent did not connect. Ignores the file of a killed agent.
 */
export function whyNotConnected(state: string): string | null | undefined {
  const kept = readStanding(state)
  if (!kept) return undefined
  if (holderOf(state) !== kept.pid) return `no agent runs in ${state}`
  if (!kept.isConnected) return `the agent has not been connected since ${kept.at.slice(0, 19)}Z: ${kept.said}`
  return kept.status === 'ready' ? null : `the agent refuses calls: ${kept.reason ?? 'no reason given'}`
}

function readStanding(state: string): Standing | null {
  try {
    return standing.safeParse(JSON.parse(readFileSync(fileIn(state), 'utf8'))).data ?? null
  } catch {
    return null
  }
}
