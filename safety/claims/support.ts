import { holdsName, type Name } from './actions.ts'
import { numbersProblem } from './number-support.ts'
import { figuresIn, holdsMoment } from './numbers.ts'
import { type Place, type Problem, problem, said } from './quote.ts'
import type { Evidence } from './rows.ts'
import { statesIn, statesProblem } from './states.ts'
import type { Clause } from './text.ts'

/** Do these places, quoted by the claim, show the states, numbers and times of a clause? The first that they do not. */
export function unsupported(clause: Clause, places: readonly Place[], isLoose: boolean, shown = ''): Problem | null {
  return (
    statesProblem(clause, places, isLoose, shown) ??
    numbersProblem(clause, places, isLoose) ??
    timesProblem(clause, places)
  )
}

function timesProblem(clause: Clause, places: readonly Place[]): Problem | null {
  for (const moment of clause.moments) {
    if (places.some(({ line, part }) => holdsMoment(moment, line) || holdsMoment(moment, part.at))) continue
    return problem('TIME_NOT_SHOWN', `no quote gives the time ${said(moment.text)}`)
  }
  return null
}

/** Words that say nothing by themselves, or say what no quote has to: of grammar, of kinds of things, of judging. */
const small = new Set(
  'about above after again against alert alerts also although another answer answers anything because been before being below between both cause caused causes claim could does done down during each either enough even every from gives have having here holds host incident into itself just less made make many more most much neither node nodes nothing now only other others over result results same seen service services shard shows show since some something still such than that their them then there these they thing this those through time times today under until very were what when where which while whole whose will with without would your read reads said says'.split(
    ' ',
  ),
)

/** What is said not to be stands in no quote. */
const denied = /\b(?:no|not|never|without|neither|nor|cannot|\w+n't)(?: [a-z'-]+){1,3}/g

/** The words of a claim that a reader takes something from: names and times are masked in the clauses. */
function contentWords(clauses: readonly Clause[]): string[] {
  const all = clauses.flatMap(
    ({ text }) => text.replace(denied, ' ').match(/(?<![\w./-])[a-z][a-z']{3,}(?![\w/-])/g) ?? [],
  )
  return [...new Set(all.filter((word) => !small.has(word)))]
}

const stemOf = (word: string) => word.replace(/(?:'s|ing|ed|es|s|ly)$/, '').slice(0, 6)

/** Does anything else of a clause have to stand in its quotes: a state, a number, a time, quoted words, an id? Small ones stand anywhere. */
function isHeldOtherwise({ text, groups, moments }: Clause): boolean {
  const isExact = groups
    .flat()
    .some(({ kind, text: own }) => kind === 'id' || (kind === 'literal' && !/^[a-z]{1,4}$/i.test(own)))
  const hasFigure = figuresIn(text).some(({ value }) => value >= 10 || !Number.isInteger(value))
  return isExact || hasFigure || moments.length > 0 || statesIn(text).length > 0
}

/** A line of a page or of a log: an element of a list that is a text, and no field of a thing. */
function isLine({ part, item, leaf }: Place): boolean {
  if (item.list === null || typeof leaf.value !== 'string') return false
  return part.document().leaves.filter((each) => each.item === item).length === 1
}

/**
 * A claim about lines of text that nothing else holds against its quotes has to speak of them: half of its words at least stand there, and
 * not only in names. What a field says needs no words of the claim.
 */
export function unspoken(clauses: readonly Clause[], places: readonly Place[]): Problem | null {
  if (!places.every(isLine) || clauses.some(isHeldOtherwise)) return null
  const words = contentWords(clauses)
  const quoted = places.map(({ about, line, part }) => `${about} ${line} ${part.head}`).join(' ')
  const known = new Set((quoted.match(/(?<![\w./-])[a-z][a-z']{2,}(?![\w/-])/g) ?? []).map(stemOf))
  const strange = words.filter((word) => !known.has(stemOf(word)))
  if (words.length === 0 || strange.length * 2 <= words.length) return null
  return problem('NOT_SPOKEN_OF', `what it quotes does not speak of ${said(strange.slice(0, 5).join(', '))}`)
}

/** Names of a clause that nothing quoted is about. */
export function unnamed(clause: Clause, places: readonly Place[], evidence: Evidence): Problem | null {
  for (const name of clause.groups.flat()) {
    if (holdsName(evidence.incidentId, name.text)) continue
    if (
      places.some(
        (place) =>
          holdsName(place.about, name.text) ||
          // Of a page or a log only the line that is quoted.
          (name.kind === 'literal' && !isLine(place) && place.part.document().text.includes(name.text.toLowerCase())),
      )
    )
      continue
    return problem('OTHER_RESOURCE', `nothing quoted is about ${said(name.text)}`)
  }
  return null
}

/** A on B, from B, to B: one place has to tell both, and not the other way round. */
export function misplaced(clause: Clause, places: readonly Place[]): Problem | null {
  for (const [index, group] of clause.groups.entries()) {
    const before = clause.groups[index - 1]?.at(-1)
    const first = group[0] as Name
    const text = clause.text.slice(0, first.start - clause.start)
    const relation = /\b(on|onto|to|into|from|off|in|of) (?:the )?(?:host |node |shard |vm )?$/.exec(text)?.[1]
    if (!relation || !before || before.start < clause.start || first.kind === 'literal') continue
    const together = places.filter(({ about }) => holdsName(about, before.text) && holdsName(about, first.text))
    if (
      /^(?:on|onto|to|into|from|off)$/.test(relation) &&
      /\b(?:runs?|moved?|migrated?|started?|is|was|lives?|to|from)\b|§ (?:on|to|from) /.test(text) &&
      together.length === 0
    ) {
      return problem('OTHER_RESOURCE', `no row puts ${said(before.text)} and ${said(first.text)} together`)
    }
    const isMove = /\b(?:mov|migrat|start|came|comes|went|goes|evacuat|drain|transfer)\w*\b|§ to /.test(text)
    if (
      isMove &&
      together.length > 0 &&
      together.every(({ about }) => isTurned(about, first.text.toLowerCase(), relation))
    ) {
      return problem('OTHER_DIRECTION', `the rows do not say ${said(`${relation} ${first.text}`)}`)
    }
  }
  return null
}

function isTurned(about: string, name: string, relation: string): boolean {
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const came = new RegExp(`(?<![a-z])from[: ](?:host )?${escaped}(?![\\w-])`).test(about)
  const went = new RegExp(`(?<![a-z])(?:to|on|onto|into|host|node|in|at)[: ](?:host )?${escaped}(?![\\w-])`).test(about)
  if (/^(?:on|onto|to|into)$/.test(relation)) return came && !went
  return /^(?:from|off)$/.test(relation) && went && !came
}
