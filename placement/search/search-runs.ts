import { isUp, type SearchBudget } from '../cluster/size-classes.ts'
import { incumbentMigrations, isComplete, isOptimal, recordMoves, type SearchState } from './exhaust.ts'
import { search } from './search.ts'

/** Runs the search with different noise, until the work is used up or the plan is the best. */
export function searchRuns(
  state: SearchState,
  amount: number,
  { isFirst = false, maxRuns = Number.POSITIVE_INFINITY } = {},
): void {
  const { instance, deadlineMs, random, forcedMigrations } = state
  const work: SearchBudget = { left: amount }
  for (let run = 0; run < maxRuns && work.left > 0 && !isOptimal(state) && !isUp(deadlineMs); run += 1) {
    const noise = isFirst && run === 0 ? 0 : 0.3 + 0.7 * random()
    const maxMigrations = isComplete(state) ? incumbentMigrations(state) - forcedMigrations - 1 : 60
    // Places small VMs first in some runs while VMs stay down, because more VMs may then start.
    const first = !isComplete(state) && run % 3 === 2 ? 'smallest' : 'largest'
    const { moves, unplaced } = search(instance, { random, noise, maxMigrations, deadlineMs, work, first })
    recordMoves(state, moves, unplaced)
  }
}
