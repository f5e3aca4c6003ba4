import { withAdvisoryLock } from '../db/advisory-lock.ts'
import { declareCluster, declareDatabase, declareTargets } from '../db/inventory/source-targets.ts'
import { listSources } from '../db/inventory/sources.ts'
import type { Source } from '../domain/source.ts'
import { SourceError } from '../sources/kind.ts'
import { listResources, sourceKinds } from '../sources/kinds.ts'
import type { ApiDeps } from './deps.ts'
import { startRounds } from './rounds.ts'

type TargetDeps = Pick<ApiDeps, 'db' | 'locks' | 'log' | 'sources' | 'closing'>

/**
 * Runs one round: writes the scraped targets of each source to the registry. A source that gives no
 * list keeps its rows, which become stale. Runs in the API, because only the API reads the
 * credentials, and in one process at a time.
 */
export async function syncTargets(deps: TargetDeps): Promise<void> {
  await syncAll(deps, 'targets', () => true)
}

/**
 * Runs a round like `syncTargets` for lists that are in memory and cost their servers nothing, so
 * that a new pod is known at once.
 */
async function syncFollowed(deps: TargetDeps): Promise<void> {
  await syncAll(deps, 'followed', ({ kind }) => sourceKinds.get(kind)?.isFollowed === true)
}

async function syncAll(deps: TargetDeps, lock: string, isMeant: (source: Source) => boolean): Promise<void> {
  await withAdvisoryLock(deps.locks, lock, async () => {
    for (const source of (await listSources(deps.db)).filter(isMeant)) {
      if (deps.closing.aborted) return
      await syncSource(deps, source)
    }
  })
}

/**
 * Fetches the list of one source now, so that a new source is known before its first round. A
 * failure changes only the health of the source and is not thrown.
 */
export async function syncSource(
  { db, log, sources }: Pick<TargetDeps, 'db' | 'log' | 'sources'>,
  source: Source,
): Promise<void> {
  try {
    const listed = await listResources(source, sources)
    if (listed === null) return
    if ('database' in listed) {
      if (await declareDatabase(db, source, listed.database))
        log.info({ source: source.name }, 'the kind of server behind a source changed')
    } else if ('cluster' in listed) {
      if (await declareCluster(db, source, listed.cluster))
        log.debug({ source: source.name }, 'the resources of a cluster changed')
    } else if (await declareTargets(db, source, listed.targets))
      log.info({ source: source.name, targets: listed.targets.length }, 'the targets of a source changed')
  } catch (error) {
    if (!(error instanceof SourceError)) throw error
    // Logs only at debug level, because the health of the source already shows the failure.
    log.debug({ source: source.name, code: error.code }, 'the targets of a source could not be read')
    if (error.code === 'TOO_LARGE') log.warn({ source: source.name }, `the targets are refused: ${error.message}`)
  }
}

/** Starts the rounds that store targets. Returns a function that stops the rounds. */
export function startTargetSync(deps: TargetDeps, everyMs: number, followedMs: number): () => void {
  const whatFailed = (error: unknown) => deps.log.warn({ err: error }, 'targets were not synchronised')
  const stops = [
    startRounds(() => syncTargets(deps).catch(whatFailed), everyMs),
    startRounds(() => syncFollowed(deps).catch(whatFailed), followedMs),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}
