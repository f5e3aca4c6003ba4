import type { Logger } from 'pino'
import type { PlatformClient } from '../clients/platform.ts'
import type { Db } from '../db/connect.ts'
import { syncInventory } from '../db/inventory.ts'
import { Problem } from './problem.ts'

/** How old an answer about the platform may be. */
const freshMs = 250
/** A platform that takes longer to list itself counts as out of reach. */
const askWithinMs = 3_000

export type PlatformState = {
  /** Makes the inventory what the platform says now. `stale`: it could not be asked, and nothing is known of its health. */
  refresh(): Promise<{ stale: boolean }>
  /** The same for answers that have no word for "unknown": 503 instead of an old truth. */
  requireFresh(): Promise<void>
  /** Something was written: whatever was asked before that is no longer fresh. */
  forget(): void
  /** Keeps the inventory in step also while nobody asks. Answers how to stop. */
  keepInStep(everyMs: number): () => void
}

/** Without a platform the rows are served as they are: somebody else keeps them. */
export function platformState(db: Db, platform: PlatformClient | null, log: Logger): PlatformState {
  let epoch = 0
  let known: { epoch: number; untilMs: number; stale: boolean } | null = null
  let asking: { epoch: number; answer: Promise<{ stale: boolean }> } | null = null

  async function ask(port: PlatformClient, asked: number): Promise<{ stale: boolean }> {
    let stale = false
    try {
      const inventory = await port.inventory(AbortSignal.timeout(askWithinMs))
      // An answer from before a write must not overwrite one from after it.
      if (asked === epoch) await syncInventory(db, inventory)
    } catch (error) {
      stale = true
      if (!known?.stale) log.warn({ err: error }, 'the platform could not be asked: its health is unknown')
    }
    if (known?.stale && !stale) log.info('the platform answers again')
    known = { epoch: asked, untilMs: performance.now() + freshMs, stale }
    return { stale }
  }

  async function refresh(): Promise<{ stale: boolean }> {
    if (!platform) return { stale: false }
    for (;;) {
      if (known && known.epoch === epoch && performance.now() < known.untilMs) return { stale: known.stale }
      if (asking?.epoch !== epoch) {
        const asked = epoch
        const answer = ask(platform, asked).finally(() => {
          if (asking?.epoch === asked) asking = null
        })
        asking = { epoch: asked, answer }
      }
      const { epoch: asked, answer } = asking
      const { stale } = await answer
      // Where a write came in between, what was read before it was not kept: the rows may be older than either.
      if (stale || asked === epoch) return { stale }
    }
  }

  return {
    refresh,
    async requireFresh() {
      if (!(await refresh()).stale) return
      const detail = 'The platform cannot be reached, and what was true before may not be true now.'
      throw new Problem(503, 'PLATFORM_UNREACHABLE', detail, { headers: { 'retry-after': '2' } })
    },
    forget() {
      epoch += 1
    },
    keepInStep(everyMs) {
      let timer: NodeJS.Timeout
      let stopped = false
      const tick = async () => {
        await refresh().catch((error) => log.warn({ err: error }, 'the inventory was not synchronised'))
        if (!stopped) timer = setTimeout(tick, everyMs)
      }
      timer = setTimeout(tick, 0)
      return () => {
        stopped = true
        clearTimeout(timer)
      }
    },
  }
}
