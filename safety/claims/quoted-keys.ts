import { type Quoted, speaksOf, wordsOf } from './clause-words.ts'
import { denialWords, formsOf, isNothing, keyOf, subjectKeys } from './known-words.ts'
import { keyWords, matchesFigure } from './measure.ts'
import { type Figure, figuresIn, holdsMoment, valuesAt } from './numbers.ts'
import type { QuotePlace } from './quote.ts'
import { statesIn } from './states.ts'
import type { Clause } from './text.ts'
import { keyQualifiers, keySynonyms, noWords, valueWords, yesWords } from './word-tables.ts'

/** Checks that a claim repeats the key of a value that it quotes. */

const wordsIn = (text: string) => text.match(/\p{L}[\p{L}']*/gu) ?? []
const wordsOfKey = (place: QuotePlace) => keyWords([place.leaf.path.findLast((step) => !/^\d+$/.test(step)) ?? ''])
const withSynonyms = (words: readonly string[]) =>
  words.flatMap((word) => [word, ...(keySynonyms[word]?.split(' ') ?? [])])

/** Checks the value of a key: cache:timeout does not show "cache is ok". */
export function otherValue(clause: Clause, { places }: Quoted): string | null {
  const words = new Set(wordsOf(clause, [], []).flatMap(({ text }) => formsOf(text)))
  const says = (text: string) => wordsIn(text).some((word) => formsOf(word).some((form) => words.has(form)))
  const other = places.find((place) => {
    const { leaf, line } = place
    if (typeof leaf.value !== 'string' || subjectKeys.test(keyOf(place)) || !/\p{L}/u.test(line)) return false
    const isSpokenOf = wordsOfKey(place).some((word) => formsOf(word).some((form) => words.has(form)))
    return isSpokenOf && !isMoment(line) && !says(`${line} ${valueWords[line.trim()] ?? ''}`)
  })
  return other ? `row ${other.part.seq} says "${keyOf(other)}: ${other.line.slice(0, 80)}"` : null
}

const isMoment = (line: string) => /^\d{4}-\d{2}-\d{2}t[\d:.]+(?:z|[+-]\d{2}:\d{2})?$/.test(line)
const ofMoments = /^(?:at|time|timestamp|ts|date|on|of|read|logged|seen)$/

/** Checks the key of a time: upSince is not the time of the last backup. */
export function momentOfAnother(clause: Clause, { places }: Quoted): string | null {
  for (const moment of clause.moments) {
    const own = places.filter(({ line }) => isMoment(line) && holdsMoment(moment, line))
    if (own.length === 0 || places.some(({ line }) => !isMoment(line) && holdsMoment(moment, line))) continue
    const isOf = (place: QuotePlace) => {
      const specific = wordsOfKey(place).filter((word) => !ofMoments.test(word))
      return specific.length === 0 || speaksOf(clause, withSynonyms(specific))
    }
    if (!own.some(isOf)) return `row ${own[0]?.part.seq} says "${keyOf(own[0] as QuotePlace)}" of ${moment.text}`
  }
  return null
}

/** Checks a yes or no against its whole key: backupRunning does not show a degraded backup. */
export function halfOfKey(clause: Clause, { places }: Quoted): string | null {
  const half = places.find((place) => {
    if (typeof place.leaf.value !== 'boolean') return false
    const words = wordsOfKey(place).filter((word) => !/^(?:is|has|are|was|in|of|by)$/.test(word))
    const told = words.filter((word) =>
      speaksOf(clause, withSynonyms([word]).concat(yesWords[word]?.split(' ') ?? [], noWords[word]?.split(' ') ?? [])),
    )
    return told.length > 0 && told.length < words.length
  })
  return half ? `row ${half.part.seq} says "${keyOf(half)}"` : null
}

const isZero = ({ value }: Figure) => value === 0

/** Checks that 0 or "none" does not count as a number: errors:0 does not show "has errors". */
export function zeroAsSome(clause: Clause, { places }: Quoted): string | null {
  const figures = figuresIn(clause.text)
  // Refuses the 0 of a partial answer, because the missing part may add to the number.
  const ofPart = places.find(({ leaf, part }) => leaf.value === 0 && part.source === 'read' && !part.isWhole)
  if (ofPart) return `the result of row ${ofPart.part.seq} is cut`
  if (figures.some(isZero)) return null
  const words = wordsOf(clause, figures, []).filter(({ isDenied }) => !isDenied)
  const zero = places.find((place) => {
    if (!isNothing(place.leaf.value) || /^exit_?code$/.test(keyOf(place))) return false
    const own = withSynonyms(wordsOfKey(place)).flatMap(formsOf)
    return words.some(({ text }) => formsOf(text).some((form) => own.includes(form)))
  })
  return zero ? `row ${zero.part.seq} says "${keyOf(zero)}: ${zero.line}"` : null
}

const endings = ['exit', 'code', 'failed', 'failure', 'ended', 'status', 'succeeded']

/** Refuses an empty answer, or one of a program that failed, as evidence that something exists. */
export function emptyAsFull(clause: Clause, { places }: Quoted): string | null {
  if (places.length === 0 || denialWords.test(clause.text) || figuresIn(clause.text).some(isZero)) return null
  const isEmpty = ({ leaf }: QuotePlace) => leaf.value === 0 || (leaf.value === null && leaf.path.length > 0)
  const isEnded = (place: QuotePlace) => /^exit_?code$/.test(keyOf(place))
  if (!places.every((place) => isEmpty(place) || isEnded(place))) return null
  return places.some(isEnded) && speaksOf(clause, endings) ? null : 'the quote is an empty result'
}

/** Checks that a figure keeps the qualifier of its key: 50 failed requests are not 50 requests. */
export function qualifierLeftOut(clause: Clause, { places }: Quoted): string | null {
  const numbers = places.filter(({ leaf }) => typeof leaf.value === 'number')
  for (const figure of figuresIn(clause.text)) {
    const own = numbers.filter((place) =>
      valuesAt(place).some((value) => matchesFigure(figure, { ...value, from: value })),
    )
    const lacking = own.map((place) =>
      wordsOfKey(place).find((word) => {
        // Requires a percentile, such as p99, in the text.
        if (/^p\d{2,3}$/.test(word)) return !clause.raw.includes(word) && !/percentile/.test(clause.raw)
        const told = keyQualifiers[word]
        return told !== undefined && !speaksOf(clause, [word, ...told.split(' ')])
      }),
    )
    if (lacking.length > 0 && !lacking.includes(undefined)) return `the figure belongs to "${lacking[0]}" in its row`
  }
  return null
}

/** Matches keys whose value is true of the whole element. */
const ofWhole =
  /^(?:status|state|health|phase|condition|outcome|result|verdict|value|level|reason|message|detail|text|line|last|current|word|observed|active|sub|code|why|cause)$/

/** Checks to what a value belongs: disk:ok does not show that the node is ok. */
export function keyOfAnother(clause: Clause, { places }: Quoted): string | null {
  const states = places.filter((place) => {
    const { leaf, line } = place
    if (typeof leaf.value !== 'string' || leaf.lines.length > 1 || subjectKeys.test(keyOf(place))) return false
    if (leaf.path.includes('labels')) return false
    const isState = valueWords[line] !== undefined || statesIn(line).length > 0
    return isState && speaksOf(clause, [line, ...wordsIn(valueWords[line] ?? '')])
  })
  const isOwn = (place: QuotePlace) => {
    const specific = wordsOfKey(place).filter((word) => !ofWhole.test(word))
    return specific.length === 0 || speaksOf(clause, withSynonyms(specific))
  }
  const other = states.find((place) => !states.some((each) => each.line === place.line && isOwn(each)))
  return other ? `row ${other.part.seq} states this about "${keyOf(other)}"` : null
}
