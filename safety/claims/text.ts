import { type Name, namesIn } from './actions.ts'
import { momentsIn, type QuotedMoment, references } from './numbers.ts'
import { statesIn } from './states.ts'

/**
 * A piece of a claim with one statement. `§` masks names and `¤` masks times, so that they are not
 * read as words or numbers.
 */
export type Clause = {
  text: string
  /** The original text in lower case. */
  raw: string
  start: number
  /** Groups of names that are side by side: "a and b are nominal". */
  groups: Name[][]
  /** Names of earlier clauses, for a clause without names: "it", "they", "is no longer listed". */
  carried: Name[]
  moments: QuotedMoment[]
  tense: 'present' | 'past' | null
  /** Whether the clause is a recommendation, which no row can show. */
  isAdvice: boolean
  isAfterColon: boolean
  /**
   * Whether the clause begins a sentence: a verb at its beginning is then an act of this
   * investigation.
   */
  isFirst: boolean
}

const separators =
  /[.;:!?](?=\s|$)|,(?=\s)|\s(?:and|but|while|because|so|which|then|whereas|since|although|though|after which)\s|\s[–—-]\s|[()]|\n/gi
const joiners = /^(?:\s*,?\s*(?:and|or|&|\/|,)?\s*(?:the |on |host |node |vm |vms |nodes |hosts )?)$/i
const present =
  /\b(?:is|are|isn't|aren't|now|currently|again|still|no longer|any ?more|remains?|stays?|at the moment|runs|holds at|stands at|uses)\b/
const past = /\b(?:was|were|had|did|went|ran|held|used|said|wasn't|weren't|before|earlier|at first|when it fired)\b/
const carrying =
  /^\s*(?:(?:and|but|then|so) )?(?:it|its|they|their|this|that|these|those|(?:both|all|each)(?= (?:is|are|was|were|of them)\b)|is|are|was|were|has|have|had|no longer|now|again|not|still|answers|runs|held|holds|uses|used|in|at|on|since|with|down|up|¤|[\d~≈]|about|around|over|only)\b/
const advice =
  /\b(?:should|must|need(?:s|ed)?(?: from| to| a)?|follow[- ]?up|recommend\w*|suggest\w*|consider|please|would|could|might|may|if|unless|until|whether|ask|find out|look for|treat|raise|decide|will|shall|to be|going to|next|not known|unknown|unclear|perhaps|probably|likely|possibly|somebody|someone|worth)\b/

export function clausesOf(text: string, known: readonly string[]): Clause[] {
  // Reads an arrow as a word, except within quoted words.
  const plain = text.replace(/[’‘]/g, "'").replace(/"[^"\n]*"|->|→/g, (found) => (found[0] === '"' ? found : 'to'))
  const moments = momentsIn(plain)
  const names = namesIn(plain, known).filter(
    (name) => !moments.some(({ at, text: moment }) => at < name.end && at + moment.length > name.start),
  )
  const groups = grouped(plain, names)
  const marked = mask(
    mask(
      plain,
      names.map(({ start, end }) => [start, end]),
      '§',
    ),
    moments.map(({ at, text: moment }) => [at, at + moment.length]),
    '¤',
  )
  const masked = marked.replace(references, (found) => ' '.repeat(found.length))
  const clauses: Clause[] = []
  let isAdvice = false
  for (const [start, end, isNewSentence, isAfterColon] of cuts(masked, groups)) {
    const piece = masked.slice(start, end).toLowerCase()
    if (!/[\p{L}\p{N}§¤]/u.test(piece)) continue
    const before = clauses.at(-1)
    const own = groups.filter((group) => (group[0] as Name).start >= start && (group[0] as Name).start < end)
    if (isNewSentence) isAdvice = false
    isAdvice ||= advice.test(piece)
    clauses.push({
      text: piece,
      raw: plain.slice(start, end).toLowerCase(),
      start,
      groups: own,
      carried: own.length === 0 && before && carries(piece, isNewSentence) ? (before.groups[0] ?? before.carried) : [],
      moments: moments.filter(({ at }) => at >= start && at < end),
      tense: tenseOf(piece),
      isAdvice,
      isAfterColon,
      isFirst: isNewSentence,
    })
  }
  return clauses
}

/** Whether a clause keeps the last clause's subject: it begins with a pronoun, verb or state. */
function carries(piece: string, isNewSentence: boolean): boolean {
  if (isNewSentence) return /^\s*(?:it|its|they|their|both|this|that)\b/.test(piece)
  const [first] = statesIn(piece)
  return carrying.test(piece) || (first !== undefined && piece.slice(0, first.at).trim() === '')
}

function tenseOf(piece: string): Clause['tense'] {
  if (past.test(piece)) return 'past'
  return present.test(piece) ? 'present' : null
}

function grouped(text: string, names: readonly Name[]): Name[][] {
  const groups: Name[][] = []
  for (const name of names) {
    const last = groups.at(-1)?.at(-1)
    if (last && joiners.test(text.slice(last.end, name.start)) && text.slice(last.end, name.start).trim() !== '')
      groups.at(-1)?.push(name)
    else groups.push([name])
  }
  return groups
}

function mask(text: string, spans: [number, number][], by: string): string {
  let masked = text
  for (const [start, end] of spans) masked = masked.slice(0, start) + by.repeat(end - start) + masked.slice(end)
  return masked
}

/** Finds where clauses begin and end. Never cuts within a group of names. */
function cuts(masked: string, groups: Name[][]): [number, number, boolean, boolean][] {
  const found: [number, number, boolean, boolean][] = []
  let start = 0
  let isNewSentence = true
  let isAfterColon = false
  for (const match of masked.matchAll(separators)) {
    const at = match.index
    if (groups.some((group) => (group[0] as Name).start < at && at < (group.at(-1) as Name).end)) continue
    found.push([start, at, isNewSentence, isAfterColon])
    start = at + match[0].length
    isNewSentence = /[.!?\n]/.test(match[0])
    isAfterColon = match[0] === ':' || (isAfterColon && !isNewSentence)
  }
  found.push([start, masked.length, isNewSentence, isAfterColon])
  return found
}
