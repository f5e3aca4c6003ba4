import { withAdvisoryLock } from '../db/advisory-lock.ts'
import { listSources } from '../db/inventory/sources.ts'
import { keepSilences, noteUnreadSilences } from '../db/silences.ts'
import type { Source } from '../domain/source.ts'
import { SourceError } from '../sources/kind.ts'
import { readSilences, sourceKinds } from '../sources/kinds.ts'
import type { ApiDeps } from './deps.ts'
import { startRounds } from './rounds.ts'

type SilenceDeps = Pick<ApiDeps, 'db' | 'locks' | 'log' | 'sources' | 'closing'>

/**
 * Stores the silences of each Alertmanager, for the configured policy. Reads all Alertmanagers at
 * once, so that a slow one delays no other. Only one process of the API reads them at a time.
 */
export async function readAllSilences(deps: SilenceDeps): Promise<void> {
  await withAdvisoryLock(deps.locks, 'silences', async () => {
    const all = (await listSources(deps.db)).filter(({ kind }) => sourceKinds.get(kind)?.readSilences)
    await Promise.all(all.map((source) => readOne(deps, source)))
  })
}

async function readOne({ db, log, sources, closing }: SilenceDeps, source: Source): Promise<void> {
  try {
    const found = await readSilences(source, sources)
    if (found && !closing.aborted) await keepSilences(db, source, found)
  } catch (error) {
    if (!(error instanceof SourceError)) throw error
    log.debug({ source: source.name, code: error.code }, 'the silences of a source were not read')
    if (!closing.aborted) await noteUnreadSilences(db, source, error.message)
  }
}

/** Starts the rounds that read silences. Returns a function that stops the rounds. */
export const startSilences = (deps: SilenceDeps, everyMs: number): (() => void) =>
  startRounds(
    () => readAllSilences(deps).catch((error) => deps.log.warn({ err: error }, 'silences were not read')),
    everyMs,
  )
