import type { Result, Step } from './conversation.ts'
import { type Facts, object } from './facts.ts'

export type Quote = { seq: number; text: string }
export type Claim = { kind: 'did' | 'is' | 'was' | 'absent'; text: string; quotes: Quote[] }

type Answered = Step & { result: Result }

/** Fields of an answer as they stand in its JSON, each a quote; a field that is not there quotes nothing. */
export function quoted(step: Step, ...fields: string[]): Quote[] {
  return quotedOf(step, object(step.result?.data), ...fields)
}

/** The same of an element of an answer's list. */
export function quotedOf(step: Step, facts: Facts, ...fields: string[]): Quote[] {
  return fields.flatMap((field) =>
    facts[field] == null
      ? []
      : [{ seq: seqOf(step), text: `${JSON.stringify(field)}:${JSON.stringify(facts[field])}` }],
  )
}

/** A piece of text out of an answer; the words of a text that is longer than a quote may be are cut. */
export function words(step: Step, text: string): Quote[] {
  return [{ seq: seqOf(step), text: text.slice(0, 400) }]
}

/** What is not in the answers of these steps. */
export function absent(text: string, steps: readonly Answered[], missing: string): Claim {
  return { kind: 'absent', text, quotes: steps.map((step) => ({ seq: seqOf(step), text: missing })) }
}

function seqOf(step: Step): number {
  return step.result?.meta.seq ?? 0
}
