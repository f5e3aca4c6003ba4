import type { VerificationOutcome } from '../../domain/envelope.ts'
import type { EscalationCategory } from '../../domain/incident.ts'
import type { Conversation, RunbookStep, ToolResult } from './conversation.ts'

/** Facts in a tool result. They are read tolerantly: a missing fact is null and never guessed. */
export type Facts = Record<string, unknown>

/**
 * Lists the successful calls of a tool, oldest first. With `id`, lists only calls that have the id
 * as an argument.
 */
export function done(steps: RunbookStep[], tool: string, id?: string): (RunbookStep & { result: ToolResult })[] {
  return steps.filter(
    (step): step is RunbookStep & { result: ToolResult } =>
      step.tool === tool && step.result?.ok === true && (id === undefined || Object.values(step.args).includes(id)),
  )
}

/** Lists the steps after the last successful call of a tool. */
export function stepsAfter(steps: RunbookStep[], tool: string): RunbookStep[] {
  const last = steps.findLastIndex((step) => step.tool === tool && step.result?.ok)
  return last < 0 ? [] : steps.slice(last + 1)
}

export function object(data: unknown): Facts {
  return data !== null && typeof data === 'object' && !Array.isArray(data) ? (data as Facts) : {}
}

/** Returns the rows of a result: the result if it is an array, or the first array in it. */
export function rows(data: unknown): Facts[] {
  const { items, nodes, resources, ...rest } = object(data)
  const list = [data, items, nodes, resources, ...Object.values(rest)].find(Array.isArray)
  return ((list ?? []) as unknown[]).map(object)
}

export function text(facts: Facts, ...names: string[]): string | null {
  const value = names.map((name) => facts[name]).find((each) => typeof each === 'string' && each !== '')
  return (value as string | undefined) ?? null
}

export function number(facts: Facts, ...names: string[]): number | null {
  const value = names.map((name) => facts[name]).find((each) => typeof each === 'number')
  return (value as number | undefined) ?? null
}

/** Returns the health in a result about a shard or node: nominal, degraded, critical or unknown. */
export function healthIn(data: unknown): string | null {
  return typeof data === 'string' ? data : text(object(data), 'health', 'status')
}

export function seqs(steps: { result: ToolResult | null }[]): number[] {
  const all = steps.flatMap(({ result }) => [result?.meta.seq, result?.meta.verification?.seq])
  return [...new Set(all.filter((seq) => seq !== undefined))]
}

/** Returns the outcome of the last verification that a result in these steps mentions. */
export function lastVerification(steps: RunbookStep[]): VerificationOutcome | null {
  return steps.findLast(({ result }) => result?.meta.verification)?.result?.meta.verification?.outcome ?? null
}

/**
 * Returns the id of the resource of this kind: the incident's own resource, or a resource in the
 * alerts' labels.
 */
export function subject({ context }: Conversation, kind: string): string | null {
  const resource = context!.incident.resource
  if (resource?.kind === kind) return resource.id
  return context!.alerts.map(({ labels }) => labels[kind]).find((each) => each !== undefined) ?? null
}

export type RunbookQuote = { seq: number; text: string }
export type RunbookClaim = { kind: 'did' | 'is' | 'was' | 'absent'; text: string; quotes: RunbookQuote[] }

type Answered = RunbookStep & { result: ToolResult }

/** Quotes fields of a result as the result's JSON writes them. Leaves out absent fields. */
export function quoted(step: RunbookStep, ...fields: string[]): RunbookQuote[] {
  return quotedOf(step, object(step.result?.data), ...fields)
}

/** Quotes fields of one element of a list in a result. */
export function quotedOf(step: RunbookStep, facts: Facts, ...fields: string[]): RunbookQuote[] {
  return fields.flatMap((field) =>
    facts[field] == null
      ? []
      : [{ seq: seqOf(step), text: `${JSON.stringify(field)}:${JSON.stringify(facts[field])}` }],
  )
}

/** Quotes a piece of a result's text, cut to the length of a quote. */
export function words(step: RunbookStep, text: string): RunbookQuote[] {
  return [{ seq: seqOf(step), text: text.slice(0, 400) }]
}

/** Claims that a text is absent from the results of these steps. */
export function claimAbsent(text: string, steps: readonly Answered[], missing: string): RunbookClaim {
  return { kind: 'absent', text, quotes: steps.map((step) => ({ seq: seqOf(step), text: missing })) }
}

function seqOf(step: RunbookStep): number {
  return step.result?.meta.seq ?? 0
}

export type RunbookCall = { tool: string; args: Record<string, unknown> }

/** One turn of the operator: its text, and the proposed calls or the final answer. */
export type OperatorTurn = { say: string } & (
  | { calls: RunbookCall[] }
  | { answer: { summary: string; confidence: 'high' | 'medium' | 'low' } }
)

type OperatorOutcome = 'repaired' | 'self_resolved' | 'no_fault'

const reasonCharacters = 2000
const nextStepCharacters = 1000

export function call(tool: string, args: Record<string, unknown>): RunbookCall {
  return { tool, args }
}

export function resolve(
  { context }: Conversation,
  outcome: OperatorOutcome,
  resolution: string,
  claims: RunbookClaim[],
): OperatorTurn {
  const args = { id: context!.incident.id, resolution, outcome, claims }
  return { say: resolution, calls: [call('resolve_incident', args)] }
}

/**
 * The category of an escalation, and advice for a person's first step. Advice is not a finding, so
 * it needs no evidence.
 */
export type Handover = { category?: EscalationCategory; nextStep?: string }

/**
 * Escalates the incident. Cuts the reason to the length that `escalate_incident` allows, because a
 * plan may list many VMs.
 */
export function escalate(
  { context }: Conversation,
  text: string,
  { category, nextStep }: Handover = {},
): OperatorTurn & { calls: RunbookCall[] } {
  const args = {
    id: context!.incident.id,
    reason: cut(text, reasonCharacters),
    ...(category && { category }),
    ...(nextStep && { next_step: cut(nextStep, nextStepCharacters) }),
  }
  return { say: args.reason, calls: [call('escalate_incident', args)] }
}

function cut(text: string, characters: number): string {
  return text.length <= characters ? text : `${text.slice(0, characters - 1)}…`
}

/**
 * Handles a resource that is nominal when it is first read. If all alerts have ended, the fault
 * ended by itself. If an alert fires, the fault is unexplained and a person takes over. If there
 * was no alert, there was no fault.
 */
export function nothingWrong(
  conversation: Conversation,
  what: string,
  quotes: RunbookQuote[],
  kind: RunbookClaim['kind'] = 'is',
): OperatorTurn {
  const { alerts, incident } = conversation.context!
  const claims = [{ kind, text: what, quotes }]
  if (alerts.length === 0) {
    return resolve(conversation, 'no_fault', `${what}; nothing was found that needs a repair.`, claims)
  }
  const firing = firingNow(conversation)
  if (firing === null) {
    return {
      say: `${what}. I check whether its alert still fires.`,
      calls: [call('get_incident', { id: incident.id })],
    }
  }
  if (firing === 0) return resolve(conversation, 'self_resolved', `${what}; the alert has ended by itself.`, claims)
  return escalate(conversation, `${what}, and its alert fires.`, {
    category: 'no_fault_found',
    nextStep: 'Check the rule of this alert. Mark the alert as expected if it is, or say what I should have found.',
  })
}

/**
 * Counts the alerts that fire, as the last read of the incident shows. 0 if all alerts in the
 * context have ended. Null if the incident has not been read.
 */
function firingNow({ context, steps }: Conversation): number | null {
  if (context!.alerts.every(({ status }) => status === 'resolved')) return 0
  const read = done(steps, 'get_incident').at(-1)
  return read ? (number(object(object(read.result.data).alerts), 'firing') ?? context!.alerts.length) : null
}
