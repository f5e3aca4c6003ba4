import type { Clause } from './clauses.ts'
import { holdsName } from './names.ts'
import { type Figure, valuesAt } from './numbers.ts'
import type { Place } from './quote.ts'
import { showsAt } from './state-support.ts'
import { statesIn } from './states.ts'

/**
 * Is the number how many there are: as many elements as are quoted, or as their list holds, or as many reads as are cited?
 * Beside a state only what has that state is counted. A whole row (`isWhole`) is counted by what its lines and fields share.
 */
export function isCount(figure: Figure, clause: Clause, places: readonly Place[], isWhole: boolean): boolean {
  if (figure.unit || figure.decimals > 0 || figure.value <= 0 || (figure.noun === null && !figure.isWord)) return false
  const rows = new Set(places.map(({ part }) => part.seq)).size
  if (/^(?:looks?|reads?|times|samples?)$/.test(figure.noun ?? '') && rows === figure.value) return true
  const states = statesIn(clause.text)
  const counted = states.length === 0 ? places : places.filter((place) => states.some((state) => showsAt(place, state)))
  const items = new Set(counted.filter(({ item }) => item.list).map(({ item, part }) => `${part.seq}:${item.start}`))
  if (items.size === figure.value) return true
  if (isWhole && isShared(figure, clause, counted)) return true
  // Of the three hosts one is nominal: three is how many there are.
  const isTotal = /\bof (?:the |all )?$/.test(clause.text.slice(0, figure.at))
  if (states.length > 0 && !isTotal) return false
  const lists = new Set(places.flatMap(({ item }) => (item.list ? [item.list] : [])))
  return (
    [...lists].some((list) => list.length === figure.value) ||
    clause.groups.some((group) => group.length === figure.value)
  )
}

/** As many lines hold a name or a number of the clause, or as many elements have the same value in the same field. */
function isShared(figure: Figure, clause: Clause, places: readonly Place[]): boolean {
  const names = clause.groups.flat()
  if (names.some(({ text }) => places.filter(({ line }) => holdsName(line, text)).length === figure.value)) return true
  const behind = clause.text.slice(figure.end).replace(/,/g, '')
  const other = /^ of (\d+)/.exec(behind)?.[1]
  if (other && places.flatMap(valuesAt).filter(({ value }) => value === Number(other)).length === figure.value)
    return true
  const shared = new Map<string, number>()
  for (const { leaf, item, line } of places) {
    if (!item.list) continue
    const key = `${leaf.path.at(-1)}:${line}`
    shared.set(key, (shared.get(key) ?? 0) + 1)
  }
  return [...shared.values()].includes(figure.value)
}
