import { withAdvisoryLock } from '../db/advisory-lock.ts'
import { declareDatabase, declareTargets } from '../db/inventory/source-targets.ts'
import { listSources } from '../db/inventory/sources.ts'
import type { Source } from '../domain/source.ts'
import { SourceError } from '../sources/kind.ts'
import { listResources } from '../sources/kinds.ts'
import type { ApiDeps } from './deps.ts'
import { startRounds } from './rounds.ts'

type TargetDeps = Pick<ApiDeps, 'db' | 'locks' | 'log' | 'sources' | 'closing'>

/**
 * One round: what each source scrapes reaches the registry. A source that gives no list leaves its rows, which go stale. Credentials are read in this process,
 * so it happens here; one process at a time.
 */
export async function syncTargets(deps: TargetDeps): Promise<void> {
  await withAdvisoryLock(deps.locks, 'targets', async () => {
    for (const source of await listSources(deps.db)) {
      if (deps.closing.aborted) return
      await syncSource(deps, source)
    }
  })
}

/** What one source lists, now: a new one is known before its first round. A failure is the source's health, and no failure of the caller. */
export async function syncSource(
  { db, log, sources }: Pick<TargetDeps, 'db' | 'log' | 'sources'>,
  source: Source,
): Promise<void> {
  try {
    const listed = await listResources(source, sources)
    if (listed === null) return
    if ('database' in listed) {
      if (await declareDatabase(db, source, listed.database))
        log.info({ source: source.name }, 'what the server of a source is changed')
    } else if (await declareTargets(db, source, listed.targets))
      log.info({ source: source.name, targets: listed.targets.length }, 'the targets of a source changed')
  } catch (error) {
    if (!(error instanceof SourceError)) throw error
    // That a source is away is said by its health.
    log.debug({ source: source.name, code: error.code }, 'a source did not list its targets')
    if (error.code === 'TOO_LARGE') log.warn({ source: source.name }, `targets are not taken: ${error.message}`)
  }
}

/** Answers how to stop. */
export const startTargetSync = (deps: TargetDeps, everyMs: number): (() => void) =>
  startRounds(
    () => syncTargets(deps).catch((error) => deps.log.warn({ err: error }, 'targets were not synchronised')),
    everyMs,
  )
