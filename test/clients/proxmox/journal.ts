import type { Journal, JournalRow } from '../../../clients/proxmox/journal.ts'

/** A journal in memory whose clock the test moves. The one that survives is tested in test/db. */
export function memoryJournal(): Journal & { rows: Map<string, JournalRow> } {
  const rows = new Map<string, JournalRow>()
  return {
    rows,
    get: async (key) => structuredClone(rows.get(key) ?? null),
    async begin(entry) {
      if (rows.has(entry.key)) return false
      rows.set(entry.key, { ...entry, task: null, ageSeconds: 0, ending: null })
      return true
    },
    async noteTask(key, task) {
      Object.assign(rows.get(key) as JournalRow, { task })
    },
    async end(key, ending) {
      const row = rows.get(key) as JournalRow
      row.ending ??= ending
    },
  }
}
