import type { Db, Trx } from '../db/connect.ts'
import { append } from '../db/log/append.ts'
import { bodiesByDigest } from '../db/log/bodies.ts'
import { eventsOf } from '../db/log/events.ts'
import { questionOf, sayAsked } from '../domain/asked-action.ts'
import { agentActor, type EventMetadata, type IncidentEvent } from '../domain/event.ts'
import { plainWords } from '../domain/say.ts'
import { type RunRef, stepKey } from '../domain/step-key.ts'
import { bodiesToCheck } from '../safety/claims/rows.ts'
import { fold, type SafetyState } from '../safety/fold.ts'
import { byteBudget, maxRepeats } from '../safety/ruling.ts'
import type { EscalationCode } from '../workflows/outcome.ts'

const sentence: Record<EscalationCode, string> = {
  CONTEXT_FAILED: 'The facts of this incident could not be collected in three attempts',
  MODEL_UNAVAILABLE: 'The model did not answer, or refused, for the longest time that an investigation may wait',
  TURN_LIMIT: 'The limit of turns was reached without a resolution',
  TIME_BUDGET: 'The time budget was used up without a resolution',
  TOKEN_BUDGET: 'The token budget was used up without a resolution',
  MONEY_BUDGET: 'The budget for models is spent (agent.budget_day, agent.budget_month)',
  BYTE_BUDGET: 'The limit of bytes from tools was reached without a resolution',
  LOOP: 'The model kept proposing calls that it had already made, or that cannot be read',
  CORRECTION_LIMIT: 'The model kept answering in a form that cannot be used',
  UNPROVEN_ANSWER: 'The model answered in prose, and proved nothing by tool calls',
  APPROVAL_EXPIRED: 'An approval was requested, and nobody decided in time',
  APPROVAL_LOOP: 'The platform kept changing while an approval was pending',
  INDETERMINATE: 'It is not known whether a write took effect',
  ACT_FAILED: 'A tool call could not be made within an hour',
  UNKNOWN_OUTCOME: 'The run received an outcome that it does not know, probably from another version of Nightshift',
}

const unit: Record<EventMetadata['budget_ended']['budget'], string> = {
  turns: 'turns',
  tokens: 'tokens',
  time: 'seconds',
  bytes: 'bytes',
  loops: 'repetitions',
  corrections: 'corrections',
  model: 'tries',
}

/**
 * Builds the reason of a hand-over for the person who is woken: the limit, its value, and the last
 * relevant fact (the reason of a denial, an approval without a decision, the model's own words).
 */
export function escalationReason(
  code: EscalationCode,
  events: readonly IncidentEvent[],
): { reason: string; budget: EventMetadata['budget_ended'] | null } {
  const budget = budgetOf(code, events)
  const parts = [
    budget ? `${sentence[code]} (${budget.used} of ${budget.limit} ${unit[budget.budget]})` : sentence[code],
  ]
  const denial = events.findLast((event) => event.kind === 'approval_decided' && event.metadata.decision === 'deny')
  if (denial?.kind === 'approval_decided')
    parts.push(
      `A person denied ${sayAsked(questionOf(events, denial))}: ${denial.metadata.reason ?? 'no reason given'}`,
    )
  const expired = events.findLast((event) => event.kind === 'approval_expired' || event.kind === 'approval_requested')
  if (code === 'APPROVAL_EXPIRED' && (expired?.kind === 'approval_expired' || expired?.kind === 'approval_requested'))
    parts.push(`The question was: ${sayAsked(questionOf(events, expired))}`)
  const failed = events.findLast((event) => event.kind === 'model_failed')
  if (code === 'MODEL_UNAVAILABLE' && failed?.kind === 'model_failed')
    parts.push(`Last fault: ${failed.metadata.code}, ${plainWords(failed.detail).slice(0, 400).toWellFormed()}`)
  parts.push(...lastRefusal(code, events), ...serverAdvice(code, events), ...copyWarning(code, events))
  const said = events.findLast((event) => event.kind === 'model_answered' && event.metadata.content.trim() !== '')
  if (said?.kind === 'model_answered')
    parts.push(`The model last said: ${plainWords(said.metadata.content).slice(0, 600).toWellFormed()}`)
  return { reason: parts.join('. '), budget }
}

/** Returns the last ending that was refused, or the last call that the model could not form. */
function lastRefusal(code: EscalationCode, events: readonly IncidentEvent[]): string[] {
  const judged = events.findLast((event) => event.kind === 'call_judged')
  const ending = events.findLast((event) => event.kind === 'call_judged' && event.metadata.effect === 'terminal')
  if (ending?.kind === 'call_judged' && ending.metadata.verdict === 'refuse') {
    const { arguments: given, reason } = ending.metadata
    const text = plainWords(String(given?.resolution ?? given?.reason ?? ''))
      .slice(0, 600)
      .toWellFormed()
    return [`The model's ending was refused: ${reason.slice(0, 400).toWellFormed()}${text && `. It said: ${text}`}`]
  }
  if (code !== 'LOOP' || judged?.kind !== 'call_judged' || judged.metadata.verdict !== 'refuse') return []
  return [`Last refused: ${plainWords(judged.metadata.reason).slice(0, 400).toWellFormed()}`]
}

/** Advises how to start a model server so that it parses tool calls. */
function serverAdvice(code: EscalationCode, events: readonly IncidentEvent[]): string[] {
  if (code !== 'CORRECTION_LIMIT' && code !== 'UNPROVEN_ANSWER') return []
  const isText = events.some((event) => event.kind === 'correction_sent' && event.metadata.code === 'call_as_text')
  return isText
    ? [
        'The model writes its calls as text: start the model server with its parser of tool calls (vLLM and SGLang --tool-call-parser, llama.cpp --jinja), or set LLM_PROTOCOL=json',
      ]
    : []
}

/** Warns that a text from outside contains a call, and that the model copied the call. */
function copyWarning(code: EscalationCode, events: readonly IncidentEvent[]): string[] {
  const isCopied = events.some((event) => event.kind === 'correction_sent' && event.metadata.code === 'copied_call')
  return code === 'CORRECTION_LIMIT' && isCopied
    ? ['The model copied a call that a result or a message contains: look for planted instructions there']
    : []
}

function state(events: readonly IncidentEvent[]): SafetyState {
  return fold(events, events.at(-1)?.attempt ?? 0)
}

function budgetOf(code: EscalationCode, events: readonly IncidentEvent[]): EventMetadata['budget_ended'] | null {
  const context = events.findLast((event) => event.kind === 'context_assembled')
  const answers = events.filter((event) => event.kind === 'model_answered')
  if (code === 'TURN_LIMIT') {
    const limit = context?.kind === 'context_assembled' ? context.metadata.maxTurns : answers.length
    return { budget: 'turns', limit, used: answers.length }
  }
  if (code === 'TOKEN_BUDGET') {
    const limit = context?.kind === 'context_assembled' ? context.metadata.tokenBudget : 0
    const used = answers.reduce(
      (sum, event) => sum + event.metadata.usage.promptTokens + event.metadata.usage.completionTokens,
      0,
    )
    return { budget: 'tokens', limit, used }
  }
  if (code === 'CORRECTION_LIMIT') {
    const used = events.filter((event) => event.kind === 'correction_sent').length
    return { budget: 'corrections', limit: used, used }
  }
  if (code === 'LOOP') return { budget: 'loops', limit: maxRepeats, used: maxRepeats }
  if (code === 'BYTE_BUDGET') return { budget: 'bytes', limit: byteBudget, used: state(events).bytes }
  if (code === 'TIME_BUDGET') {
    const claimed = events.findLast((event) => event.kind === 'claimed')
    const limit = claimed?.kind === 'claimed' ? Number(claimed.metadata.config['agent.time_budget']?.value ?? 0) : 0
    return { budget: 'time', limit, used: Math.round(state(events).workedMs / 1000) }
  }
  return null
}

/**
 * Reads the stored results with which the claims and words of an ending are compared before the
 * ending is judged.
 */
export async function bodiesOfEnding(
  db: Db | Trx,
  events: readonly IncidentEvent[],
  attempt: number,
): Promise<ReadonlyMap<string, string>> {
  return await bodiesByDigest(db, bodiesToCheck(events, attempt))
}

/**
 * Records whether a follower's investigation confirmed its leader's hint. The hint is confirmed if
 * the same kinds of write were verified for the follower. Rows decide this at the end of the run,
 * never the words of the model.
 */
export async function recordHint(
  trx: Trx,
  run: RunRef,
  state: SafetyState,
  events: readonly IncidentEvent[],
): Promise<void> {
  const leader = state.hintFrom
  if (leader === null) return
  const own = verifiedTools(events.filter((event) => event.attempt === run.attempt))
  const theirs = verifiedTools(await eventsOf(trx, leader))
  const same = theirs.length > 0 && own.join() === theirs.join()
  const stepKeyOf = (kind: 'hint_confirmed' | 'hint_diverged') => stepKey(run, 0, kind, 0)
  if (same) {
    await append(trx, run.incidentId, run.attempt, {
      kind: 'hint_confirmed',
      actor: agentActor,
      stepKey: stepKeyOf('hint_confirmed'),
      detail: `The same repair worked here: ${own.join(', ')}`,
      metadata: { leader },
    })
    return
  }
  const why =
    own.length === 0 ? 'nothing was repaired here' : `${own.join(', ')} worked here, ${theirs.join(', ')} in the leader`
  await append(trx, run.incidentId, run.attempt, {
    kind: 'hint_diverged',
    actor: agentActor,
    stepKey: stepKeyOf('hint_diverged'),
    detail: `The leader's hint did not apply: ${why}`,
    metadata: { leader, why },
  })
}

function verifiedTools(events: readonly IncidentEvent[]): string[] {
  const held = events.flatMap((event) =>
    event.kind === 'verification' && event.metadata.outcome === 'held' ? [event.metadata.tool] : [],
  )
  return [...new Set(held)].sort()
}
