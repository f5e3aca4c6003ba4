import { afterEach, beforeEach } from '@jest/globals'
import { closeConnections } from '../../../clients/http.ts'
import type { PlatformClient } from '../../../clients/platform.ts'
import { createProxmoxClient } from '../../../clients/proxmox/client.ts'
import type { Journal } from '../../../clients/proxmox/outcome.ts'
import type { EffectAnswer, PlatformEffectRow } from '../../../domain/platform.ts'
import { type ScriptedProxmox, startScriptedProxmox, token } from './scripted-proxmox.ts'

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

/** The cluster of the test that runs, what is journalled of it, and a client of both: others for every test. */
export let pve: ScriptedProxmox
export let journal: ReturnType<typeof memoryJournal>
export let client: PlatformClient

/** Gives every test of the file a cluster. */
export function useCluster(): void {
  beforeEach(async () => {
    pve = await startScriptedProxmox()
    journal = memoryJournal()
    client = anotherClient()
  })
  afterEach(async () => {
    await closeConnections()
    await pve.close()
  })
}

/** One that remembers nothing but what the journal holds, as after a restart. */
export function anotherClient(timeoutMs?: number): PlatformClient {
  return createProxmoxClient({
    urls: [pve.server.url],
    token,
    allow: 'loopback',
    journal,
    ...(timeoutMs && { timeoutMs }),
  })
}

export const move = { from: 'pve1', to: 'pve2' }

/** Asks for the migration that most tests are about. */
export const migrated = () => client.migrateVm('vm-101', move, 'k1')

/** Looks until it is over. */
export async function followed(answer: EffectAnswer): Promise<EffectAnswer> {
  let last: EffectAnswer | null = answer
  for (let look = 0; last?.status === 'running' && look < 20; look += 1) last = await client.effect(answer.key)
  if (!last) throw new Error('its key is not known')
  return last
}
