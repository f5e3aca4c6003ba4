import type { Finding } from './verdict.ts'

/**
 * What judging one text may cost: a budget that everything shares which the text unwraps to. Texts hold texts (an interpreter in a
 * here-document in a shell), and some hold themselves more than once: without a common budget 20 words cost 2^20 looks.
 */
export type Work = { left: number; spent: number }

/**
 * A step is about one character that was looked at. The forty layers that a text may have cost forty looks at each character: more than
 * that takes a text that holds itself several times.
 */
export const stepsPerCharacter = 48
export const stepsForAnyText = 20_000

export function newWork(length: number): Work {
  return { left: stepsForAnyText + stepsPerCharacter * length, spent: 0 }
}

/** Takes steps; false once the budget is spent, and whatever is left unread has to be asked about. */
export function takeSteps(work: Work, steps: number): boolean {
  if (work.left < steps) {
    work.left = 0
    return false
  }
  work.left -= steps
  work.spent += steps
  return true
}

export const tooComplex: Finding = {
  code: 'TOO_COMPLEX',
  reason: 'holds commands inside one another in more ways than can be looked through: write it plainly',
  token: null,
}
