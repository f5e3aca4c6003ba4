import type { Claim, ClaimQuote } from '../../domain/claim.ts'
import {
  type Action,
  actionsIn,
  anyFormsOf,
  holdsName,
  isKnownVerb,
  isVerbOf,
  type Name,
  pastFormsOf,
  saysFailed,
} from './actions.ts'
import { figuresIn, holdsMoment } from './numbers.ts'
import { partHeld } from './parts-held.ts'
import { type ClaimProblem, foldText, placesOf, problem, type QuotePlace, said } from './quote.ts'
import type { CitableWrite, ClaimEvidence, Part } from './rows.ts'
import { statesIn } from './states.ts'
import { absenceProblem, denialProblem, findMisplaced, findUnnamed, findUnsupported, goneProblem } from './support.ts'
import { type Clause, clausesOf } from './text.ts'

/**
 * Finds the first part of a claim that the cited rows do not show; null if the rows show the whole
 * claim.
 */
export function checkClaim(claim: Claim, evidence: ClaimEvidence): ClaimProblem | null {
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
    firstOf(clauses, (clause) => clauseProblem(claim, clause, clauses, places, evidence))
  )
}

/**
 * Finds the places in rows where quotes occur, or returns the problem of the first quote without a
 * place. Texts of the agent itself do not count.
 */
export function placesOfAll(quotes: readonly ClaimQuote[], evidence: ClaimEvidence): QuotePlace[] | ClaimProblem {
  const places: QuotePlace[] = []
  for (const quote of quotes) {
    const found = placesOf(quote, evidence.parts).filter((place) => !isOwnWord(place))
    if (found.length === 0) return problem('QUOTE_NOT_FOUND', `${said(quote.text)} is not in row ${quote.seq}`)
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
  // Accepts words of failure for a cited write that failed, because its row shows the failure.
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
    denialProblem(clause, cited, places)
  // Reports a read before the last write if only older rows show the state.
  return found && fresh !== places && findUnsupported(clause, fresh, false) && !findUnsupported(clause, places, false)
    ? stale()
    : found
}

const stale = () => problem('READ_BEFORE_WRITE', 'the quoted rows are from before the last write')

/**
 * Whether a part shows the present state: it is a read or a verification that began after the last
 * write.
 */
function isFresh(part: Part, { lastWrite }: ClaimEvidence): boolean {
  return (part.source === 'read' || part.source === 'verification') && part.seq > lastWrite
}

/** Whether a claim is about the present, by its declared kind or by its words. */
function mustBeFresh(
  { kind }: Claim,
  clause: Clause,
  clauses: readonly Clause[],
  places: readonly QuotePlace[],
): boolean {
  if (clause.tense === 'past') return false
  if (clause.tense === null) return kind === 'is'
  // Accepts the present tense after a colon if it is quoted and the sentence before it is in the
  // past: "was critical: process is not running".
  const isQuoted =
    clause.isAfterColon && places.some(({ line, from, to }) => line.slice(from, to).includes(foldText(clause.raw)))
  return !(isQuoted && kind !== 'is' && clauses.some(({ tense, start }) => tense === 'past' && start < clause.start))
}

function kindProblem({ kind }: Claim, places: readonly QuotePlace[], evidence: ClaimEvidence): ClaimProblem | null {
  const sources = new Set(places.map(({ part }) => part.source))
  if (sources.has('record') && sources.size === 1)
    return problem('OWN_WORDS', 'a note of this investigation shows nothing')
  if (kind === 'did') {
    const written = citedWrites(places, evidence)
    return written.length > 0 ? null : problem('NOT_WRITTEN', 'no finished write is quoted')
  }
  if (kind === 'is' && !places.some(({ part }) => isFresh(part, evidence))) {
    return evidence.lastWrite > 0 && sources.has('read') ? stale() : problem('NO_READ', 'no read is quoted')
  }
  if (
    kind === 'was' &&
    !places.some(({ part }) => ['read', 'verification', 'alert', 'refusal'].includes(part.source))
  ) {
    return problem('NO_READ', 'no read is quoted')
  }
  return null
}

function citedWrites(places: readonly QuotePlace[], { writes }: ClaimEvidence): CitableWrite[] {
  const calls = new Set(places.map(({ part }) => part.callId))
  return writes.filter(({ callId, parts }) => calls.has(callId) && parts.some(({ source }) => source === 'write'))
}

/** Checks the acts that a claim of any declared kind attributes to this investigation. */
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
      if (isOthers(claim, action, clause, places)) continue
      isAction = true
      const found = actionProblem(claim, action, clause, { cited, places, evidence })
      if (found) return found
    }
  }
  if (claim.kind !== 'did' || isAction) return null
  const failed = clauses.some((clause) => saysFailed(clause.text))
  const names = clauses.flatMap(({ groups }) => groups.flat()).filter(({ kind }) => kind === 'name')
  const isSo = cited.some((write) =>
    failed ? write.failed : write.held || partHeld(write, names, claim.text.toLowerCase()),
  )
  return isSo ? null : outcomeProblem(failed, claim.text)
}

function actionProblem(
  claim: Claim,
  action: Action,
  clause: Clause,
  {
    cited,
    places,
    evidence,
  }: { cited: readonly CitableWrite[]; places: readonly QuotePlace[]; evidence: ClaimEvidence },
): ClaimProblem | null {
  const names = (clause.groups.length > 0 ? clause.groups.flat() : clause.carried).filter(
    ({ kind }) => kind !== 'literal',
  )
  // Requires a quoted write if the claim says that this attempt made the write. For a write that is
  // only mentioned, any write of this attempt is enough.
  const own = claim.kind === 'did' || action.isOurs ? cited : evidence.writes
  const about = own.filter((write) => isAbout(write, names, evidence))
  const fitting = about.filter((write) => isVerbOf(action.verb, textOf(write), true))
  const of = names[0] ? ` of ${said(names[0].text)}` : ''
  if (fitting.length === 0) {
    if (claim.kind !== 'did' && !action.isOurs)
      return problem('NOT_TOLD', `no row says that ${said(names[0]?.text ?? clause.raw)} was ${action.verb}`)
    const hasWritten =
      claim.kind !== 'did' && evidence.writes.some((write) => write.held && isAbout(write, names, evidence))
    const isOther = claim.kind === 'did' && isKnownVerb(action.verb)
    const code = (about.length > 0 && !isOther) || hasWritten ? 'OTHER_VERB' : 'NOT_WRITTEN'
    return problem(code, `no quoted write is ${said(action.verb)}${of}`)
  }
  const failed = saysFailed(clause.text)
  const isSo = fitting.some((write) => (failed ? write.failed : write.held || partHeld(write, names, clause.text)))
  return isSo || places.some((place) => tellsDone(place, action.verb, names))
    ? null
    : outcomeProblem(failed, clause.raw)
}

/** Whether the row of a partly failed write reports this act as done. */
function tellsDone({ part, line, from, to }: QuotePlace, verb: string, names: readonly Name[]): boolean {
  if (part.source !== 'write' && part.source !== 'verification') return false
  const piece = line.slice(from, to)
  return (
    pastFormsOf(verb).some((form) => new RegExp(`(?<![a-z])${form}(?![a-z])`).test(piece)) &&
    names.every(({ text }) => holdsName(piece, text))
  )
}

function outcomeProblem(saysItFailed: boolean, text: string): ClaimProblem {
  return saysItFailed
    ? problem('WRITE_HELD', `${said(text)}, but its verification held`)
    : problem('WRITE_NOT_HELD', `${said(text)}, but its write failed or was not verified`)
}

/** Whether the write fits the verb and contains all the names. */
function isOf(write: CitableWrite, { verb }: Action, names: readonly Name[]): boolean {
  const whole = textOf(write)
  return isVerbOf(verb, whole, true) && names.every(({ text }) => holdsName(whole, text))
}

export function textOf(write: CitableWrite): string {
  return write.parts.map((part) => `${part.head} ${part.document().text}`).join(' ')
}

/**
 * Whether the write is about all these names: by its rows, or because a row names a list and a name
 * is a member of this list.
 */
export function isAbout(write: CitableWrite, names: readonly Name[], { parts }: ClaimEvidence): boolean {
  const whole = textOf(write)
  const target = write.parts[0]?.head.split(' ')[0] ?? ''
  const members = parts
    .filter(({ source, head }) => source === 'read' && target !== '' && holdsName(head, target))
    .flatMap((part) => part.document().leaves)
    .flatMap((leaf) => (leaf.path.at(-1) === 'id' && typeof leaf.value === 'string' ? [foldText(leaf.value)] : []))
    .filter((id) => id !== target)
  const namesMembers = members.some((id) => holdsName(whole, id))
  return names.every(({ text }) => holdsName(whole, text) || (!namesMembers && members.includes(foldText(text))))
}

/** Whether a quoted line reports that somebody else did the act, with the names of the clause. */
function isOthers(claim: Claim, action: Action, clause: Clause, places: readonly QuotePlace[]): boolean {
  return claim.kind !== 'did' && !action.isOurs && places.some((place) => tellsAction(place, action.verb, clause, true))
}

/**
 * Matches tools and programs whose rows record events: any form of a verb in such a row is an
 * event.
 */
const recording =
  /(?<![a-z])(?:git|git_log|git_show|journalctl|recent_changes|search_logs|list_incident_events|rollout_history|kubernetes_events)(?![a-z])/

/** Whether a row records events, so that any form of a verb in it means a done act. */
export const isRecord = ({ head }: Part) => recording.test(head)

/**
 * Whether the quoted piece reports this act on the clause's subject, in a past form or as a record
 * of events. An annotation, a hint or a runbook that demands the act reports nothing.
 */
export function tellsAction(
  { part, leaf, line, from, to, about }: QuotePlace,
  verb: string,
  clause: Clause,
  isQuoted = false,
): boolean {
  if (part.source === 'refusal') return verb === 'blocked'
  if (part.source !== 'read' && part.source !== 'alert') return false
  if (/^more_tools|runbook|knowledge|precedent/.test(part.tool)) return false
  const key = leaf.path.at(-1) ?? ''
  const isKeyed = !/^\d+$/.test(key) && leaf.value !== false && leaf.value !== null && leaf.value !== 0
  const piece = `${isKeyed ? key : ''} ${line.slice(from, to)}`.toLowerCase()
  const forms = isRecord(part) ? anyFormsOf(verb) : pastFormsOf(verb)
  const found = forms.map((form) => new RegExp(`(?<![a-z_])${form}(?![a-z_])`).exec(piece)).find((match) => match)
  if (!found || /\b(?:not|never|no|without|n't)\b[^,;]*$/.test(piece.slice(0, found.index))) return false
  const names = clause.groups.flat().filter(({ kind }) => kind === 'name')
  const whole = `${about} ${line} ${part.head}`
  if (names.length > 0) return names.some(({ text }) => holdsName(whole, text))
  if (isQuoted) return true
  if (clause.moments.some((moment) => holdsMoment(moment, line))) return true
  const figures = figuresIn(clause.text).map(({ value }) => String(value))
  if (figures.some((figure) => !whole.includes(figure))) return false
  const subject = (clause.text.replaceAll(verb, ' ').match(/[a-z]{3,}/g) ?? []).filter((word) => !subjectless.has(word))
  return subject.length === 0 || subject.some((word) => whole.includes(word.replace(/s$/, '')))
}

const subjectless = new Set(
  'the and was were has had been its again that this then now there are for with from'.split(' '),
)

/** Refuses a claim of absence that also claims the state of something. */
function otherWords(clauses: readonly Clause[]): ClaimProblem | null {
  for (const clause of clauses) {
    const state = statesIn(clause.text).find(({ isDenied }) => !isDenied)
    if (state && !/\b(?:no|none|nothing)\b/.test(clause.text))
      return problem('NOT_ABSENT', `the claim also says ${said(state.word)}`)
  }
  return null
}

const ownKinds = /^(?:model_answered|commented|call_judged|tool_started|correction_sent|resolved|escalated)$/

/**
 * Whether a line is no evidence because it repeats this agent's answers or the arguments of a
 * program.
 */
export function isOwnWord({ part, item, line, leaf }: QuotePlace): boolean {
  if (part.source !== 'read') return false
  if (leaf.path[0] === 'cmd_executed') return true
  if (line.length > 8 && /\s/.test(line) && part.head.includes(line)) return true
  let top = item
  while (top.list?.item.list) top = top.list.item
  const kind = part.document().leaves.find((each) => each.path.at(-1) === 'kind' && each.item === top)?.value
  return typeof kind === 'string' && ownKinds.test(kind)
}
