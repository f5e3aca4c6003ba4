import { Worker } from 'node:worker_threads'
import { databaseAddress, isTransient } from '../db/connect.ts'
import type { ImportWish } from '../db/inventory/import-site.ts'
import { endImport } from '../db/inventory/imports.ts'
import type { ApiDeps } from './deps.ts'

/** The input of the importing thread: the file as it was sent, and how to import it. */
export type ImportTask = ImportWish & { id: string; databaseUrl: string; file: unknown }

const maxMemoryMb = 1_024

/**
 * Imports a large inventory file in a thread with separate connections, so that the process can
 * serve requests. A row has the progress and the result. Settles when the thread has ended.
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
  // Changes nothing if the thread has stored a result itself.
  await endImport(db, task.id, { reason: `${describeEnd(error)} Nothing was stored.`, faults: [] })
}

/** Describes the failure for people. Details about the database and Node are only logged. */
function describeEnd(error: Error | null): string {
  if (error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY')
    return `The import took more than ${maxMemoryMb} MB of memory. Import it as several files.`
  if (error && isTransient(error)) return 'The database did not answer. Import the file again.'
  return "The import failed. The API's log has the reason."
}
