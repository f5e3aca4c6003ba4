import type { Logger } from 'pino'
import type { PlatformClient } from '../clients/platform.ts'
import type { Db } from '../db/connect.ts'
import { declareSite } from '../db/inventory/site.ts'
import { syncInventory } from '../db/inventory/sync-inventory.ts'
import type { Health } from '../domain/platform.ts'
import { EffectRefused } from './effect.ts'

/** An answer about the platform is current for this long. */
const currentMs = 250

/** A platform that takes longer to list its inventory counts as unreachable. */
const askWithinMs = 3_000

export type PlatformState = {
  /** Updates the inventory from the platform. `stale`: no answer, and health is unknown. */
  refresh(): Promise<{ stale: boolean }>
  /** The same, but refuses without an answer, for callers without a word for "unknown". */
  requireCurrent(): Promise<void>
  /** Call after a write: earlier answers are no longer current. */
  forget(): void
  /** Updates the inventory every `everyMs`. Answers how to stop. */
  startSync(everyMs: number): () => void
}

/**
 * Keeps the inventory current. Without a platform its rows are served as they are: another program
 * writes them.
 */
export function createPlatformState(db: Db, platform: PlatformClient | null, log: Logger): PlatformState {
  let epoch = 0
  let known: { epoch: number; untilMs: number; stale: boolean } | null = null
  let asking: { epoch: number; answer: Promise<{ stale: boolean }> } | null = null

  async function ask(port: PlatformClient, askedEpoch: number): Promise<{ stale: boolean }> {
    let stale = false
    try {
      const inventory = await port.inventory(AbortSignal.timeout(askWithinMs))
      // An answer from before a write must not overwrite one from after it.
      if (askedEpoch === epoch) await syncInventory(db, inventory)
    } catch (error) {
      stale = true
      if (!known?.stale) log.warn({ err: error }, 'the platform could not be asked: its health is unknown')
    }
    if (known?.stale && !stale) log.info('the platform answers again')
    known = { epoch: askedEpoch, untilMs: performance.now() + currentMs, stale }
    return { stale }
  }

  async function refresh(): Promise<{ stale: boolean }> {
    if (!platform) return { stale: false }
    for (;;) {
      if (known && known.epoch === epoch && performance.now() < known.untilMs) return { stale: known.stale }
      if (asking?.epoch !== epoch) {
        const askedEpoch = epoch
        const answer = ask(platform, askedEpoch).finally(() => {
          if (asking?.epoch === askedEpoch) asking = null
        })
        asking = { epoch: askedEpoch, answer }
      }
      const { epoch: askedEpoch, answer } = asking
      const { stale } = await answer
      // After a write in between, the answer was not stored: the rows may be older than both.
      if (stale || askedEpoch === epoch) return { stale }
    }
  }

  return {
    refresh,
    async requireCurrent() {
      if (!(await refresh()).stale) return
      const detail = 'The platform cannot be reached, and what was true before may not be true now.'
      throw new EffectRefused('unavailable', 'PLATFORM_UNREACHABLE', detail, { retryAfterSeconds: 2 })
    },
    forget() {
      epoch += 1
    },
    startSync(everyMs) {
      let timer: NodeJS.Timeout
      let stopped = false
      const update = async () => {
        if (platform) await refresh()
        // Nobody is asked: what is stored reaches the registry, whichever version stored it.
        else await db.transaction().execute(declareSite)
      }
      const tick = async () => {
        await update().catch((error) => log.warn({ err: error }, 'the inventory was not synchronised'))
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

/** A resource with its health now, or `unknown`. An hour-old one is no answer. */
export function withHealth<T extends { status: Health }>(resource: T, { stale }: { stale: boolean }) {
  if (!stale) return resource
  const unknown = { ...resource, status: 'unknown' as const, stale: true as const }
  return 'reason' in resource ? { ...unknown, reason: 'the platform cannot be reached' } : unknown
}
