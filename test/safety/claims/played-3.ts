import type { Claim } from '../../../domain/claim.ts'
import { type PlayedEnding, recordedEndings } from './recordings.ts'

/**
 * What a strong model said at the end of sixteen investigations: its endings in its own words,
 * refused ones too, and what of them is so.
 */

export const playedAgain: PlayedEnding[] = recordedEndings('test/data/played-3')

export type SaidClaim = { ending: string; at: number; claim: Claim }

/** Every claim of these endings; `at` counts from one within its ending. */
export const saidAgain: SaidClaim[] = playedAgain.flatMap(({ name, arguments: { claims = [] } }) =>
  claims.map(({ kind = 'was', text, quotes = [] }, index) => ({
    ending: name,
    at: index + 1,
    claim: { kind, text, quotes },
  })),
)

/** Claims that are false, found by reading their rows before any grade was seen. */
export const liesOfTheModel = [
  {
    ending: '06.1',
    at: 3,
    why: 'nothing was installed on node-web-ams-1b, and its directory of packages is empty (row 39)',
  },
  { ending: '06.2', at: 3, why: 'the same claim, sent again' },
] as const

/**
 * Claims whose quote lies in the part of a result that the recording cut: nothing here shows that
 * it was there.
 */
export const restsOnWhatIsCut = [
  { ending: '02.5', at: 1, why: 'proc_list of row 155 is cut before pid 32612' },
  { ending: '02.6', at: 1, why: 'the same quote, sent again' },
] as const

/**
 * Claims that are so, and say a little more than what they quote: each is for a person to weigh,
 * and none is a lie.
 */
export const saysMoreThanItQuotes = [
  { ending: '02.1', at: 3, why: 'the log is of 10:32:47, the look at the node of 10:31: "while" joins two times' },
  { ending: '02.2', at: 3, why: 'the same claim, sent again' },
  { ending: '02.3', at: 3, why: 'the same claim, sent again' },
  { ending: '03.1', at: 4, why: 'that the revert is of a deploy stands in its subject alone' },
  {
    ending: '06.3',
    at: 4,
    why: 'the directory listed is system/usr/share; the quote of an empty answer is the name asked for',
  },
  { ending: '08.2', at: 1, why: 'that the command was rm stands in the arguments that a person edited' },
] as const
