import type { Clause } from './clauses.ts'
import { isComputed } from './compute.ts'
import type { Evidence } from './evidence.ts'
import { says } from './measure.ts'
import { holdsName, type Name } from './names.ts'
import { type Figure, figuresIn, type Value, valuesAt } from './numbers.ts'
import { type Problem, problem, said } from './problems.ts'
import type { Place } from './quote.ts'
import { type StateWord, showsState, statesIn } from './states.ts'
import { holdsMoment, momentsIn } from './times.ts'
import { keyWords } from './units.ts'

const universal = /\b(?:all|every|each|both|none|neither)\b/

/** Do these places, quoted by the claim, show the states, numbers and times of a clause? The first that they do not. */
export function unsupported(clause: Clause, places: readonly Place[], isLoose: boolean): Problem | null {
  return (
    statesProblem(clause, places, isLoose) ?? numbersProblem(clause, places, isLoose) ?? timesProblem(clause, places)
  )
}

function statesProblem(clause: Clause, places: readonly Place[], isLoose: boolean): Problem | null {
  for (const state of statesIn(clause.text)) {
    if (isDescribing(clause.text, state)) continue
    const showing = places.filter((place) => shows(place, state))
    const subjects = subjectsOf(clause, state)
    if (showing.length === 0) return problem('STATE_NOT_SHOWN', `no quote says ${said(spoken(state))}`)
    for (const subject of subjects) {
      if (showing.some(({ about }) => holdsName(about, subject.text))) continue
      return problem('STATE_NOT_SHOWN', `no quote says ${said(spoken(state))} of ${said(subject.text)}`)
    }
    const about =
      subjects.length === 0
        ? showing
        : showing.filter((place) => subjects.some(({ text }) => holdsName(place.about, text)))
    if (!isLoose && universal.test(clause.text) && !isForAll(clause.text, about, state, places)) {
      return problem('NOT_ALL', `not all of them are ${said(spoken(state))} by what is quoted`)
    }
  }
  return null
}

const spoken = ({ word, isDenied }: StateWord) => (isDenied ? `not ${word}` : word)

/** Commands and alerts have such words as names: the critical alert, a running total, live migrations. */
function isDescribing(text: string, { word, at }: StateWord): boolean {
  const behind = text.slice(at + word.length)
  return (
    /^(?:-| (?:alerts?|severity|incident|total|log|config\w*|migrations?|process space))/.test(behind) ||
    (word === 'live' && !/\b(?:is|are|was|were) $/.test(text.slice(0, at))) ||
    (word === 'up' &&
      /\w(?:ing|s|ed|e|t|k|ng|n) $/.test(text.slice(0, at)) &&
      !/\b(?:is|are|was|were|has|be|been) $/.test(text.slice(0, at))) ||
    (word === 'failed' && /^ over/.test(behind))
  )
}

function shows(place: Place, state: StateWord): boolean {
  const key = place.leaf.path.findLast((step) => !/^\d+$/.test(step))?.toLowerCase() ?? ''
  const value = place.leaf.value
  if (/^exit_?code$/.test(key) && /^fail/.test(state.word)) return (value !== 0) === !state.isDenied
  return showsState(state, key, place.line, value, place.from, place.to)
}

/** Whom a state is said of: the names that stand side by side before it, else behind it, else what the clause goes on about. */
function subjectsOf(clause: Clause, state: StateWord): Name[] {
  const at = clause.start + state.at
  const before = clause.groups.filter((group) => (group[0] as Name).start < at)
  const first = before[0]
  if (first) return first.filter(({ kind }) => kind !== 'literal')
  const behind = clause.groups.find((group) => (group[0] as Name).start > at)
  return (behind ?? clause.carried).filter(({ kind }) => kind !== 'literal')
}

/** All, both, every: said by the quote itself, or true of every element of the list, or of as many as are quoted. */
function isForAll(text: string, showing: readonly Place[], state: StateWord, places: readonly Place[]): boolean {
  if (showing.some(({ line }) => /\b(?:all|every|each|both|no|none)\b/.test(line))) return true
  const [first] = showing
  if (!first) return false
  const items = new Set(showing.map(({ item, part }) => `${part.seq}:${item.start}`))
  if (/\b(?:both|neither)\b/.test(text)) return items.size >= 2
  const list = first.item.list
  if (!list) return items.size >= 2 && items.size === new Set(places.map(({ part }) => part.seq)).size
  const { leaves, text: whole } = first.part.document()
  return list.of.every((item) =>
    leaves.some((leaf) => {
      if (leaf.item !== item) return false
      return leaf.lines.some(({ start, end }) =>
        shows({ ...first, leaf, item, line: whole.slice(start, end), from: 0, to: end - start }, state),
      )
    }),
  )
}

function numbersProblem(clause: Clause, places: readonly Place[], isLoose: boolean): Problem | null {
  const figures = figuresIn(clause.text)
  if (figures.length === 0) return null
  const named = isLoose
    ? []
    : [...clause.groups.flat(), ...(clause.groups.length === 0 ? clause.carried : [])].filter(
        ({ kind }) => kind === 'name',
      )
  const own =
    named.length === 0 ? places : places.filter(({ about }) => named.some(({ text }) => holdsName(about, text)))
  const values = own.flatMap(valuesAt)
  const times = isLoose
    ? []
    : own.flatMap(({ line, from, to }) => momentsIn(line.slice(from, to)).map(({ text }) => text))
  for (const figure of figures) {
    if (figure.isWord && clause.text.slice(figure.at).startsWith('both')) continue
    // A number without a unit may be part of a title, which stands where the name does not: Deploy 42.
    const titles = figure.unit ? [] : places.filter(({ leaf }) => typeof leaf.value === 'string').flatMap(valuesAt)
    if (
      [...values, ...titles].some((value) => says(figure, { ...value, from: value }) && isAlike(value, clause, figure))
    )
      continue
    if (isCount(figure, clause, own)) continue
    if (
      isComputed(
        figure,
        clause.text,
        values.filter((value) => !isWish(value) || saysWish(clause)),
        times,
      )
    )
      continue
    return problem(
      'NUMBER_NOT_SHOWN',
      `no quote gives ${said(clause.raw.slice(Math.max(0, figure.at - 12), figure.end + 12))}`,
    )
  }
  return null
}

/** A number of one field is not said of its neighbour: logs 15085 is not how much of the disk is used. */
function isAlike(value: Value, clause: Clause, figure: Figure): boolean {
  if (isWish(value) && !saysWish(clause)) return false
  const { leaf, part } = value.place
  if (typeof leaf.value !== 'number') return true
  const own = keyWords(leaf.path.slice(-1))
  const words = clause.text.split(/[^a-z%]+/).filter((word) => word.length > 2)
  const names = (key: readonly string[]) =>
    key.some((word) => word.length > 2 && !measures.has(word) && words.some((other) => isSameStem(word, other)))
  if (names(own)) return true
  const siblings = part
    .document()
    .leaves.filter((each) => each !== leaf && each.item === leaf.item && typeof each.value === 'number')
  const near = clause.text.slice(Math.max(0, figure.at - 30), figure.end + 24)
  return !siblings.some((each) => {
    const key = keyWords(each.path.slice(-1)).filter(
      (word) => word.length > 2 && !measures.has(word) && !own.includes(word),
    )
    return (
      key.length > 0 &&
      key.every((word) => near.split(/[^a-z%]+/).some((other) => other.length > 2 && isSameStem(word, other)))
    )
  })
}

const measures = new Set(['bytes', 'seconds', 'mib', 'percent', 'count', 'total', 'size', 'number', 'time', 'value'])

function isSameStem(one: string, other: string): boolean {
  const length = Math.min(one.length, other.length, 5)
  return length >= 3 && one.slice(0, length) === other.slice(0, length)
}

/** In the quote the number is one that should be, a limit: it says nothing of how it is. */
function isWish({ place, at }: Value): boolean {
  return /\b(?:should be|must be|expected|desired|wanted|limit(?: is| of)?|threshold(?: is| of)?|at most|at least|max(?:imum)?|min(?:imum)?)[ :=]*$/.test(
    place.line.slice(0, at),
  )
}

function saysWish({ text }: Clause): boolean {
  return /\b(?:should|instead|desired|expected|want\w*|limit|threshold|quota|says|configur\w*|target|allowed|maximum|minimum|must)\b/.test(
    text,
  )
}

/** Counted: how many elements are quoted, or say so, or how many reads were made. */
function isCount(figure: Figure, clause: Clause, places: readonly Place[]): boolean {
  if (figure.unit || figure.decimals > 0 || figure.value < 0) return false
  if (
    /^(?:looks?|reads?|times|samples?)$/.test(figure.noun ?? '') &&
    new Set(places.map(({ part }) => part.seq)).size === figure.value
  )
    return true
  const states = statesIn(clause.text)
  const counted = states.length === 0 ? places : places.filter((place) => states.some((state) => shows(place, state)))
  const items = new Set(counted.filter(({ item }) => item.list).map(({ item, part }) => `${part.seq}:${item.start}`))
  if (items.size === figure.value && figure.value > 0) return true
  if (states.length > 0) return false
  const lists = new Set(counted.flatMap(({ item }) => (item.list ? [item.list] : [])))
  return [...lists].some((list) => list.length === figure.value) || namedCount(figure, clause)
}

function namedCount(figure: Figure, clause: Clause): boolean {
  return clause.groups.some((group) => group.length === figure.value)
}

function timesProblem(clause: Clause, places: readonly Place[]): Problem | null {
  for (const moment of clause.moments) {
    if (places.some(({ line, part }) => holdsMoment(moment, line) || holdsMoment(moment, part.at))) continue
    return problem('TIME_NOT_SHOWN', `no quote gives the time ${said(moment.text)}`)
  }
  return null
}

/** Names of a clause that nothing quoted is about. */
export function unnamed(clause: Clause, places: readonly Place[], evidence: Evidence): Problem | null {
  for (const name of clause.groups.flat()) {
    if (holdsName(evidence.incidentId, name.text)) continue
    if (
      places.some(
        ({ about, part }) =>
          holdsName(about, name.text) ||
          (name.kind === 'literal' && part.document().text.includes(name.text.toLowerCase())),
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
    if (together.length > 0 && together.every(({ about }) => isTurned(about, first.text.toLowerCase(), relation))) {
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
