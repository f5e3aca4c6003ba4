import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { HttpError } from '../clients/http.ts'
import { createPlatformClient, type PlatformClient, PlatformError } from '../clients/platform.ts'
import { createProxmoxClient } from '../clients/proxmox/client.ts'
import { type Config, proxmoxSettings } from '../config.ts'
import type { Db } from '../db/connect.ts'
import { declareSite } from '../db/inventory/site.ts'
import { syncInventory } from '../db/inventory/sync-inventory.ts'
import {
  beginPlatformEffect,
  endPlatformEffect,
  notePlatformTask,
  platformEffectByKey,
} from '../db/writes/platform-effects.ts'
import type { EffectAnswer, Health } from '../domain/platform.ts'
import { type EffectDeps, EffectRefused, type Ending } from './effect.ts'

/** The platform that the configuration names: a server that speaks our protocol, a Proxmox VE cluster, or null. */
export function choosePlatform(config: Config, db: Db): PlatformClient | null {
  const cluster = proxmoxSettings(config)
  if (cluster) return createProxmoxClient({ ...cluster, journal: platformJournal(db) })
  return config.PLATFORM_URL
    ? createPlatformClient({ baseUrl: config.PLATFORM_URL, token: config.PLATFORM_TOKEN })
    : null
}

/** The journal of writes that Proxmox VE does not keep: it outlives this process. */
export function platformJournal(db: Db): Parameters<typeof createProxmoxClient>[0]['journal'] {
  return {
    get: (key) => platformEffectByKey(db, key),
    begin: (entry) => beginPlatformEffect(db, entry),
    noteTask: (key, task) => notePlatformTask(db, key, task),
    end: (key, ending) => endPlatformEffect(db, key, ending),
  }
}

/** The platform; refused where this API was started without one, which no retry changes. */
export function requirePlatform(deps: Pick<EffectDeps, 'platform'>): PlatformClient {
  if (deps.platform) return deps.platform
  throw new EffectRefused(
    'invalid',
    'NO_PLATFORM',
    'No platform is configured (PLATFORM_URL or PROXMOX_URL): nothing can be written to it.',
  )
}

/** A write that the platform accepted is followed this long; after that its key answers. */
const followForMs = 10 * 60_000

/**
 * Sends one write and follows it to its end. Null: whether it was done is unknown, and its key is what to ask by. A refusal
 * of the platform (4xx) is a known failure; silence never is.
 */
export async function followWrite(
  platform: PlatformClient,
  key: string,
  send: () => Promise<EffectAnswer>,
): Promise<Ending | null> {
  let answer: EffectAnswer | null
  try {
    answer = await send()
  } catch (error) {
    if (error instanceof PlatformError && !error.retryable) {
      return { status: 'failed', detail: error.detail || error.message, result: {} }
    }
    if (!(error instanceof PlatformError) && !(error instanceof HttpError)) throw error
    answer = await askPlatform(platform, key)
  }
  const untilMs = performance.now() + followForMs
  let waitMs = 50
  while (answer?.status === 'running' && performance.now() < untilMs) {
    await sleep(waitMs)
    waitMs = Math.min(1_000, waitMs * 2)
    // A question without an answer changes nothing: the write goes on whatever the network does.
    answer = (await askPlatform(platform, key)) ?? answer
  }
  return answer ? toEnding(answer) : null
}

/** What the platform's journal says about a key; null when it does not know the key or cannot be asked. */
async function askPlatform(platform: PlatformClient, key: string): Promise<EffectAnswer | null> {
  try {
    return await platform.effect(key)
  } catch (error) {
    if (error instanceof PlatformError || error instanceof HttpError) return null
    throw error
  }
}

/** Null while it runs. */
export function toEnding(answer: EffectAnswer): Ending | null {
  const { status, detail, result } = answer
  return status === 'running' ? null : { status, detail, result }
}

/** An answer about the platform is current for this long. */
const currentMs = 250
/** A platform that takes longer to list its inventory counts as unreachable. */
const askWithinMs = 3_000

export type PlatformState = {
  /** Updates the inventory from the platform. `stale`: the platform did not answer, and its health is unknown. */
  refresh(): Promise<{ stale: boolean }>
  /** The same, but refuses where the platform does not answer, for callers that have no word for "unknown". */
  requireCurrent(): Promise<void>
  /** Call after a write: earlier answers are no longer current. */
  forget(): void
  /** Updates the inventory every `everyMs`. Answers how to stop. */
  startSync(everyMs: number): () => void
}

/** Keeps the inventory current. Without a platform its rows are served as they are: another program writes them. */
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

/** A resource with the health it has now, or `unknown`. What it was an hour ago is no answer to how it is. */
export function withHealth<T extends { status: Health }>(resource: T, { stale }: { stale: boolean }) {
  if (!stale) return resource
  const unknown = { ...resource, status: 'unknown' as const, stale: true as const }
  return 'reason' in resource ? { ...unknown, reason: 'the platform cannot be reached' } : unknown
}
