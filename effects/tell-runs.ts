import type { Logger } from 'pino'
import type { IngestResult } from '../db/alerts/alerts.ts'
import type { Runs } from './runs.ts'

/** Best effort: the queue ticks by itself, and a run sees in rows that its alerts ended. */
export async function tellRuns(
  { runs, log }: { runs: Pick<Runs, 'tell' | 'triggerQueue'>; log: Pick<Logger, 'warn'> },
  ingested: readonly IngestResult[],
): Promise<void> {
  if (ingested.some(({ wakesQueue }) => wakesQueue)) runs.triggerQueue()
  try {
    const over = new Map(ingested.flatMap(({ tellRun }) => (tellRun ? [[tellRun.incidentId, tellRun]] : [])))
    // Where Temporal does not answer one it answers none.
    for (const run of over.values()) if ((await runs.tell(run, 'alertResolved', 2_000)) === 'unreached') return
  } catch (error) {
    log.warn({ err: error }, 'the end of an alert was stored, but its run was not told')
  }
}
