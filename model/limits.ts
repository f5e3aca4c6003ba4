import { callsPerAnswer } from './transcript.ts'

/**
 * A run's limits in the words at its first message's end. `at`: when its context was gathered, ISO
 * 8601.
 */
export function describeLimits(
  { turns, tokens, seconds }: { turns: number; tokens: number; seconds: number },
  { isSingle, at }: { isSingle: boolean; at: string | null },
): string {
  const calls = isSingle ? 'one call each' : `up to ${callsPerAnswer} calls each, run in their order`
  const time = Number.isFinite(seconds) ? ` and ${seconds} s of work` : ''
  const now = at ? ` It is ${at.slice(0, 19)}Z; meta.at and meta.budget of results say how time and limits go on.` : ''
  return `You have ${turns} turns of ${calls}, ${tokens} tokens${time}.${now} An alert may end some minutes after a repair: a verification that held is enough.`
}
