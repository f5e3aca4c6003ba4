import type { Severity } from '../domain/incident.ts'
import { capChars } from './cap.ts'

type SeverityTable = ReadonlyMap<string, Severity>

/** A table from `{ critical: ['error', …] }`. */
export function severityTable(words: Record<Severity, string[]>): SeverityTable {
  const table = new Map<string, Severity>()
  for (const [severity, names] of Object.entries(words)) for (const name of names) table.set(name, severity as Severity)
  return table
}

type JudgedSeverity = { severity: Severity; severitySource: 'alert' | 'default'; severityWord: string | null }

/**
 * What a sender's word means. A word we do not know is a warning that says so: taking it for `info`, as others do, loses
 * pages.
 */
export function severityOf(word: string | null, table: SeverityTable): JudgedSeverity {
  const known = word === null ? undefined : table.get(word.trim().toLowerCase())
  return {
    severity: known ?? 'warning',
    severitySource: known ? 'alert' : 'default',
    severityWord: word === null ? null : capChars(word, 100),
  }
}
