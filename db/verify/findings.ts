import type { Difference, Findings } from '../../domain/chain.ts'
import { noFindings } from '../../domain/findings.ts'

/**
 * Collects the results of comparisons: checked rows, differences, and rows about which older rows
 * lack facts.
 */
export type Notes = Findings & {
  /** Counts one more row of this kind as checked. */
  check(kind: string, count?: number): void
  differ(subject: string, what: string): void
  /** Counts one row that could not be compared, because an older version recorded too little. */
  leave(kind: string, count?: number): void
}

export function takeNotes(): Notes {
  const notes = noFindings()
  const add = (counts: Record<string, number>, kind: string, count: number) => {
    counts[kind] = (counts[kind] ?? 0) + count
  }
  return {
    ...notes,
    check: (kind, count = 1) => add(notes.checked, kind, count),
    differ: (subject, what) => void notes.differences.push({ subject, what } satisfies Difference),
    leave: (kind, count = 1) => add(notes.untold, kind, count),
  }
}

/** Formats a difference: `expiresAt is "…", the rows say "…"`. */
export function differs(field: string, stored: unknown, said: unknown): string {
  const shown = (value: unknown) => (value === null ? 'empty' : JSON.stringify(value)).slice(0, 120)
  return `${field} is ${shown(stored)}, the rows say ${shown(said)}`
}
