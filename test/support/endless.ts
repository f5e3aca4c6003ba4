import { Script } from 'node:vm'
import { patienceMs } from './directory.ts'

const stage = globalThis as { endlessWork?: () => void }

/**
 * Does work that is over in a moment or never: a pattern that goes back and forth, a loop over all
 * pairs. Jest cannot end what does not await; Node's watchdog can, and what hangs fails. How long
 * it takes is no matter here: that is a bench's.
 */
export function withoutHanging<T>(work: () => T): T {
  let result: T
  stage.endlessWork = () => {
    result = work()
  }
  try {
    new Script('endlessWork()').runInThisContext({ timeout: patienceMs })
  } finally {
    delete stage.endlessWork
  }
  return result!
}
