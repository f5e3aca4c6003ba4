import type { Claim } from '../../domain/claim.ts'
import type { Action } from './actions.ts'
import { denialWords, formsOf } from './known-words.ts'
import type { Figure } from './numbers.ts'
import type { QuotePlace } from './quote.ts'
import type { ClaimEvidence } from './rows.ts'
import type { Clause } from './text.ts'
import { neutral } from './word-tables.ts'

/** Input of a rule for grade A: the claim, its clauses, and the places of its quotes. */
export type Quoted = {
  claim: Claim
  clauses: readonly Clause[]
  places: readonly QuotePlace[]
  evidence: ClaimEvidence
}

type Word = { text: string; isDenied: boolean }

/** Words that make a figure approximate or weaken a state: "nearly degraded" is not degraded. */
const hedges = '(?:about|around|roughly|approximately|approx\\.?|nearly|almost|circa|just|some)'
const beforeFigure = new RegExp(`${hedges}\\s+$`)
const beforeShare = new RegExp(`${hedges}\\s+(?=(?:an? |one )?(?:third|quarter|fifth|tenth|whole|half|all)\\b)`, 'g')

/** Lists the meaningful words of a clause, without names, times, figures and verified verbs. */
export function wordsOf(clause: Clause, figures: readonly Figure[], actions: readonly Action[]): Word[] {
  let text = clause.text.replace(beforeShare, (found) => ' '.repeat(found.length))
  for (const { at, end, unit, isWord } of figures.toReversed()) {
    const before = text.slice(0, at).replace(beforeFigure, (found) => ' '.repeat(found.length))
    const behind = text.slice(end)
    const unitLength = unit ? (/^[ -]?(?:%|°?[a-zµ]+)/.exec(behind)?.[0].length ?? 0) : 0
    if (!isWord || unit) text = `${before} ${' '.repeat(unitLength)}${text.slice(end + unitLength)}`
    else text = `${before} ${text.slice(end)}`
  }
  const deniedFrom = denialWords.exec(text)?.index ?? Number.POSITIVE_INFINITY
  const verbs = new Set(actions.map(({ verb }) => verb))
  return [...text.matchAll(/\p{L}[\p{L}']*/gu)].flatMap((match) => {
    const word = match[0].replace(/'s?$/, '')
    if (neutral.has(word) || denialWords.test(word) || word.length < 2 || verbs.has(word)) return []
    return [{ text: word, isDenied: match.index > deniedFrom }]
  })
}

/** Whether the clause contains one of these words, in any form. */
export function speaksOf(clause: Clause, words: readonly string[]): boolean {
  const spoken = new Set(wordsIn(clause.raw).flatMap(formsOf))
  return words.some((word) => formsOf(word).some((form) => spoken.has(form)))
}

const wordsIn = (text: string) => text.match(/\p{L}[\p{L}']*/gu) ?? []
