import type { Journal } from '../../../clients/proxmox/outcome.ts'
import type { PlatformEffectRow } from '../../../domain/platform-effect.ts'

/** A journal in memory whose clock the test moves. The one that survives is tested in test/db. */
export function memoryJournal() {
  const rows = new Map<string, PlatformEffectRow>()
  const journal: Journal & { rows: typeof rows; ageSeconds: number } = {
    rows,
    ageSeconds: 0,
    async get(key) {
      const row = rows.get(key)
      return row ? structuredClone({ ...row, ageSeconds: journal.ageSeconds }) : null
    },
    async begin(entry) {
      if (rows.has(entry.key)) return false
      rows.set(entry.key, { ...entry, task: null, ageSeconds: 0, ending: null })
      return true
    },
    async noteTask(key, task) {
      Object.assign(rows.get(key) as PlatformEffectRow, { task })
    },
    async end(key, ending) {
      const row = rows.get(key) as PlatformEffectRow
      row.ending ??= ending
    },
  }
  return journal
}
