import { join, relative } from 'node:path'
import { temporalSettingsIn } from '../config/settings.ts'
import { ensureFirstRunTokens } from '../db/access/tokens.ts'
import { connect } from '../db/connect.ts'
import { holdsIncidents } from '../db/database-state.ts'
import { migrateToLatest, migrationTrouble } from '../migrations/migrate.ts'
import { type Environment, isTemporalGiven, setting } from './environment.ts'
import { logFileOf, type Parts, replacePart, type StartedPart, servePart, startPart, waitForAll } from './parts.ts'
import { startPostgres } from './postgres.ts'
import { releasePort } from './process.ts'
import type { Ledger } from './process-table.ts'
import { isSameDatabase, type Purpose } from './purpose.ts'
import type { LocalRun } from './run-file.ts'
import { searchAttributes, startTemporal } from './temporal.ts'
import { findTemporalCli } from './temporal-cli.ts'

type StoresOptions = {
  rootDir: string
  stateDir: string
  env: Environment
  ledger: Ledger
  signal?: AbortSignal | undefined
}

export type TemporalPlace = { address: string; uiUrl: string | null }

/** Starts PostgreSQL and Temporal at the same time. Returns their addresses. */
export async function startStores(parts: Parts, options: StoresOptions): Promise<[string, TemporalPlace]> {
  const { env } = options
  return await waitForAll([
    replacePart(parts, 'PostgreSQL', setting(env, 'DATABASE_URL'), withoutPassword) ?? servePostgres(parts, options),
    replacePart(parts, 'Temporal', givenTemporal(env), (given) => given.address) ?? serveTemporal(parts, options),
  ])
}

/** Returns the user's own Temporal, if an address or a profile names one. */
function givenTemporal(env: Environment): TemporalPlace | undefined {
  return isTemporalGiven(env) ? { address: temporalSettingsIn(env).address, uiUrl: null } : undefined
}

/** The first port to try, because a PostgreSQL of the machine may need 5432. */
const firstPort = 5433

function servePostgres(parts: Parts, { rootDir, stateDir, ledger }: StoresOptions): Promise<string> {
  let port: number | null = null
  return servePart(parts, 'PostgreSQL', 0, async (progress, onExit): Promise<StartedPart<string>> => {
    const dir = join(stateDir, 'postgres')
    const logFile = logFileOf(parts, 'postgres')
    const postgres = await startPostgres({ dir, port: port ?? firstPort, logFile, ledger, progress, onExit })
    // Requires the same port after a restart, because the other parts use it.
    if (port !== null && postgres.port !== port) {
      await postgres.stop()
      throw new Error(`port ${port} of PostgreSQL is in use`)
    }
    port = postgres.port
    releasePort(port)
    const isInside = !relative(rootDir, postgres.dataDir).startsWith('..')
    const kept = isInside ? relative(rootDir, dir) : postgres.dataDir
    const words = `${withoutPassword(postgres.url)}  ${postgres.version}, data in ${kept}`
    return { value: postgres.url, words, process: postgres.process, stop: postgres.stop }
  })
}

function serveTemporal(
  parts: Parts,
  { rootDir, stateDir, env, ledger, signal }: StoresOptions,
): Promise<TemporalPlace> {
  let ports = { frontend: 7233, ui: 8233 }
  let address: string | null = null
  return servePart(parts, 'Temporal', 0, async (progress, onExit): Promise<StartedPart<TemporalPlace>> => {
    const cli = await findTemporalCli({ rootDir, env, progress, ...(signal && { signal }) })
    progress('starting')
    const server = await startTemporal({
      cli: cli.path,
      dir: join(stateDir, 'temporal'),
      ports,
      searchAttributes,
      ledger,
      env,
      progress,
      onExit,
      logFile: logFileOf(parts, 'temporal'),
    })
    if (address !== null && server.address !== address) {
      await server.stop()
      throw new Error(`the port of Temporal's ${address} is in use`)
    }
    address = server.address
    ports = { frontend: portOf(address), ui: portOf(new URL(server.uiUrl).host) }
    releasePort(ports.frontend)
    releasePort(ports.ui)
    const value = { address, uiUrl: server.uiUrl }
    return { value, words: `${address}  page ${server.uiUrl}`, process: server.process, stop: server.stop }
  })
}

const portOf = (address: string): number => Number(address.split(':').at(-1))

/** Migrates the schema and creates the tokens of a first run. */
export async function prepareDatabase(
  parts: Parts,
  databaseUrl: string,
  {
    env,
    previous,
    place,
    purpose,
  }: { env: Environment; previous: LocalRun | undefined; place: string; purpose: Purpose },
): Promise<LocalRun['tokens']> {
  const given = setting(env, 'AGENT_API_KEY')
  return await startPart(parts, 'Database', async (progress): Promise<[LocalRun['tokens'], string]> => {
    if (purpose === 'lab' && !isSameDatabase(databaseUrl, previous?.databaseUrl)) await refuseUsed(databaseUrl)
    const { applied } = await migrateToLatest(databaseUrl).catch((error): never => {
      const trouble = migrationTrouble(error, databaseUrl)
      throw trouble ? new Error(`${trouble.problem}. ${trouble.remedy}`) : error
    })
    const done = applied.length === 0 ? 'up to date' : `${applied.length} migrations applied`
    // Creates no tokens for another core API, because that API has its own tokens.
    if (setting(env, 'CORE_API_URL') !== undefined) return [{ ...(given !== undefined && { agent: given }) }, done]
    progress('minting tokens')
    const db = connect(databaseUrl, { owner: true, name: 'nightshift start' })
    try {
      const agent = given ?? previous?.tokens.agent
      const tokens = await ensureFirstRunTokens(db, { ...previous?.tokens, ...(agent !== undefined && { agent }) })
      return [tokens, `${done}, tokens in ${place}`]
    } finally {
      await db.destroy()
    }
  })
}

/**
 * Throws, before any change, if the database has incidents. The lab's hosts and faults must not mix
 * with incidents of another Nightshift.
 */
async function refuseUsed(databaseUrl: string): Promise<void> {
  const db = connect(databaseUrl, { owner: true, name: 'nightshift start', max: 1 })
  try {
    // Ignores an error of the database, which the migration explains.
    if (!(await holdsIncidents(db).catch(() => false))) return
  } finally {
    await db.destroy()
  }
  throw new Error(
    'DATABASE_URL names a database with incidents of another Nightshift, and the hosts of the lab must not mix with them: leave DATABASE_URL unset, or name an empty database. Nothing was changed.',
  )
}

function withoutPassword(databaseUrl: string): string {
  const { host } = new URL(databaseUrl)
  return `postgresql://${host}`
}
