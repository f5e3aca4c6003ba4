import { actionDigest } from '../domain/digest.ts'
import type { State } from './fold.ts'
import { type Call, type Rule, refuse } from './ruling.ts'

/** So many refusals for going round in circles end an attempt: each of them was a correction already. */
export const loopLimit = 3

const digestOf = ({ tool, arguments: args }: Pick<Call, 'tool' | 'arguments'>) => actionDigest(tool, args ?? {})

/** A round of more calls than this is a way of working, not a loop. */
const longestRound = 4

/**
 * The same call again, or the same round of up to four calls a second time. Judging one call again, as after an approval, is no
 * repetition.
 */
export function loopRule(call: Call, state: State): Rule | null {
  const digest = digestOf(call)
  const before = state.recent.filter(({ callId }) => callId !== call.callId).map(digestOf)
  if (before.at(-1) === digest) {
    return refuse(
      'REPEATED_CALL',
      `${call.tool} was called with these arguments just before`,
      'Use the result you have, look at something else, or escalate.',
    )
  }
  const round = roundOf([...before, digest])
  if (round !== null) {
    return refuse(
      'ALTERNATING_CALLS',
      `the same ${round} calls were made in the same order twice, ${call.tool} the last of them`,
      'Nothing changes by asking again. Look at something else, act, or escalate.',
    )
  }
  return null
}

/** How many calls the round has that just ended for the second time; null when none did. */
function roundOf(digests: readonly string[]): number | null {
  for (let length = 2; length <= longestRound; length += 1) {
    if (digests.length < 2 * length) return null
    const second = digests.slice(-length)
    const first = digests.slice(-2 * length, -length)
    if (second.every((digest, at) => digest === first[at])) return length
  }
  return null
}
