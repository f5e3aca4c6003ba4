import { listSources } from '../db/inventory/sources.ts'
import { hasSnapshotOfToday, keepSnapshot } from '../db/inventory/statement-snapshots.ts'
import type { DatabaseSample } from '../domain/database-state.ts'
import type { Source } from '../domain/source.ts'
import { SourceError } from '../sources/kind.ts'
import { countStatements, readDatabaseState, sourceKinds } from '../sources/kinds.ts'
import type { ApiDeps } from './deps.ts'
import { startRounds } from './rounds.ts'

/** Samples of database servers by the name of their source, in the memory of this process. */

type SampleDeps = Pick<ApiDeps, 'db' | 'log' | 'sources' | 'closing'>

const maxSamples = 120
const kept = new Map<string, DatabaseSample[]>()

export const samplesOf = (name: string): readonly DatabaseSample[] => kept.get(name) ?? []

/** Runs one round of sampling. A server that does not respond leaves a gap. */
async function sampleDatabases({ db, sources, closing }: SampleDeps): Promise<void> {
  const all = (await listSources(db)).filter(({ kind }) => sourceKinds.get(kind)?.readState)
  for (const name of kept.keys()) if (!all.some((each) => each.name === name)) kept.delete(name)
  for (const source of all) {
    if (closing.aborted) return
    const state = await readDatabaseState(source, sources).catch((error: unknown) => {
      if (!(error instanceof SourceError)) throw error
      return null
    })
    if (!state) continue
    await keepDaily({ db, sources }, source)
    const { connections, waiting, lagBytes } = state
    const sample = { at: new Date().toISOString(), connections: connections.used, waiting, lagBytes }
    kept.set(source.name, [...samplesOf(source.name), sample].slice(-maxSamples))
  }
}

/** Stores a server's statement counters, once a day. */
async function keepDaily({ db, sources }: Pick<SampleDeps, 'db' | 'sources'>, source: Source): Promise<void> {
  if (await hasSnapshotOfToday(db, source.name)) return
  const counted = await countStatements(source, sources).catch((error: unknown) => {
    if (!(error instanceof SourceError)) throw error
    return null
  })
  if (counted) await keepSnapshot(db, source.name, counted)
}

/** Starts the rounds of sampling. Returns a function that stops the rounds. */
export const startDatabaseSamples = (deps: SampleDeps, everyMs: number): (() => void) =>
  startRounds(
    () => sampleDatabases(deps).catch((error) => deps.log.warn({ err: error }, 'databases were not sampled')),
    everyMs,
  )
