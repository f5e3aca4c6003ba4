import { setTimeout as sleep } from 'node:timers/promises'
import { HttpError } from '../clients/http.ts'
import { type PlatformClient, PlatformError } from '../clients/platform.ts'
import type { EffectAnswer } from '../domain/platform.ts'
import type { Ending } from './effect.ts'
import { toEnding } from './platform.ts'

/** A write that the platform accepted is followed this long; after that its key answers. */
const followForMs = 10 * 60_000

/**
 * Sends one write and follows it to its end. Null: its outcome is unknown; ask by its key. A
 * platform's refusal (4xx) is a known failure; silence never is.
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

/** The platform's journal on a key; null when it does not know it or cannot be asked. */
async function askPlatform(platform: PlatformClient, key: string): Promise<EffectAnswer | null> {
  try {
    return await platform.effect(key)
  } catch (error) {
    if (error instanceof PlatformError || error instanceof HttpError) return null
    throw error
  }
}
