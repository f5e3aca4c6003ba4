import type { Claim, ClaimQuote } from '../../domain/claim.ts'
import { type Action, actionsIn, holdsName, isVerbOf, type Name, saysFailed } from './actions.ts'
import { figuresIn } from './numbers.ts'
import { type ClaimProblem, foldText, placesOf, problem, type QuotePlace, said } from './quote.ts'
import type { CitableWrite, ClaimEvidence, Part } from './rows.ts'
import { statesIn } from './states.ts'
import {
  absenceProblem,
  denialProblem,
  findMisplaced,
  findUnnamed,
  findUnspoken,
  findUnsupported,
  goneProblem,
} from './support.ts'
import { type Clause, clausesOf } from './text.ts'

/** For each claim the first thing that what it cites does not show; null where it shows all. Pure and total. */
export function checkClaims(claims: readonly Claim[], evidence: ClaimEvidence): (ClaimProblem | null)[] {
  return claims.map((claim) => checkClaim(claim, evidence))
}

function checkClaim(claim: Claim, evidence: ClaimEvidence): ClaimProblem | null {
  const clauses = clausesOf(claim.text, evidence.known)
  if (claim.kind === 'absent') {
    return (
      absenceProblem(claim, clauses, evidence) ?? otherWords(clauses) ?? actionsProblem(claim, clauses, [], evidence)
    )
  }
  const places = placesOfAll(claim.quotes, evidence)
  if (!Array.isArray(places)) return places
  return (
    kindProblem(claim, places, evidence) ??
    actionsProblem(claim, clauses, places, evidence) ??
    firstOf(clauses, (clause) => clauseProblem(claim, clause, clauses, places, evidence)) ??
    (claim.kind === 'did' ? null : findUnspoken(clauses, places))
  )
}

/** Where these quotes stand, or the first that stands nowhere. What the agent said itself shows nothing. */
export function placesOfAll(quotes: readonly ClaimQuote[], evidence: ClaimEvidence): QuotePlace[] | ClaimProblem {
  const places: QuotePlace[] = []
  for (const quote of quotes) {
    const found = placesOf(quote, evidence.parts).filter((place) => !isOwnWord(place))
    if (found.length === 0) return problem('QUOTE_NOT_FOUND', `${said(quote.text)} does not stand in row ${quote.seq}`)
    places.push(...found)
  }
  return places
}

function firstOf(clauses: readonly Clause[], check: (clause: Clause) => ClaimProblem | null): ClaimProblem | null {
  for (const clause of clauses) {
    const found = check(clause)
    if (found) return found
  }
  return null
}

function clauseProblem(
  claim: Claim,
  clause: Clause,
  clauses: readonly Clause[],
  places: readonly QuotePlace[],
  evidence: ClaimEvidence,
): ClaimProblem | null {
  const cited = [...new Set(places.map(({ part }) => part))]
  const fresh = mustBeFresh(claim, clause, clauses, places)
    ? places.filter((place) => isFresh(place.part, evidence))
    : places
  const saysMuch = statesIn(clause.text).length > 0 || figuresIn(clause.text).length > 0
  if (fresh.length === 0 && saysMuch) return stale()
  // That a write failed is shown by the write itself.
  const isFailure = claim.kind === 'did' && citedWrites(places, evidence).some(({ failed }) => failed)
  const shown = isFailure ? 'failed failing' : ''
  const found =
    findUnnamed(clause, places, evidence) ??
    findUnsupported(clause, fresh, false, shown) ??
    findMisplaced(clause, places) ??
    goneProblem(
      clause,
      cited,
      places.map(({ line, from, to }) => line.slice(from, to)),
      evidence,
    ) ??
    denialProblem(clause, cited)
  // What an older row shows and a newer one does not was so before the last write.
  return found && fresh !== places && findUnsupported(clause, fresh, false) && !findUnsupported(clause, places, false)
    ? stale()
    : found
}

const stale = () => problem('READ_BEFORE_WRITE', 'what says so was read before the last write')

/** Only a read and a verification tell how something is now, and only when they came after the last write began. */
function isFresh(part: Part, { lastWrite }: ClaimEvidence): boolean {
  return (part.source === 'read' || part.source === 'verification') && part.seq > lastWrite
}

/** Said to be so now: by its kind, or by its words whatever kind it declares. */
function mustBeFresh(
  { kind }: Claim,
  clause: Clause,
  clauses: readonly Clause[],
  places: readonly QuotePlace[],
): boolean {
  if (clause.tense === 'past') return false
  if (clause.tense === null) return kind === 'is'
  // What a past sentence quotes: was critical: process is not running.
  const isQuoted =
    clause.isAfterColon && places.some(({ line, from, to }) => line.slice(from, to).includes(foldText(clause.raw)))
  return !(isQuoted && kind !== 'is' && clauses.some(({ tense, start }) => tense === 'past' && start < clause.start))
}

function kindProblem({ kind }: Claim, places: readonly QuotePlace[], evidence: ClaimEvidence): ClaimProblem | null {
  const sources = new Set(places.map(({ part }) => part.source))
  if (sources.has('record') && sources.size === 1)
    return problem('NO_READ', 'a note of this investigation shows nothing')
  if (kind === 'did') {
    const written = citedWrites(places, evidence)
    return written.length > 0 ? null : problem('NOT_WRITTEN', 'no finished write is quoted')
  }
  if (kind === 'is' && !places.some(({ part }) => isFresh(part, evidence))) {
    return evidence.lastWrite > 0 && sources.has('read') ? stale() : problem('NO_READ', 'no read is quoted')
  }
  if (kind === 'was' && !places.some(({ part }) => ['read', 'verification', 'alert'].includes(part.source))) {
    return problem('NO_READ', 'no read is quoted')
  }
  return null
}

function citedWrites(places: readonly QuotePlace[], { writes }: ClaimEvidence): CitableWrite[] {
  const calls = new Set(places.map(({ part }) => part.callId))
  return writes.filter(({ callId, parts }) => calls.has(callId) && parts.some(({ source }) => source === 'write'))
}

/** What the text says this investigation did, whatever kind it declares. */
function actionsProblem(
  claim: Claim,
  clauses: readonly Clause[],
  places: readonly QuotePlace[],
  evidence: ClaimEvidence,
): ClaimProblem | null {
  const cited = citedWrites(places, evidence)
  let isAction = false
  for (const clause of clauses) {
    for (const action of actionsIn(clause.text)) {
      if (action.isDenied) {
        const done = evidence.writes.find((write) => write.held && isOf(write, action, clause.groups.flat()))
        if (done && (action.isOurs || clause.groups.length > 0))
          return problem('WRITE_HELD', `${said(clause.raw)}, but a write did it`)
        continue
      }
      if (isOthers(claim, action, places)) continue
      isAction = true
      const found = actionProblem(action, clause, cited)
      if (found) return found
    }
  }
  if (claim.kind !== 'did' || isAction) return null
  const failed = clauses.some((clause) => saysFailed(clause.text))
  return cited.some((write) => (failed ? write.failed : write.held)) ? null : outcomeProblem(failed, claim.text)
}

function actionProblem(action: Action, clause: Clause, cited: readonly CitableWrite[]): ClaimProblem | null {
  const names = (clause.groups.length > 0 ? clause.groups.flat() : clause.carried).filter(
    ({ kind }) => kind !== 'literal',
  )
  const fitting = cited.filter((write) => isOf(write, action, names))
  if (fitting.length === 0) {
    const of = names[0] ? ` of ${said(names[0].text)}` : ''
    return problem('NOT_WRITTEN', `no quoted write is ${said(action.verb)}${of}`)
  }
  const failed = saysFailed(clause.text)
  return fitting.some((write) => (failed ? write.failed : write.held)) ? null : outcomeProblem(failed, clause.raw)
}

function outcomeProblem(saysItFailed: boolean, text: string): ClaimProblem {
  return saysItFailed
    ? problem('WRITE_HELD', `${said(text)}, but its verification held`)
    : problem('WRITE_NOT_HELD', `${said(text)}, but its write failed or was not verified`)
}

/** Is the write what the verb says, and about everything that is named? */
function isOf(write: CitableWrite, { verb }: Action, names: readonly Name[]): boolean {
  const texts = write.parts.map((part) => `${part.head} ${part.document().text}`)
  const whole = texts.join(' ')
  return isVerbOf(verb, whole, true) && names.every(({ text }) => holdsName(whole, text))
}

/** Others did it, by a log or an event that is quoted: their verb stands there. */
function isOthers(claim: Claim, action: Action, places: readonly QuotePlace[]): boolean {
  if (claim.kind === 'did' || action.isOurs) return false
  return places.some(
    ({ part, line, from, to }) =>
      (part.source === 'read' || part.source === 'alert') && isVerbOf(action.verb, line.slice(from, to), false),
  )
}

/** An absent claim carries nothing else along. */
function otherWords(clauses: readonly Clause[]): ClaimProblem | null {
  for (const clause of clauses) {
    const state = statesIn(clause.text).find(({ isDenied }) => !isDenied)
    if (state && !/\b(?:no|none|nothing)\b/.test(clause.text))
      return problem('NOT_ABSENT', `it also says ${said(state.word)}`)
  }
  return null
}

const ownKinds = /^(?:model_answered|commented|call_judged|tool_started|correction_sent|resolved|escalated)$/

/** What a log of this agent repeats of the agent's answers, or a program of its arguments, shows nothing. */
function isOwnWord({ part, item, line, leaf }: QuotePlace): boolean {
  if (part.source !== 'read') return false
  if (leaf.path[0] === 'cmd_executed') return true
  if (line.length > 8 && /\s/.test(line) && part.head.includes(line)) return true
  let top = item
  while (top.list?.item.list) top = top.list.item
  const kind = part.document().leaves.find((each) => each.path.at(-1) === 'kind' && each.item === top)?.value
  return typeof kind === 'string' && ownKinds.test(kind)
}
