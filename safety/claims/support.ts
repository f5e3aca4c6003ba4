import type { Claim } from '../../domain/claim.ts'
import { holdsName, type Name } from './actions.ts'
import { isNothing } from './known-words.ts'
import { keyWords } from './measure.ts'
import { numbersProblem } from './number-support.ts'
import { holdsMoment } from './numbers.ts'
import { type ClaimProblem, foldText, problem, type QuotePlace, said } from './quote.ts'
import { type ClaimEvidence, isInTemplates, type Part } from './rows.ts'
import { statesProblem } from './states.ts'
import type { Clause } from './text.ts'

const denies =
  /\b(?:no|not|none|nothing|never|without|absent|missing|lacks?|lacked|gone|empty|free of|clean|zero|any ?more|neither|nobody|cannot|does not|n't)\b|n't\b/
/** Programs that print only what matches, and programs that show only a part of a text. */
const filters = /^(?:e?grep|fgrep|rg|zgrep|pgrep|pidof|awk|jq|find|locate|which)$/
const pieces = /^(?:tail|head|sed|dd|cut)$/

/** Returns why these rows do not show that something is absent; null if each row does. */
export function absenceProblem(claim: Claim, clauses: readonly Clause[], evidence: ClaimEvidence): ClaimProblem | null {
  if (!denies.test(claim.text.toLowerCase()))
    return problem('NOT_ABSENT', 'the text does not say that something is absent')
  for (const { seq, text } of claim.quotes) {
    const part = evidence.parts.find((each) => each.seqs.includes(seq) && each.source === 'read')
    if (!part) return problem('NO_READ', `row ${seq} is not a read`)
    const wrong = absentProblem(part, text, claim.text)
    if (wrong) return wrong
    if (mustBeFresh(claim.text) && part.seq < evidence.lastWrite) {
      return problem('READ_BEFORE_WRITE', `row ${seq} was read before the last write`)
    }
  }
  for (const name of clauses.flatMap(({ groups }) => groups.flat())) {
    const isAbout = claim.quotes.some(({ seq, text }) =>
      evidence.parts.some((part) => part.seqs.includes(seq) && holdsName(`${part.head} ${foldText(text)}`, name.text)),
    )
    if (!isAbout) return problem('OTHER_RESOURCE', `nothing cited is about ${said(name.text)}`)
  }
  return null
}

/**
 * Checks that a row shows the absence of a text: the row searched for the text, got a complete
 * answer without an error, and the answer does not contain the text.
 */
function absentProblem(part: Part, text: string, claimed: string): ClaimProblem | null {
  const wanted = foldText(text)
  if (!part.isWhole) return problem('CUT', `the result of row ${part.seq} is cut`)
  if (isFailed(part.data)) return problem('NOT_ASKED', `row ${part.seq} answered with an error`)
  if (Number(part.arguments.offset ?? 0) > 0 || Number(part.arguments.from ?? 1) > 1)
    return problem('CUT', `row ${part.seq} leaves out the beginning`)
  if (wanted === '') {
    return isEmpty(part.data) ? null : problem('STILL_THERE', `the result of row ${part.seq} is not empty`)
  }
  if (!isSaid(wanted, claimed)) return problem('NOT_ABSENT', `the text does not mention ${said(text)}`)
  if (/^(?:no|not|none|nothing|any|anything|never|nobody)$/.test(wanted))
    return problem('NOT_ABSENT', `${said(text)} names nothing`)
  const troubled = trouble.test(wanted) ? troubles.exec(answerOf(part))?.[0] : undefined
  if (troubled) return problem('STILL_THERE', `${said(troubled)} is in row ${part.seq}`)
  // Accepts an empty answer. An empty list of log templates is accepted only for the text that the
  // call searched for.
  if (isEmpty(part.data) && (!isInTemplates(part.data) || part.head.includes(wanted))) return null
  if (stands(answerOf(part), wanted)) return problem('STILL_THERE', `${said(text)} is in row ${part.seq}`)
  if (isInTemplates(part.data)) {
    const remedy = 'search the logs for this text alone (contains), or read_result with match'
    return problem('CUT', `row ${part.seq} shows templates of lines, not the lines: ${remedy}`)
  }
  return narrowed(part, wanted, claimed)
}

/**
 * Whether each cited row searched for the absent text. A quote with an empty text needs a row with
 * an empty answer.
 */
export function isAskedFor(claim: Claim, { parts }: ClaimEvidence): boolean {
  return claim.quotes.every(({ seq, text }) => {
    const part = parts.find((each) => each.seqs.includes(seq) && each.source === 'read')
    if (!part) return false
    const wanted = foldText(text)
    if (wanted === '') return isEmpty(part.data)
    const { argv, command } = part.arguments
    const words = Array.isArray(argv) ? argv.map(String) : String(command ?? '').split(/[\s|;&]+/)
    const asked = [...words, ...['name', 'text', 'match', 'contains', 'query'].map((key) => part.arguments[key])]
    return asked.some((each) => typeof each === 'string' && foldText(each) === wanted)
  })
}

/** Nouns for trouble. "No errors" denies every kind of trouble. */
const trouble = /^(?:errors?|failures?|problems?|issues?|warnings?|crash(?:es)?|faults?)$/
const troubles =
  /(?<![a-z_])(?:err(?:or)?s?(?![a-z])|fail\w*|fatal|panic\w*|exception\w*|killed|out of memory|crash\w*|critical|eaddrinuse|denied|timed out|refused|reset by)/

/** Compares whole words: trace.log.3 is not in trace.log.30. */
function stands(answer: string, wanted: string): boolean {
  if (/[a-z]{3,}s$/.test(wanted) && answer.includes(wanted.slice(0, -1))) return true
  return /^[a-z0-9].*[a-z0-9]$/.test(wanted) && /\d/.test(wanted) ? holdsName(answer, wanted) : answer.includes(wanted)
}

/** Returns the answer without the parts that repeat the request. */
function answerOf(part: Part): string {
  const { text, leaves } = part.document()
  return leaves
    .filter(({ path }) => !/^(?:cmd_executed|path|cwd|on|key)$/.test(path[0] ?? ''))
    .flatMap(({ lines }) => lines.map(({ start, end }) => text.slice(start, end)))
    .join('\n')
}

/**
 * Returns why an answer cannot show that the text is absent: the answer has only matches of another
 * text, or is only a part. Null if it can show the absence.
 */
function narrowed(part: Part, wanted: string, claimed: string): ClaimProblem | null {
  const { name, text, match, query, argv, command, offset, tail } = part.arguments
  const asked = [name, text, match, query]
    .filter((each) => typeof each === 'string')
    .map((each) => foldText(each as string))
  if (asked.some((each) => !wanted.includes(each) && !each.includes(wanted))) {
    return problem('NOT_ASKED', `row ${part.seq} asked for something else`)
  }
  const words = Array.isArray(argv) ? argv.map(String) : String(command ?? '').split(/[\s|;&]+/)
  const programs = words.map((word) => word.split('/').at(-1) as string)
  if (programs.some((program) => filters.test(program)) && !words.some((word) => isRelated(foldText(word), wanted))) {
    return problem('NOT_ASKED', `row ${part.seq} asked for something else`)
  }
  const isPiece = programs.some((program) => pieces.test(program)) || offset !== undefined || tail !== undefined
  if (isPiece && !/\b(?:last|first|end|tail|head|newest|latest)\b/i.test(claimed))
    return problem('CUT', `row ${part.seq} shows only a part`)
  return null
}

const isRelated = (word: string, wanted: string) => word.length > 2 && (wanted.includes(word) || word.includes(wanted))

function isSaid(wanted: string, claimed: string): boolean {
  const text = foldText(claimed)
  const words = wanted.split(/[^\p{L}\p{N}_.-]+/u).filter((word) => word.length > 1)
  return text.includes(wanted) || (words.length > 0 && words.every((word) => text.includes(word.replace(/s$/, ''))))
}

/** Matches messages of a program that could not read everything, even if it exits with 0. */
const unreadable =
  /denied|not permitted|cannot|can't|unable|fail|error|not seeing|insufficient|timed? ?out|incomplete|no such|no journal|corrupt/i

function isFailed(data: unknown): boolean {
  if (data === null || typeof data !== 'object') return false
  const { exit_code, stderr } = data as { exit_code?: unknown; stderr?: unknown }
  if (typeof stderr === 'string' && unreadable.test(stderr)) return true
  if (typeof exit_code !== 'number' || exit_code === 0) return false
  return exit_code !== 1 || (typeof stderr === 'string' && stderr.trim() !== '')
}

/** Whether the answer is empty: an empty list, or a command without output. */
function isEmpty(data: unknown): boolean {
  if (data === null || data === undefined) return true
  if (typeof data !== 'object') return String(data).trim() === ''
  if (Array.isArray(data)) return data.length === 0
  const { stdout, content, total, isEmpty: saysEmpty, ...others } = data as Record<string, unknown>
  // Uses the field `isEmpty` of a reading, because its lists are nested more deeply.
  if (typeof saysEmpty === 'boolean') return saysEmpty
  if (typeof stdout === 'string') return stdout.trim() === ''
  if (typeof content === 'string') return content.trim() === ''
  const lists = Object.values(others).filter(Array.isArray)
  return lists.length > 0 ? lists.every((list) => list.length === 0) : total === 0
}

function mustBeFresh(text: string): boolean {
  return /\b(?:any ?more|no longer|now|gone|left)\b/i.test(text)
}

const gone =
  /\b(?:no longer (?:listed|there|present|exists?|in)|(?:is|are|was|were|has) gone|not (?:listed|there|present) any ?more|gone)\b/
const shownGone = /\b(?:gone|ended|removed|deleted|not found|no longer|does not exist)\b/

/**
 * Checks a clause that says that something is gone: a quote must state it, or no later row may
 * contain the name.
 */
export function goneProblem(
  clause: Clause,
  cited: readonly Part[],
  quoted: readonly string[],
  evidence: ClaimEvidence,
): ClaimProblem | null {
  if (!gone.test(clause.text)) return null
  if (quoted.some((line) => shownGone.test(line))) return null
  const names: Name[] = clause.groups.length > 0 ? clause.groups.flat() : clause.carried
  const reads = cited.filter(({ source, seq }) => source === 'read' && seq > evidence.lastWrite)
  const missing = names.filter(({ text }) =>
    reads.some((part) => part.isWhole && !isInTemplates(part.data) && !holdsName(answerOf(part), text)),
  )
  if (
    names.length > 0 &&
    missing.length > 0 &&
    reads.every((part) => missing.every(({ text }) => !holdsName(answerOf(part), text)))
  )
    return null
  return problem('STILL_THERE', `no row shows that ${said(names[0]?.text ?? clause.raw)} is gone`)
}

const noNoun =
  /\b(?:no|without|zero|none of the) ((?:(?!longer|one|more|json|matter|reason|idea|need|doubt)[a-z]{3,}) ?[a-z]*)/g

/** Checks a denial within a sentence ("no errors"): a whole cited answer must show it. */
export function denialProblem(
  clause: Clause,
  cited: readonly Part[],
  places: readonly QuotePlace[],
): ClaimProblem | null {
  for (const [, phrase] of clause.text.matchAll(noNoun)) {
    const noun = (phrase as string).trim().split(' ')[0] as string
    const stem = noun.replace(/(?:ies|es|s)$/, '')
    if (stem.length < 3) continue
    // Accepts a field that counts the noun as zero: errorsLastHour: 0.
    if (
      places.some(
        ({ leaf }) => isNothing(leaf.value) && keyWords(leaf.path.slice(-1)).some((key) => key.startsWith(stem)),
      )
    )
      continue
    const pattern = trouble.test(noun) ? troubles : new RegExp(`(?<![a-z_])${stem}`)
    const reads = cited.filter(({ source }) => source !== 'record')
    const holding = reads.find(
      (part) =>
        pattern.test(answerOf(part)) && !new RegExp(`\\b(?:no|not|without) (?:\\w+ )?${stem}`).test(answerOf(part)),
    )
    // Answers STILL_THERE only for nouns of trouble. A row may contain any other noun and still
    // show its absence as the claim means it, as in "no replica follows it".
    const isTrouble = trouble.test(noun)
    if (holding && holding.source === 'read')
      return problem(isTrouble ? 'STILL_THERE' : 'NOT_ABSENT', `${said(noun)} is in row ${holding.seq}`)
    if (isTrouble && reads.length > 0 && reads.every(({ isWhole }) => !isWhole))
      return problem('CUT', `the cited result was cut`)
  }
  return null
}

/**
 * Checks that the quoted places show the states, numbers and times of a clause. Returns the first
 * that they do not show.
 */
export function findUnsupported(
  clause: Clause,
  places: readonly QuotePlace[],
  isLoose: boolean,
  shown = '',
): ClaimProblem | null {
  return (
    statesProblem(clause, places, isLoose, shown) ??
    numbersProblem(clause, places, isLoose) ??
    timesProblem(clause, places)
  )
}

function timesProblem(clause: Clause, places: readonly QuotePlace[]): ClaimProblem | null {
  for (const moment of clause.moments) {
    if (places.some(({ line, part }) => holdsMoment(moment, line) || holdsMoment(moment, part.at))) continue
    return problem('TIME_NOT_SHOWN', `no quote gives the time ${said(moment.text)}`)
  }
  return null
}

/** Whether an element is a line of a page or log: a text in a list, and not a field. */
function isLine({ part, item, leaf }: QuotePlace): boolean {
  if (item.list === null || typeof leaf.value !== 'string') return false
  return part.document().leaves.filter((each) => each.item === item).length === 1
}

/** Finds the names of a clause that no quote is about. */
export function findUnnamed(
  clause: Clause,
  places: readonly QuotePlace[],
  evidence: ClaimEvidence,
): ClaimProblem | null {
  for (const name of clause.groups.flat()) {
    if (holdsName(evidence.incidentId, name.text)) continue
    if (
      places.some(
        (place) =>
          holdsName(place.about, name.text) ||
          // Counts only the quoted line of a page or log, not the rest of the result.
          (name.kind === 'literal' && !isLine(place) && place.part.document().text.includes(name.text.toLowerCase())),
      )
    )
      continue
    return problem('OTHER_RESOURCE', `nothing quoted is about ${said(name.text)}`)
  }
  return null
}

/** Checks "A on B", "from B", "to B": one place must show both names in this order. */
export function findMisplaced(clause: Clause, places: readonly QuotePlace[]): ClaimProblem | null {
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
