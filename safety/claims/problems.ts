import { quote } from '../ruling.ts'

/** Why a claim is not shown by what it cites. */
export const problems = {
  QUOTE_NOT_FOUND: 'Copy the words from the result of that row, or quote another row.',
  NO_READ: 'Quote a read of it (or send the claim as kind "did", quoting the write).',
  READ_BEFORE_WRITE: 'Look again after the last write and quote that row, or say how it was before (kind "was").',
  NOT_WRITTEN: 'Quote the finished write that did it, or leave it out.',
  WRITE_NOT_HELD: 'Say that it failed, or leave it out.',
  WRITE_HELD: 'Say what its verification says.',
  OTHER_RESOURCE: 'Quote a row about that resource.',
  OTHER_DIRECTION: 'Say where it came from and where it went as the row does.',
  STATE_NOT_SHOWN: 'Quote the words or the field that say so of that resource.',
  NOT_ALL: 'Quote each of them, or say how many.',
  NUMBER_NOT_SHOWN: 'Quote the number with its field, and say it in its unit; about allows 5 %.',
  TIME_NOT_SHOWN: 'Quote the row that gives that time.',
  STILL_THERE: 'Look again, or say that it is there.',
  CUT: 'Read the rest, or a narrower range that is answered whole, and cite that row.',
  NOT_ASKED: 'Cite a row that asked for it, answered without an error.',
  NOT_ABSENT:
    'An absent claim says what is not there, and quotes those words; put the rest into a claim of another kind.',
} as const satisfies Record<string, string>
export type ProblemCode = keyof typeof problems

/** The first thing about a claim that its evidence does not show: a closed word, a sentence, and what would help. */
export type Problem = { code: ProblemCode; why: string; remedy: string }

export function problem(code: ProblemCode, why: string): Problem {
  return { code, why, remedy: problems[code] }
}

/** A piece of the claim in a sentence, inert and short. */
export const said = (text: string) => quote(text.trim())
