import { setTimeout as sleep } from 'node:timers/promises'
import type { AskDatabase } from './connect.ts'
import type { SqlRow } from './sessions.ts'

/** Reads growing counters twice. The difference shows the work of the server at present. */

/**
 * Milliseconds between the two reads. Sessions report their work once a second
 * (https://www.postgresql.org/docs/current/monitoring-stats.html).
 */
const betweenMs = 3_000

/** A row, and by how much each of its counters grew since the first read. */
export type Counted = { row: SqlRow; now: Record<string, number>; isNew: boolean }

export async function readTwice(
  ask: AskDatabase,
  sql: string,
  of: { key: string; counters: readonly string[] },
): Promise<{ rows: Counted[]; seconds: number }> {
  const first = new Map((await ask({ sql })).rows.map((row) => [String(row[of.key]), row]))
  const began = performance.now()
  await sleep(betweenMs)
  const { rows } = await ask({ sql })
  const seconds = (performance.now() - began) / 1_000
  return {
    seconds,
    rows: rows.map((row) => {
      const before = first.get(String(row[of.key]))
      // Counts no increase for a counter that was reset between the reads and is therefore smaller.
      const change = (name: string) => Math.max(0, Number(row[name] ?? 0) - Number(before?.[name] ?? 0))
      return {
        row,
        now: Object.fromEntries(of.counters.map((name) => [name, change(name)])),
        isNew: before === undefined,
      }
    }),
  }
}

export const perSecond = (count: number, seconds: number): number => Math.round((count / seconds) * 10) / 10
