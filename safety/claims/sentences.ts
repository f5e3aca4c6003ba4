import { actionsIn, holdsName, isVerbOf, saysFailed } from './actions.ts'
import { isAbout, tellsAction, textOf } from './check.ts'
import { contradictionIn, isOnlyWords, isRefusing, plainText } from './grade.ts'
import { figuresIn } from './numbers.ts'
import { partHeld } from './parts-held.ts'
import { allPlaces, type ClaimProblem, problem, type QuotePlace, said } from './quote.ts'
import type { ClaimEvidence } from './rows.ts'
import { statesIn } from './states.ts'
import { findUnsupported } from './support.ts'
import { type Clause, clausesOf } from './text.ts'

/** A sentence that no row shows. `isRefused`: it claims a write of this attempt that has no row. */
type UnshownPart = { text: string; problem: ClaimProblem; isRefused: boolean }

const maxUnshown = 10
const maxCharacters = 20_000
const maxPlaces = 10_000

/**
 * Finds statements of a resolution, reason or prose answer that no row of the attempt shows. Such a
 * text cites nothing, so every row counts: names and numbers must be in some row, no row may
 * contradict a state, and a claimed act needs its write. No other word or advice is checked.
 */
export function checkText(text: string, evidence: ClaimEvidence): UnshownPart[] {
  const clauses = clausesOf(plainText(text.slice(0, maxCharacters)), evidence.known)
  const words = wordsIn(clauses)
  const places = evidence.parts
    .filter(({ source }) => source !== 'record')
    .flatMap((part) => allPlaces(part, words))
    .slice(-maxPlaces)
  const found: UnshownPart[] = []
  for (const clause of clauses) {
    const wrong = contradictionIn(clause, evidence) ?? clauseProblem(clause, clauses, places, evidence)
    if (!wrong || isOnlyWords(wrong, [clause], evidence) || found.some((each) => each.text === clause.raw.trim()))
      continue
    found.push({ text: clause.raw.trim(), problem: wrong, isRefused: isRefusing(wrong) })
  }
  return found.slice(0, maxUnshown)
}

function clauseProblem(
  clause: Clause,
  clauses: readonly Clause[],
  places: readonly QuotePlace[],
  evidence: ClaimEvidence,
): ClaimProblem | null {
  const done = actionProblem(clause, places, evidence)
  if (done) return done
  if (clause.isAdvice) return null
  for (const name of clause.groups.flat()) {
    const isKnown =
      holdsName(evidence.incidentId, name.text) ||
      evidence.parts.some(
        (part) =>
          holdsName(part.head, name.text) ||
          holdsName(part.document().text, name.text) ||
          part.seqs.some((seq) => String(seq) === name.text),
      )
    if (!isKnown && name.kind !== 'literal')
      return problem('OTHER_RESOURCE', `no row of this attempt names ${said(name.text)}`)
  }
  if (statesIn(clause.text).length + figuresIn(clause.text).length + clause.moments.length === 0) return null
  const rows = [...new Set(places.map(({ part }) => part))]
  const wrong = findUnsupported(clause, places, true)
  if (wrong?.code !== 'NUMBER_NOT_SHOWN') return wrong
  // Accepts a number that can be computed from one row at a time, or from the text itself.
  const isShown = rows.some(
    (part) =>
      findUnsupported(
        clause,
        places.filter((place) => place.part === part),
        true,
      )?.code !== 'NUMBER_NOT_SHOWN',
  )
  return isShown || isSummed(clause, clauses) ? null : wrong
}

/** Lists the names, numbers, times and states of the text, with which a long result is searched. */
function wordsIn(clauses: readonly Clause[]): string[] {
  const all = clauses.flatMap(({ text, raw, groups, moments }) => [
    ...groups.flat().map((name) => name.text.toLowerCase()),
    ...moments.map((moment) => moment.text.toLowerCase()),
    ...figuresIn(text).map(({ at, end }) => raw.slice(at, end).replace(/,/g, '')),
    ...statesIn(text).map(({ word }) => word),
  ])
  return [...new Set(all)].slice(0, 60)
}

/**
 * Whether a number is the sum of earlier numbers: ten of 524,288 bytes and one of 133,995 are
 * 5,376,875.
 */
function isSummed(clause: Clause, clauses: readonly Clause[]): boolean {
  const all = clauses.filter(({ start }) => start <= clause.start).flatMap(({ text }) => figuresIn(text))
  const wanted = figuresIn(clause.text)
  const values = all.map(({ value }) => value)
  const products = all.flatMap((first, index) => (all[index + 1] ? [first.value * (all[index + 1]?.value ?? 0)] : []))
  return wanted.every(({ value }) =>
    [...products, ...values].some((a) =>
      [...products, ...values].some(
        (b) => a !== value && b !== value && (a + b === value || Math.abs(a - b) === value),
      ),
    ),
  )
}

/**
 * Finds an action without a write of this attempt, or whose write the text wrongly calls failed.
 */
function actionProblem(clause: Clause, places: readonly QuotePlace[], evidence: ClaimEvidence): ClaimProblem | null {
  const names = clause.groups.flat().filter(({ kind }) => kind === 'name')
  const about = evidence.writes.filter((write) => isAbout(write, names, evidence))
  for (const action of actionsIn(clause.text)) {
    if (action.isDenied) continue
    // Skips a verb whose actor the clause before names: "Deploy 42 (at 00:35) truncated the file".
    if (!clause.isFirst && clause.text.trimStart().startsWith(action.verb)) continue
    const fitting = about.filter((write) => isVerbOf(action.verb, textOf(write), true))
    const isSo = fitting.some(
      (write) => write.held || partHeld(write, names, clause.text) || (write.failed && saysFailed(clause.text)),
    )
    if (isSo || (!action.isOurs && places.some((place) => tellsAction(place, action.verb, clause)))) continue
    if (fitting.length > 0)
      return problem('WRITE_NOT_HELD', `${said(clause.raw)}, but its write failed or was not verified`)
    if (!action.isOurs) return problem('NOT_TOLD', `no row says that anything was ${action.verb}`)
    const isOther = about.some(({ held }) => held)
    return problem(isOther ? 'OTHER_VERB' : 'NOT_WRITTEN', `no write of this attempt is ${said(action.verb)}`)
  }
  return null
}
