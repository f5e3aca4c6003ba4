import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { migrateToLatest } from '../migrations/migrate.ts'
import { startPostgres } from '../start/postgres.ts'
import { searchAttributes, startTemporal } from '../start/temporal.ts'
import { findTemporalCli } from '../start/temporal-cli.ts'
import { temporaryDirectory } from '../test/support/directory.ts'

const rootDir = fileURLToPath(new URL('..', import.meta.url))

type Servers = {
  /** A temporary directory, which is removed with the servers. */
  dir: string
  databaseUrl: string
  temporalAddress: string
  stop(): Promise<void>
}

/**
 * Starts PostgreSQL with its schema, and Temporal, for one measurement. Set `durable` to measure
 * the storing of rows.
 */
export async function startServers({ durable = false } = {}): Promise<Servers> {
  const dir = temporaryDirectory().path
  const postgres = await startPostgres({ dir: join(dir, 'postgres'), durable })
  const { path: cli } = await findTemporalCli({ rootDir, env: process.env })
  const logFile = join(dir, 'temporal.log')
  const temporal = await startTemporal({ cli, dir: null, searchAttributes, logFile, env: process.env })
  await migrateToLatest(postgres.url)
  return {
    dir,
    databaseUrl: postgres.url,
    temporalAddress: temporal.address,
    async stop() {
      await Promise.all([temporal.stop(), postgres.stop()])
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
