import { workerData } from 'node:worker_threads'
import { sql } from 'kysely'
import { connect, type Trx } from '../db/connect.ts'
import { ImportFaultsError, importSiteFile, knownKeys } from '../db/inventory/import-site.ts'
import { endImport, noteImport } from '../db/inventory/imports.ts'
import { HasDeviceError } from '../db/inventory/site.ts'
import { findSiteFaults, type SiteFault, siteFile } from '../domain/site.ts'
import type { ImportTask } from './import-apart.ts'

const sayEveryMs = 1_000
const maxFaults = 200

const { id, databaseUrl, file, ...wish } = workerData as ImportTask
const db = connect(databaseUrl, { name: 'nightshift-import', max: 2 })
let at = { step: 'checking', done: 0, total: 0 }
const timer = setInterval(() => void noteImport(db, id, at).catch(() => undefined), sayEveryMs)

/**
 * Sets a time limit for statements that is enough for 100,000 resources and 400,000 relations on a
 * busy machine.
 */
const withTime = async (trx: Trx) => {
  await sql`select set_config('statement_timeout', '600s', true), set_config('idle_in_transaction_session_timeout', '600s', true)`.execute(
    trx,
  )
}

try {
  const faults = findSiteFaults(file, await knownKeys(db, { prune: wish.isPruning }))
  if (faults.length > 0) await fail(faults)
  else {
    const change = await importSiteFile(db, siteFile.parse(file), wish, {
      begin: withTime,
      onProgress(step, done, total) {
        at = { step, done, total }
      },
      end: (trx, change) => endImport(trx, id, { change }),
    })
    if (wish.isDryRun) await endImport(db, id, { change })
  }
} catch (error) {
  if (error instanceof ImportFaultsError) await fail(error.faults.map((message) => ({ field: null, message })))
  else if (error instanceof HasDeviceError) await endImport(db, id, { reason: error.message, faults: [] })
  else throw error
} finally {
  clearInterval(timer)
  await db.destroy()
}

async function fail(faults: readonly SiteFault[]): Promise<void> {
  const [first] = faults
  const named = first?.field ? `${first.field}: ${first.message}` : first?.message
  const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`
  const reason = `The file has ${count}, and nothing was stored: ${named}`
  await endImport(db, id, { reason, faults: faults.slice(0, maxFaults) })
}
