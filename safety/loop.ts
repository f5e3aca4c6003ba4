import { actionDigest } from '../domain/digest.ts'
import type { State } from './fold.ts'
import { type Call, type Rule, refuse } from './ruling.ts'

/** So many refusals for going round in circles end an attempt: each of them was a correction already. */
export const loopLimit = 3

const digestOf = ({ tool, arguments: args }: Pick<Call, 'tool' | 'arguments'>) => actionDigest(tool, args ?? {})

/** The same call again, or two calls in turns. Judging one call anew, as after an approval, is no repetition. */
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
  const [a, b, c] = before.slice(-3)
  if (before.length >= 3 && a === c && b === digest) {
    return refuse(
      'ALTERNATING_CALLS',
      `${call.tool} and the call before it were made in turns, twice`,
      'Nothing changes by asking again. Look at something else, act, or escalate.',
    )
  }
  return null
}
