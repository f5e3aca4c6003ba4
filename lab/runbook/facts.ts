import type { VerificationOutcome } from '../../domain/envelope.ts'
import type { EscalationCategory } from '../../domain/incident.ts'
import type { Conversation, RunbookStep, ToolResult } from './conversation.ts'

/** What tool results say, read with tolerance: a fact that is missing is null, never a guess. */
export type Facts = Record<string, unknown>

/** Successful calls of a tool, oldest first; with `id`, those whose arguments name it. */
export function done(steps: RunbookStep[], tool: string, id?: string): (RunbookStep & { result: ToolResult })[] {
  return steps.filter(
    (step): step is RunbookStep & { result: ToolResult } =>
      step.tool === tool && step.result?.ok === true && (id === undefined || Object.values(step.args).includes(id)),
  )
}

/** The steps of later turns than the last successful call of a tool. */
export function stepsAfter(steps: RunbookStep[], tool: string): RunbookStep[] {
  const last = steps.findLastIndex((step) => step.tool === tool && step.result?.ok)
  return last < 0 ? [] : steps.slice(last + 1)
}

export function object(data: unknown): Facts {
  return data !== null && typeof data === 'object' && !Array.isArray(data) ? (data as Facts) : {}
}

/** An answer's rows: an array, or the one array in an object such as `{ items, nextCursor }`. */
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

/** Nominal, degraded, critical or unknown, as a read of a shard or node says it. */
export function healthIn(data: unknown): string | null {
  return typeof data === 'string' ? data : text(object(data), 'health', 'status')
}

export function seqs(steps: { result: ToolResult | null }[]): number[] {
  const all = steps.flatMap(({ result }) => [result?.meta.seq, result?.meta.verification?.seq])
  return [...new Set(all.filter((seq) => seq !== undefined))]
}

/** The last thing that any result in these steps said about a verification. */
export function lastVerification(steps: RunbookStep[]): VerificationOutcome | null {
  return steps.findLast(({ result }) => result?.meta.verification)?.result?.meta.verification?.outcome ?? null
}

/** The id of the incident's resource of a kind: its own, else by the alerts' labels. */
export function subject({ context }: Conversation, kind: string): string | null {
  const resource = context!.incident.resource
  if (resource?.kind === kind) return resource.id
  return context!.alerts.map(({ labels }) => labels[kind]).find((each) => each !== undefined) ?? null
}

export type RunbookQuote = { seq: number; text: string }
export type RunbookClaim = { kind: 'did' | 'is' | 'was' | 'absent'; text: string; quotes: RunbookQuote[] }

type Answered = RunbookStep & { result: ToolResult }

/** Fields of an answer as in its JSON, each a quote; an absent field quotes nothing. */
export function quoted(step: RunbookStep, ...fields: string[]): RunbookQuote[] {
  return quotedOf(step, object(step.result?.data), ...fields)
}

/** The same of an element of an answer's list. */
export function quotedOf(step: RunbookStep, facts: Facts, ...fields: string[]): RunbookQuote[] {
  return fields.flatMap((field) =>
    facts[field] == null
      ? []
      : [{ seq: seqOf(step), text: `${JSON.stringify(field)}:${JSON.stringify(facts[field])}` }],
  )
}

/** A piece of an answer's text; words beyond a quote's length are cut. */
export function words(step: RunbookStep, text: string): RunbookQuote[] {
  return [{ seq: seqOf(step), text: text.slice(0, 400) }]
}

/** Facts absent from these steps' answers. */
export function claimAbsent(text: string, steps: readonly Answered[], missing: string): RunbookClaim {
  return { kind: 'absent', text, quotes: steps.map((step) => ({ seq: seqOf(step), text: missing })) }
}

function seqOf(step: RunbookStep): number {
  return step.result?.meta.seq ?? 0
}

export type RunbookCall = { tool: string; args: Record<string, unknown> }

/** One turn of the operator: what it says, and the calls it proposes or the answer it ends with. */
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

/** The reason for a person, and their first step: advice is no finding and needs no row. */
export type Handover = { category?: EscalationCategory; nextStep?: string }

/** A reason of `escalate_incident`'s length, since a plan may say much of who stays down. */
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
 * Everything is nominal at the first look. Its alerts decide: all over, it ended by itself; a
 * firing one is no fault that was found, for a person; without an alert there was no fault.
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
    return { say: `${what}. I look whether its alert still fires.`, calls: [call('get_incident', { id: incident.id })] }
  }
  if (firing === 0) return resolve(conversation, 'self_resolved', `${what}; the alert has ended by itself.`, claims)
  return escalate(conversation, `${what}, and its alert fires.`, {
    category: 'no_fault_found',
    nextStep: 'Look at the rule of this alert; mark it as expected if it is, or say what it should have found.',
  })
}

/**
 * Firing alerts of the incident, by its last read, or the context if all had ended. Null: unread.
 */
function firingNow({ context, steps }: Conversation): number | null {
  if (context!.alerts.every(({ status }) => status === 'resolved')) return 0
  const read = done(steps, 'get_incident').at(-1)
  return read ? (number(object(object(read.result.data).alerts), 'firing') ?? context!.alerts.length) : null
}
