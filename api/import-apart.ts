import { Worker } from 'node:worker_threads'
import type { Db } from '../db/connect.ts'
import { databaseAddress } from '../db/connect.ts'
import type { ImportWish } from '../db/inventory/import-site.ts'
import { endImport } from '../db/inventory/imports.ts'

/** What a thread is given: the file as it was sent, and what is wanted of it. */
export type ImportTask = ImportWish & { id: string; databaseUrl: string; file: unknown }

const maxMemoryMb = 1_024

/**
 * Imports a large file in a thread that has its connections to itself, so that requests are answered meanwhile. Its row says how far it is and how it
 * ended. Settles when the thread has ended.
 */
export async function importApart(db: Db, task: Omit<ImportTask, 'databaseUrl'>): Promise<void> {
  const worker = new Worker(new URL('./import-thread.ts', import.meta.url), {
    env: {},
    workerData: { ...task, databaseUrl: databaseAddress(db) } satisfies ImportTask,
    resourceLimits: { maxOldGenerationSizeMb: maxMemoryMb },
  })
  const error = await new Promise<Error | null>((resolve) => {
    worker.once('error', resolve)
    worker.once('exit', () => resolve(null))
  })
  // What the thread said itself stands.
  const reason = error ? `It ended: ${error.message}` : 'It ended without a word.'
  await endImport(db, task.id, { reason: `${reason} Nothing was stored.`, faults: [] })
}
