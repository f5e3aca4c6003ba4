import type { Logger } from 'pino'
import type { IngestResult } from '../db/alerts/alerts.ts'
import type { Runs } from './runs.ts'

/**
 * Notifies the queue and runs of stored alerts. May fail: the queue ticks anyway, and a run reads
 * in rows that its alerts ended.
 */
export async function tellRuns(
  { runs, log }: { runs: Pick<Runs, 'tell' | 'triggerQueue'>; log: Pick<Logger, 'warn'> },
  ingested: readonly IngestResult[],
): Promise<void> {
  if (ingested.some(({ wakesQueue }) => wakesQueue)) runs.triggerQueue()
  try {
    const over = new Map(ingested.flatMap(({ tellRun }) => (tellRun ? [[tellRun.incidentId, tellRun]] : [])))
    // Stops at the first request that Temporal does not answer: no later one would be answered.
    for (const run of over.values()) if ((await runs.tell(run, 'alertResolved', 2_000)) === 'unreached') return
  } catch (error) {
    log.warn({ err: error }, 'the end of an alert was stored, but its run was not notified')
  }
}
