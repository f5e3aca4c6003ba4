import { setTimeout as sleep } from 'node:timers/promises'
import { HttpError } from '../clients/http.ts'
import { type PlatformClient, PlatformError } from '../clients/platform.ts'
import type { EffectAnswer } from '../domain/platform.ts'

export type Ending = { status: 'done' | 'failed'; detail: string; result: Record<string, unknown> }

/** How long a write that the platform accepted is followed before it is left to whoever asks for its key. */
const followForMs = 10 * 60_000

/**
 * Sends one write and follows it to its end. Null: it cannot be told whether it was done, and its key is what to ask by. A
 * no of the platform (4xx) is a failure that is known; silence never is.
 */
export async function platformEnding(
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
    // One unanswered question is not an answer: the write goes on whatever the network does.
    answer = (await askPlatform(platform, key)) ?? answer
  }
  return answer ? endingOf(answer) : null
}

/** What the platform's journal says about a key; null when it cannot be told or was never accepted. */
async function askPlatform(platform: PlatformClient, key: string): Promise<EffectAnswer | null> {
  try {
    return await platform.effect(key)
  } catch (error) {
    if (error instanceof PlatformError || error instanceof HttpError) return null
    throw error
  }
}

export function endingOf(answer: EffectAnswer): Ending | null {
  const { status, detail, result } = answer
  return status === 'running' ? null : { status, detail, result }
}
