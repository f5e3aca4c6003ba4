import { actionDigest } from '../domain/digest.ts'
import { withoutNoise } from '../domain/envelope.ts'
import type { EventMetadata, IncidentEvent, Verdict } from '../domain/event.ts'
import { type AllowCode, type Policy, type RefusalCode, type RulingCode, refusalOf } from '../domain/refusal.ts'
import type { ResourceRef } from '../domain/registry.ts'
import type { EffectKind, Preparation, Risk, ToolFacts } from '../domain/tool.ts'
import { type Phase, phaseOf, type SafetyState, unformedAfter } from './fold.ts'
import type { ResolvedCall } from './resolve-arguments.ts'

export type { Policy }

export type Call = {
  callId: string
  tool: string
  arguments: Record<string, unknown> | null
  /** Why the arguments could not be read, where they could not. */
  problem: string | null
  /** A secret stood in the arguments and was taken out before they were stored. */
  secret?: boolean
  /** The tool as the model spelled it, where its name was put right. */
  spelled?: string
  /** How the call was written, where it came as text. */
  written?: string
  /** Values that were read for what they plainly mean. */
  read?: readonly { field: string; from: unknown; to: unknown }[]
  /** Writes: what the world says now about what the call would do, or why it could not be asked. */
  prepared: { ok: true; preparation: Preparation } | { ok: false; reason: string } | null
  /** Endings: the stored bodies of results, by digest, that claims are held against. */
  bodies?: ReadonlyMap<string, string>
}

/** A call that code put right before judging it: `code` says how, and the record shows both. */
export type Correction = { code: RefusalCode; field: string; from: unknown; to: unknown }

export type Ruling = {
  verdict: Verdict
  /** A closed word: tests, metrics and the workflow read this, never the text. */
  code: RulingCode
  reason: string
  /** What the model may do instead; null when nothing helps. */
  hint: string | null
  /** Closed data for programs that recover: what to look at, what was meant. */
  details: Record<string, unknown>
  phase: Phase
  effect: EffectKind
  risk: Risk
  targets: ResourceRef[]
  actionDigest: string
  /** The arguments as the schema reads them, names settled; null when it cannot. */
  arguments: Record<string, unknown> | null
  corrected: Correction[]
}

export type RuleAnswer = {
  verdict: Verdict
  code: RulingCode
  reason: string
  hint?: string
  details?: Record<string, unknown>
}

/** What the rules look at: a call whose arguments could be read, and all that is known about it. */
export type Judging = {
  call: Call
  /** The tool's own, with the risk that this call has here. */
  facts: ToolFacts
  resolved: ResolvedCall
  /** What this call does, which for a command is not what its tool declares. */
  effect: EffectKind
  /** The action: an approval, denial or grant is about it. */
  digest: string
  state: SafetyState
  policy: Policy
  nowMs: number
}

/** One rule of the policy: answers when it decides, null when the next is asked. Pure and total. */
export type PolicyRule = (judging: Judging) => RuleAnswer | null

/** The first answer of these rules, in their order; null when none decides. */
export function firstAnswer(rules: readonly PolicyRule[], judging: Judging): RuleAnswer | null {
  for (const rule of rules) {
    const answer = rule(judging)
    if (answer) return answer
  }
  return null
}

export const run = (code: AllowCode, reason: string): RuleAnswer => ({ verdict: 'run', code, reason })
export const ask = (code: AllowCode, reason: string): RuleAnswer => ({ verdict: 'ask', code, reason })

export function refuse(
  code: RefusalCode,
  reason: string,
  hint?: string,
  details?: Record<string, unknown>,
): RuleAnswer {
  return { verdict: 'refuse', code, reason, ...(hint && { hint }), ...(details && { details }) }
}

/** A piece of what the model said, short and without anything a terminal or a log would act on. */
export function quote(text: string): string {
  const inert = text.replace(/[^\p{L}\p{N}\p{P}\p{S} ]/gu, '\uFFFD')
  return JSON.stringify(inert.length > 80 ? `${inert.slice(0, 80).toWellFormed()}…` : inert)
}

/** Bytes of tool results in an attempt, a thousand pages: more floods, or fills a disk. */
export const byteBudget = 32 * 1024 * 1024

type Budgets = { turns: number; tokens: number; seconds: number }

type Budget = 'turns' | 'tokens' | 'time' | 'bytes'

/** The budget that is used up, if one is. Turns and time are the loop's own to count. */
export function spentBudget(state: SafetyState, budgets: Budgets): 'tokens' | 'bytes' | null {
  if (state.tokens >= budgets.tokens) return 'tokens'
  return state.bytes >= byteBudget ? 'bytes' : null
}

/** The limits of an attempt as its own rows give them. */
export function budgetsOf(
  events: readonly IncidentEvent[],
  attempt: number,
  opening: Pick<EventMetadata['context_assembled'], 'maxTurns' | 'tokenBudget'>,
): Budgets {
  const claimed = events.find((event) => event.kind === 'claimed' && event.attempt === attempt)
  const seconds = claimed?.kind === 'claimed' ? claimed.metadata.config['agent.time_budget']?.value : null
  return {
    turns: opening.maxTurns,
    tokens: opening.tokenBudget,
    seconds: typeof seconds === 'number' ? seconds : Number.POSITIVE_INFINITY,
  }
}

/** Which turn this is by what counts: an answer that had to be corrected took none. */
const billedTurn = (state: SafetyState, turn: number): number => Math.max(1, turn - state.corrections)

/** The rest of the limits, for the model: it spends better what it can count. */
export function standingOf(state: SafetyState, turn: number, budgets: Budgets): string {
  const tokens = Math.max(0, budgets.tokens - state.tokens)
  const seconds = Math.max(0, Math.round(budgets.seconds - state.workedMs / 1000))
  const time = Number.isFinite(budgets.seconds) ? ` and ${seconds} s` : ''
  return `turn ${Math.min(billedTurn(state, turn), budgets.turns)} of ${budgets.turns}, ${tokens} tokens${time} left`
}

/** The word of the turn before the last: an ending that is refused on the last one is lost. */
const soon = 'turns_soon'

/** Whether the word leaves no time to correct: what is only marked then is refused before. */
export const isLastWord = (code: string): boolean => code.startsWith('budget_') && code !== `budget_${soon}`

/**
 * The word before a limit ends the run, once each: a model that knows hands over with what it found
 * instead of being cut off. Null while there is room, or after it was said.
 */
export function nearBudget(state: SafetyState, turn: number, budgets: Budgets): { code: string; text: string } | null {
  const turnsLeft = budgets.turns - billedTurn(state, turn)
  const near: [Budget | typeof soon, boolean, string][] = [
    ['turns', turnsLeft <= 0 && budgets.turns > 1, 'This is your last turn.'],
    [
      soon,
      turnsLeft === 1 && budgets.turns > 3,
      'One turn is left after this one. An ending now can still be put right then.',
    ],
    ['tokens', state.tokens >= 0.85 * budgets.tokens, 'Your token budget is nearly used up.'],
    ['time', state.workedMs >= 850 * budgets.seconds, 'Your time is nearly used up.'],
    ['bytes', state.bytes >= 0.85 * byteBudget, 'You have read nearly as much as an investigation may.'],
  ]
  for (const [budget, isNear, text] of near) {
    const code = `budget_${budget}`
    if (isNear && !state.corrected.has(code)) return { code, text: `${text} ${advice(state)}` }
  }
  return null
}

function advice(state: SafetyState): string {
  return phaseOf(state) === 'VERIFYING'
    ? 'Your write is not verified: call escalate_incident now with what you found.'
    : 'Call resolve_incident with evidence, or escalate_incident with what you found, now.'
}

/** Refusals for going round in circles that end an attempt: each was a correction already. */
export const maxRepeats = 3

/** Whether this refusal ends the run: the last for going in circles, or of one form. */
export function isLoopEnd(
  state: SafetyState,
  { verdict, code }: Pick<Ruling, 'verdict' | 'code'>,
  turn: number,
): boolean {
  const isRepeated = refusalOf(code).loop === true && state.loops + 1 >= maxRepeats
  const unformed = unformedAfter(state.unformed, { turn, metadata: { verdict, code } })
  return isRepeated || (unformed?.turns ?? 0) >= maxRepeats
}

const digestOf = ({ tool, arguments: args }: Pick<Call, 'tool' | 'arguments'>) => actionDigest(tool, args ?? {})

/** A round of more calls than this is a way of working, not a loop. */
const maxRoundCalls = 4

/** A call that was answered the same so often is not asked again, whatever stood between. */
const sameAnswers = 2

/**
 * The same call again, the same round of up to four calls twice, or a look-up with the same answer
 * twice since the last write. Judging one call again, as after an approval, is no repetition.
 */
export function loopRule(call: Call, state: SafetyState): RuleAnswer | null {
  const digest = digestOf(call)
  const earlier = state.recent.filter(({ callId }) => callId !== call.callId)
  const before = earlier.map(digestOf)
  if (before.at(-1) === digest) {
    const seq = answerOf(earlier.at(-1)?.callId, state)?.seq
    return refuse(
      'REPEATED_CALL',
      `${call.tool} was called with these arguments just before${seq === undefined ? '' : `, and seq ${seq} is its answer`}`,
      'Use the result you have, look at something else, or escalate.',
    )
  }
  const round = roundOf([...before, digest])
  if (round !== null) {
    return refuse(
      'ALTERNATING_CALLS',
      `the same ${round} calls were made in the same order twice, ${call.tool} the last of them`,
      'Nothing changes by asking again. Look at something else, act, or escalate.',
    )
  }
  const writes = state.writes.filter((write) => write.callId !== call.callId && isSameWrite(write, call))
  if (writes.length >= sameWrites) {
    return refuse(
      'REPEATED_CALL',
      `${call.tool} has run ${writes.length} times in this investigation for the same, and the trouble is still there`,
      'It does not help. Find the cause, do something else, or escalate with what was tried.',
    )
  }
  const same = earlier.filter((_, at) => before[at] === digest).map(({ callId }) => answerOf(callId, state))
  return sameAnswerRule(call, same.slice(-sameAnswers))
}

/** A model without its older turns lost what it read: the refusal says where it stands. */
function sameAnswerRule(call: Call, answers: (IncidentEvent<'tool_finished'> | undefined)[]): RuleAnswer | null {
  const [first, ...others] = answers
  if (first === undefined || answers.length < sameAnswers) return null
  if (!others.every((each) => each !== undefined && resultDigest(each) === resultDigest(first))) return null
  return refuse(
    'REPEATED_CALL',
    `${call.tool} was called with these arguments ${answers.length} times, and each answer was that of seq ${first.seq}`,
    `Use seq ${others.at(-1)?.seq}, look at something else, act, or escalate.`,
  )
}

/** Runs of the very same write in an attempt: one, and one more after another finding. */
const sameWrites = 2

/** By what the call says; the sentence that gives its reason counts for nothing. */
function isSameWrite(write: SafetyState['writes'][number], call: Call): boolean {
  const { reason: _, ...said } = call.arguments ?? {}
  return (
    write.tool === call.tool &&
    Object.entries(said).every(([field, value]) => JSON.stringify(write.arguments[field]) === JSON.stringify(value))
  )
}

function answerOf(callId: string | undefined, { rows }: SafetyState): IncidentEvent<'tool_finished'> | undefined {
  const row = rows.findLast((each) => each.kind === 'tool_finished' && each.metadata.callId === callId)
  return row?.kind === 'tool_finished' ? row : undefined
}

/** What an answer said, without what differs each time. */
function resultDigest({ metadata: { result, body } }: IncidentEvent<'tool_finished'>): string {
  return body ? body.digest : JSON.stringify(withoutNoise(result.data))
}

/** How many calls the round has that just ended for the second time; null when none did. */
function roundOf(digests: readonly string[]): number | null {
  for (let length = 2; length <= maxRoundCalls; length += 1) {
    if (digests.length < 2 * length) return null
    const second = digests.slice(-length)
    const first = digests.slice(-2 * length, -length)
    if (second.every((digest, at) => digest === first[at])) return length
  }
  return null
}

/**
 * Whether judging this call needs stored bodies of results: endings and hypotheses are held against
 * them.
 */
export function restsOnBodies(effect: EffectKind | undefined, args: Record<string, unknown> | null): boolean {
  return effect === 'terminal' || (effect === 'record' && Array.isArray(args?.quotes) && args.quotes.length > 0)
}
