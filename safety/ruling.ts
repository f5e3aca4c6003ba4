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
  /** The reason why the arguments could not be read; null if they could be read. */
  problem: string | null
  /** Whether a secret was removed from the arguments before they were stored. */
  secret?: boolean
  /** The tool's name as the model spelled it, if code corrected the name. */
  spelled?: string
  /** The form of a call that came as text. */
  written?: string
  /** Values that code converted. */
  read?: readonly { field: string; from: unknown; to: unknown }[]
  /** Result of a dry run made now, or why there is none; only for writes. */
  prepared: { ok: true; preparation: Preparation } | { ok: false; reason: string } | null
  /** Stored results, by digest, with which claims are compared; only for endings. */
  bodies?: ReadonlyMap<string, string>
}

/**
 * A correction made before the call was judged. `code` names its kind; `from` and `to` are shown.
 */
export type Correction = { code: RefusalCode; field: string; from: unknown; to: unknown }

export type Ruling = {
  verdict: Verdict
  /**
   * A fixed code, which tests, metrics and the workflow read; readers of the code never read the
   * text.
   */
  code: RulingCode
  reason: string
  /** Advice on what the model may do instead; null if nothing helps. */
  hint: string | null
  /** Data for a program that reacts to the ruling: what to read, or which value was meant. */
  details: Record<string, unknown>
  phase: Phase
  effect: EffectKind
  risk: Risk
  targets: ResourceRef[]
  actionDigest: string
  /** The arguments by the schema, with resolved names; null if they do not fit. */
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

/** The input of the rules: a call that could be parsed, with everything known about it. */
export type Judging = {
  call: Call
  /** Facts about the tool, with the risk of this call on its targets. */
  facts: ToolFacts
  resolved: ResolvedCall
  /** The effect of this call, which for a command differs from that of the tool. */
  effect: EffectKind
  /** Digest of the action that an approval, denial or grant is about. */
  digest: string
  state: SafetyState
  policy: Policy
  nowMs: number
}

/** One rule of the policy. Returns an answer if it decides, otherwise null. Pure and total. */
export type PolicyRule = (judging: Judging) => RuleAnswer | null

/** Returns the first answer of these rules, in order; null if none decides. */
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

/** Quotes a model's words, shortened and safe for a terminal or a log. */
export function quote(text: string): string {
  const inert = text.replace(/[^\p{L}\p{N}\p{P}\p{S} ]/gu, '\uFFFD')
  return JSON.stringify(inert.length > 80 ? `${inert.slice(0, 80).toWellFormed()}…` : inert)
}

/**
 * Most bytes of tool results in an attempt: about a thousand pages. Larger results would only fill
 * the disk.
 */
export const byteBudget = 32 * 1024 * 1024

type Budgets = { turns: number; tokens: number; seconds: number }

type Budget = 'turns' | 'tokens' | 'time' | 'bytes'

/** Returns the budget that is used up, or null. The run's loop counts turns and time. */
export function spentBudget(state: SafetyState, budgets: Budgets): 'tokens' | 'bytes' | null {
  if (state.tokens >= budgets.tokens) return 'tokens'
  return state.bytes >= byteBudget ? 'bytes' : null
}

/** Reads an attempt's limits from its own rows. */
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

/** Counts turns without the answers that were returned for correction, which are free. */
const billedTurn = (state: SafetyState, turn: number): number => Math.max(1, turn - state.corrections)

/** Tells the model how much of its limits is left, so that it can plan. */
export function standingOf(state: SafetyState, turn: number, budgets: Budgets): string {
  const tokens = Math.max(0, budgets.tokens - state.tokens)
  const seconds = Math.max(0, Math.round(budgets.seconds - state.workedMs / 1000))
  const time = Number.isFinite(budgets.seconds) ? ` and ${seconds} s` : ''
  return `turn ${Math.min(billedTurn(state, turn), budgets.turns)} of ${budgets.turns}, ${tokens} tokens${time} left`
}

/**
 * Code of the warning that is given one turn before the last turn. An ending that is refused on the
 * last turn cannot be corrected.
 */
const soon = 'turns_soon'

/** Whether a warning leaves no room for a correction, so that wording is only marked after it. */
export const isLastWord = (code: string): boolean => code.startsWith('budget_') && code !== `budget_${soon}`

/**
 * Warns once before a limit ends the run, so that the model hands over its findings in time. Null
 * if no limit is near, or if the warning was already given.
 */
export function nearBudget(state: SafetyState, turn: number, budgets: Budgets): { code: string; text: string } | null {
  const turnsLeft = budgets.turns - billedTurn(state, turn)
  const near: [Budget | typeof soon, boolean, string][] = [
    ['turns', turnsLeft <= 0 && budgets.turns > 1, 'This is your last turn.'],
    [
      soon,
      turnsLeft === 1 && budgets.turns > 3,
      'One turn is left after this turn. If you end now, you can still correct the ending.',
    ],
    ['tokens', state.tokens >= 0.85 * budgets.tokens, 'Your token budget is nearly used up.'],
    ['time', state.workedMs >= 850 * budgets.seconds, 'Your time is nearly used up.'],
    ['bytes', state.bytes >= 0.85 * byteBudget, 'Your budget for reading is nearly used up.'],
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

/** Number of refused repetitions that end an attempt. Earlier refusals only correct the model. */
export const maxRepeats = 3

/**
 * Whether this refusal ends the run: too many repeated calls were refused, or too many turns had
 * the same fault of form.
 */
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

/** Most calls of a round that counts as a loop. A longer round that occurs twice is not refused. */
const maxRoundCalls = 4

/** Number of equal answers after which a call is not sent again, whatever came between. */
const sameAnswers = 2

/**
 * Refuses a repeated call, a round of up to four calls that occurs twice, or a read that gave the
 * same answer twice since the last write. A call that is judged again, for example after an
 * approval, does not count.
 */
export function loopRule(call: Call, state: SafetyState): RuleAnswer | null {
  const digest = digestOf(call)
  const earlier = state.recent.filter(({ callId }) => callId !== call.callId)
  const before = earlier.map(digestOf)
  if (before.at(-1) === digest) {
    const seq = answerOf(earlier.at(-1)?.callId, state)?.seq
    return refuse(
      'REPEATED_CALL',
      `${call.tool} was called with these arguments just before${seq === undefined ? '' : `, and seq ${seq} is its result`}`,
      'Use the result you have, read something else, or escalate.',
    )
  }
  const round = roundOf([...before, digest])
  if (round !== null) {
    return refuse(
      'ALTERNATING_CALLS',
      `the same ${round} calls were made twice in the same order, ${call.tool} last`,
      'Repeated calls change nothing. Read something else, act, or escalate.',
    )
  }
  const writes = state.writes.filter((write) => write.callId !== call.callId && isSameWrite(write, call))
  if (writes.length >= sameWrites) {
    return refuse(
      'REPEATED_CALL',
      `${call.tool} has run ${writes.length} times here with the same arguments, and the fault remains`,
      'Another such call does not help. Find the cause, do something else, or escalate with what was tried.',
    )
  }
  const same = earlier.filter((_, at) => before[at] === digest).map(({ callId }) => answerOf(callId, state))
  return sameAnswerRule(call, same.slice(-sameAnswers))
}

/**
 * Refuses a read that gave the same answer before, and names the row of that answer. The model may
 * no longer have the answer, because its older turns are dropped.
 */
function sameAnswerRule(call: Call, answers: (IncidentEvent<'tool_finished'> | undefined)[]): RuleAnswer | null {
  const [first, ...others] = answers
  if (first === undefined || answers.length < sameAnswers) return null
  if (!others.every((each) => each !== undefined && resultDigest(each) === resultDigest(first))) return null
  return refuse(
    'REPEATED_CALL',
    `${call.tool} was called with these arguments ${answers.length} times, and each result matched seq ${first.seq}`,
    `Use seq ${others.at(-1)?.seq}, read something else, act, or escalate.`,
  )
}

/** Most runs of the same write in an attempt: the first, and one more after new findings. */
const sameWrites = 2

/** Whether a call repeats a write, whatever reason each gives. */
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

/** Digests an answer without the parts that differ each time. */
function resultDigest({ metadata: { result, body } }: IncidentEvent<'tool_finished'>): string {
  return body ? body.digest : JSON.stringify(withoutNoise(result.data))
}

/**
 * Returns the length of the round that has just ended for the second time; null if there is none.
 */
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
 * Whether stored results are needed to judge this call: endings and hypotheses quote stored
 * results.
 */
export function restsOnBodies(effect: EffectKind | undefined, args: Record<string, unknown> | null): boolean {
  return effect === 'terminal' || (effect === 'record' && Array.isArray(args?.quotes) && args.quotes.length > 0)
}
