import type { Logger } from 'pino'
import type { PlatformClient } from '../clients/platform.ts'
import type { Db } from '../db/connect.ts'
import { declareSite } from '../db/inventory/site.ts'
import { syncInventory } from '../db/inventory/sync-inventory.ts'
import type { Health } from '../domain/platform.ts'
import { EffectRefused } from './effect.ts'

/** Milliseconds for which an answer of the platform counts as current. */
const currentMs = 250

/** Milliseconds after which a platform counts as unreachable if it does not list its inventory. */
const askWithinMs = 3_000

export type PlatformState = {
  /**
   * Updates the inventory from the platform. `stale`: the platform did not answer, so health is
   * unknown.
   */
  refresh(): Promise<{ stale: boolean }>
  /**
   * Updates the inventory, and refuses if the platform does not answer, for callers that cannot
   * express "unknown".
   */
  requireCurrent(): Promise<void>
  /** Declares that earlier answers are no longer current. Must be called after a write. */
  forget(): void
  /** Updates the inventory every `everyMs`. Returns a function that stops the updates. */
  startSync(everyMs: number): () => void
}

/**
 * Keeps the inventory current. Without a platform, the stored rows are served unchanged, because
 * another program writes them.
 */
export function createPlatformState(db: Db, platform: PlatformClient | null, log: Logger): PlatformState {
  let epoch = 0
  let known: { epoch: number; untilMs: number; stale: boolean } | null = null
  let asking: { epoch: number; answer: Promise<{ stale: boolean }> } | null = null

  async function ask(port: PlatformClient, askedEpoch: number): Promise<{ stale: boolean }> {
    let stale = false
    try {
      const inventory = await port.inventory(AbortSignal.timeout(askWithinMs))
      // Drops an answer to a read that began before a write: rows from after the write must stay.
      if (askedEpoch === epoch) await syncInventory(db, inventory)
    } catch (error) {
      stale = true
      if (!known?.stale)
        log.warn({ err: error }, 'the platform does not answer, so the health of its resources is unknown')
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
      // Reads again if a write came during the read: the answer was not stored, so the rows may be
      // older than the write.
      if (stale || askedEpoch === epoch) return { stale }
    }
  }

  return {
    refresh,
    async requireCurrent() {
      if (!(await refresh()).stale) return
      const detail = 'The platform cannot be reached, so its last known state may be out of date.'
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
        // Declares the stored rows in the registry if there is no platform, whichever version
        // stored the rows.
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

/**
 * Returns a resource with its health, which is `unknown` if the platform cannot be read: an old
 * health says nothing about now.
 */
export function withHealth<T extends { status: Health }>(resource: T, { stale }: { stale: boolean }) {
  if (!stale) return resource
  const unknown = { ...resource, status: 'unknown' as const, stale: true as const }
  return 'reason' in resource ? { ...unknown, reason: 'the platform cannot be reached' } : unknown
}
