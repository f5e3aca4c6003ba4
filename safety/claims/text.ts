import { actionsIn, saysFailed, tellsOf } from './actions.ts'
import { type Clause, clausesOf } from './clauses.ts'
import type { Evidence, Write } from './evidence.ts'
import { holdsName } from './names.ts'
import { figuresIn } from './numbers.ts'
import { type Problem, problem, said } from './problems.ts'
import { allPlaces, type Place } from './quote.ts'
import { statesIn } from './states.ts'
import { unsupported } from './support.ts'

export type UnshownPart = { text: string; problem: Problem }

const mostUnshown = 10
const mostCharacters = 20_000
const mostPlaces = 10_000

/**
 * What a resolution, a reason or an answer in prose says that no row of the attempt shows. It cites nothing, so every row
 * counts: a name and a number stand in some row, a state is quoted with its subject, and what was done was written.
 * Advice is not held against anything.
 */
export function checkText(text: string, evidence: Evidence): UnshownPart[] {
  const clauses = clausesOf(text.slice(0, mostCharacters), evidence.known)
  const words = wordsIn(clauses)
  const places = evidence.parts
    .filter(({ source }) => source !== 'record')
    .flatMap((part) => allPlaces(part, words))
    .slice(-mostPlaces)
  const found: UnshownPart[] = []
  for (const clause of clauses) {
    const wrong = clauseProblem(clause, clauses, places, evidence)
    if (wrong && !found.some((each) => each.text === clause.raw.trim()))
      found.push({ text: clause.raw.trim(), problem: wrong })
  }
  return found.slice(0, mostUnshown)
}

function clauseProblem(
  clause: Clause,
  clauses: readonly Clause[],
  places: readonly Place[],
  evidence: Evidence,
): Problem | null {
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
  const wrong = unsupported(clause, places, true)
  if (wrong?.code !== 'NUMBER_NOT_SHOWN') return wrong
  // A number may be computed, from one row at a time or from what the same text says beside it.
  const isShown = rows.some(
    (part) =>
      unsupported(
        clause,
        places.filter((place) => place.part === part),
        true,
      )?.code !== 'NUMBER_NOT_SHOWN',
  )
  return isShown || isSummed(clause, clauses) ? null : wrong
}

/** What a long result is searched for: the names, numbers, times and states of the text. */
function wordsIn(clauses: readonly Clause[]): string[] {
  const all = clauses.flatMap(({ text, raw, groups, moments }) => [
    ...groups.flat().map((name) => name.text.toLowerCase()),
    ...moments.map((moment) => moment.text.toLowerCase()),
    ...figuresIn(text).map(({ at, end }) => raw.slice(at, end).replace(/,/g, '')),
    ...statesIn(text).map(({ word }) => word),
  ])
  return [...new Set(all)].slice(0, 60)
}

/** Said before in the same text: ten of 524,288 bytes and one of 133,995, together 5,376,875. */
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

/** An action that no write of this attempt did, or that a write did and the text says failed. */
function actionProblem(clause: Clause, places: readonly Place[], { writes }: Evidence): Problem | null {
  for (const action of actionsIn(clause.text)) {
    if (action.isDenied) continue
    const toldByOthers =
      !action.isOurs && places.some(({ part, line }) => part.source !== 'write' && tellsOf(action.verb, line, false))
    const names = clause.groups.flat().filter(({ kind }) => kind === 'name')
    const fitting = writes.filter((write) =>
      isOf(
        write,
        action.verb,
        names.map((name) => name.text),
      ),
    )
    if (fitting.some(({ held, failed }) => held || (failed && saysFailed(clause.text)))) continue
    if (toldByOthers) continue
    return fitting.length > 0
      ? problem('WRITE_NOT_HELD', `${said(clause.raw)}, but its write failed or was not verified`)
      : problem('NOT_WRITTEN', `no write of this attempt is ${said(action.verb)}`)
  }
  return null
}

function isOf(write: Write, verb: string, names: readonly string[]): boolean {
  const whole = write.parts.map((part) => `${part.head} ${part.document().text}`).join(' ')
  return tellsOf(verb, whole, true) && (names.length === 0 || names.some((name) => holdsName(whole, name)))
}
