import { holdsName, type Name } from './actions.ts'
import { numbersProblem } from './number-support.ts'
import { holdsMoment } from './numbers.ts'
import { type Place, type Problem, problem, said } from './quote.ts'
import type { Evidence } from './rows.ts'
import { statesProblem } from './states.ts'
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
