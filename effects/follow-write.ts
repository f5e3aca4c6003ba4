import { setTimeout as sleep } from 'node:timers/promises'
import { HttpError } from '../clients/http.ts'
import { type PlatformClient, PlatformError } from '../clients/platform.ts'
import type { EffectAnswer } from '../domain/platform.ts'
import type { Ending } from './effect.ts'
import { toEnding } from './platform.ts'

/** Milliseconds for which an accepted write is followed; later a read by its key tells the end. */
const followForMs = 10 * 60_000

/**
 * Sends one write and follows the write to its end. Returns null if the outcome is unknown; the
 * outcome can then be read by the key. A platform's refusal (4xx) is a known failure; a missing
 * answer never is.
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
    // Keeps the last answer if a read gets no answer, because the write continues.
    answer = (await askPlatform(platform, key)) ?? answer
  }
  return answer ? toEnding(answer) : null
}

/**
 * Reads the platform's journal for a key; null if the platform does not know the key or cannot be
 * reached.
 */
async function askPlatform(platform: PlatformClient, key: string): Promise<EffectAnswer | null> {
  try {
    return await platform.effect(key)
  } catch (error) {
    if (error instanceof PlatformError || error instanceof HttpError) return null
    throw error
  }
}
