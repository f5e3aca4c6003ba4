import { callsPerAnswer } from './transcript.ts'

/**
 * Describes a run's limits for the model's first message. `at`: when the context was gathered, ISO
 * 8601.
 */
export function describeLimits(
  { turns, tokens, seconds }: { turns: number; tokens: number; seconds: number },
  { isSingle, at }: { isSingle: boolean; at: string | null },
): string {
  const calls = isSingle ? 'one call each' : `up to ${callsPerAnswer} calls each`
  const time = Number.isFinite(seconds) ? ` and ${seconds} s of work` : ''
  const now = at ? ` Time: ${at.slice(0, 19)}Z; meta.at and meta.budget have later values.` : ''
  return `You have ${turns} turns of ${calls}, ${tokens} tokens${time}.${now}`
}
