import { actionDigest } from '../domain/digest.ts'
import { phaseOf, type State } from './fold.ts'
import { type Call, type Rule, refuse } from './ruling.ts'

/** Bytes of tool results in one attempt, enough for a thousand pages: more is a flood, or somebody filling a disk. */
export const byteBudget = 32 * 1024 * 1024

export type Budgets = { turns: number; tokens: number; seconds: number }

type Budget = 'turns' | 'tokens' | 'time' | 'bytes'

/** The budget that is used up, if one is. Turns and time are the loop's own to count. */
export function spentBudget(state: State, budgets: Budgets): 'tokens' | 'bytes' | null {
  if (state.tokens >= budgets.tokens) return 'tokens'
  return state.bytes >= byteBudget ? 'bytes' : null
}

/**
 * The word to say before a limit ends the run, once for each: a model that knows hands over with what it found instead of
 * being cut off. Null while there is room, or when it was said.
 */
export function nearBudget(state: State, turn: number, budgets: Budgets): { code: string; text: string } | null {
  const near: [Budget, boolean, string][] = [
    ['turns', turn >= budgets.turns && budgets.turns > 1, 'This is your last turn.'],
    ['tokens', state.tokens >= 0.85 * budgets.tokens, 'Your token budget is nearly used up.'],
    ['time', state.workedMs >= 850 * budgets.seconds, 'Your time is nearly used up.'],
    ['bytes', state.bytes >= 0.85 * byteBudget, 'You have read nearly as much as an investigation may.'],
  ]
  for (const [budget, isNear, text] of near) {
    const code = `budget_${budget}`
    if (isNear && !state.corrected.has(code)) return { code, text: `${text} ${advice(state)}` }
  }
  return null
}

function advice(state: State): string {
  return phaseOf(state) === 'VERIFYING'
    ? 'Your write is not verified: call escalate_incident now with what you found.'
    : 'Call resolve_incident with evidence, or escalate_incident with what you found, now.'
}

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
