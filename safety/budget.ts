import { phaseOf, type State } from './fold.ts'

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
