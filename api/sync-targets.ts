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
 * One round: each source's scraped targets reach the registry. A source without a list leaves its
 * rows, which go stale. This process reads the credentials, so it happens here; one process at a
 * time.
 */
export async function syncTargets(deps: TargetDeps): Promise<void> {
  await syncAll(deps, 'targets', () => true)
}

/** The same for lists in memory, which cost their servers nothing: a new pod is known at once. */
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
 * One source's list, now: a new source is known before its first round. A failure is the source's
 * health, not the caller's.
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
        log.info({ source: source.name }, 'what the server of a source is changed')
    } else if ('cluster' in listed) {
      if (await declareCluster(db, source, listed.cluster))
        log.debug({ source: source.name }, 'what a cluster has changed')
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
