import type { Verdict } from '../domain/event.ts'
import type { Policy } from '../domain/policy.ts'
import type { AllowCode, RefusalCode, RulingCode } from '../domain/refusal.ts'
import type { ResourceRef } from '../domain/resource.ts'
import type { Effect, Preparation, Risk, ToolFacts } from '../domain/tool.ts'
import type { Phase, State } from './fold.ts'
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
  /** Writes: what the world says now about what the call would do, or why it could not be asked. */
  prepared: { ok: true; preparation: Preparation } | { ok: false; reason: string } | null
  /** Endings: the stored bodies of results, by digest, that claims are held against. */
  bodies?: ReadonlyMap<string, string>
}

/** A call that code put right before judging it: what it was told is in `code`, and the record shows both. */
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
  effect: Effect
  risk: Risk
  targets: ResourceRef[]
  actionDigest: string
  /** The arguments as the schema reads them, names settled; null when it cannot. */
  arguments: Record<string, unknown> | null
  corrected: Correction[]
}

export type Rule = {
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
  effect: Effect
  /** Of the action: what an approval, a denial and a grant are about. */
  digest: string
  state: State
  policy: Policy
  nowMs: number
}

/** One rule of the policy: answers when it decides, null when the next rule is to be asked. Pure and total. */
export type PolicyRule = (judging: Judging) => Rule | null

/** The first answer of these rules, in their order; null when none decides. */
export function firstAnswer(rules: readonly PolicyRule[], judging: Judging): Rule | null {
  for (const rule of rules) {
    const answer = rule(judging)
    if (answer) return answer
  }
  return null
}

export const run = (code: AllowCode, reason: string): Rule => ({ verdict: 'run', code, reason })
export const ask = (code: AllowCode, reason: string): Rule => ({ verdict: 'ask', code, reason })

export function refuse(code: RefusalCode, reason: string, hint?: string, details?: Record<string, unknown>): Rule {
  return { verdict: 'refuse', code, reason, ...(hint && { hint }), ...(details && { details }) }
}

/** A piece of what the model said, short and without anything a terminal or a log would act on. */
export function quote(text: string): string {
  const inert = text.replace(/[^\p{L}\p{N}\p{P}\p{S} ]/gu, '\uFFFD')
  return JSON.stringify(inert.length > 80 ? `${inert.slice(0, 80).toWellFormed()}…` : inert)
}
