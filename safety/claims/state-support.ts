import { holdsName, type Name } from './names.ts'
import { type Problem, problem, said } from './problems.ts'
import type { Place } from './quote.ts'
import { type StateWord, showsState, statesIn } from './states.ts'
import type { Clause } from './text.ts'

const universal = /\b(?:all|every|each|both|none|neither|every(?:thing|one|where)|nothing)\b/

/** The first state of a clause that these quotes do not say of what the clause says it of. `shown` are words shown otherwise. */
export function statesProblem(
  clause: Clause,
  places: readonly Place[],
  isLoose: boolean,
  shown: string,
): Problem | null {
  for (const state of statesIn(clause.text)) {
    if (isDescribing(clause.text, state) || shown.split(' ').includes(state.word)) continue
    const showing = places.filter((place) => showsAt(place, state))
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
    if (!isLoose && universal.test(clause.text) && !isForAll(clause, about, state)) {
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
    (word === 'failed' && /^ over/.test(behind)) ||
    (word === 'up' && /^ (?:for|since|to) /.test(behind))
  )
}

/** Does a place show a state: by its words, by a field of that name, by how a command ended? */
export function showsAt(place: Place, state: StateWord): boolean {
  const key = place.leaf.path.findLast((step) => !/^\d+$/.test(step))?.toLowerCase() ?? ''
  const value = place.leaf.value
  if (
    /^run/.test(state.word) &&
    !state.isDenied &&
    /(?:^|[\s[,/])(?:ps|pgrep|top|proc_list)(?![\w-])/.test(place.part.head)
  )
    return true
  if (/^exit_?code$/.test(key) && /^fail/.test(state.word)) return (value !== 0) === !state.isDenied
  return showsState(state, { key, line: place.line, value, from: place.from, to: place.to })
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
function isForAll({ text, groups }: Clause, showing: readonly Place[], state: StateWord): boolean {
  if (showing.some(({ line }) => /\b(?:all|every|each|both|no|none)\b/.test(line))) return true
  const [first] = showing
  if (!first) return false
  const items = new Set(showing.map(({ item, part }) => `${part.seq}:${item.start}`))
  if (/\b(?:both|neither)\b/.test(text)) return items.size >= 2
  const list = first.item.list
  if (!list) return groups.some((group) => group.length > 1)
  const { leaves, text: whole } = first.part.document()
  return list.of.every((item) =>
    leaves.some((leaf) => {
      if (leaf.item !== item) return false
      return leaf.lines.some(({ start, end }) =>
        showsAt({ ...first, leaf, item, line: whole.slice(start, end), from: 0, to: end - start }, state),
      )
    }),
  )
}
