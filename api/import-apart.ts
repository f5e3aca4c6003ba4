import { Worker } from 'node:worker_threads'
import { databaseAddress, isTransient } from '../db/connect.ts'
import type { ImportWish } from '../db/inventory/import-site.ts'
import { endImport } from '../db/inventory/imports.ts'
import type { ApiDeps } from './deps.ts'

/** What a thread is given: the file as it was sent, and what is wanted of it. */
export type ImportTask = ImportWish & { id: string; databaseUrl: string; file: unknown }

const maxMemoryMb = 1_024

/**
 * Imports a large file in a thread with its own connections, so that requests are answered
 * meanwhile. Its row says how far it is and how it ended. Settles when the thread ended.
 */
export async function importApart(
  { db, log }: Pick<ApiDeps, 'db' | 'log'>,
  task: Omit<ImportTask, 'databaseUrl'>,
): Promise<void> {
  const worker = new Worker(new URL('./import-thread.ts', import.meta.url), {
    env: {},
    workerData: { ...task, databaseUrl: databaseAddress(db) } satisfies ImportTask,
    resourceLimits: { maxOldGenerationSizeMb: maxMemoryMb },
  })
  const error = await new Promise<Error | null>((resolve) => {
    worker.once('error', resolve)
    worker.once('exit', () => resolve(null))
  })
  if (error) log.error({ err: error, id: task.id }, 'an import ended too early')
  // What the thread said itself stands.
  await endImport(db, task.id, { reason: `${describeEnd(error)} Nothing was stored.`, faults: [] })
}

/** In words for people: what the database or Node says of it is for the log. */
function describeEnd(error: Error | null): string {
  if (error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY')
    return `The import took more than ${maxMemoryMb} MB of memory. Import it as several files.`
  if (error && isTransient(error)) return 'The database did not answer. Import the file again.'
  return "The import failed for an unknown reason. The API's log has it."
}
