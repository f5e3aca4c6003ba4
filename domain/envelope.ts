import { z } from 'zod'
import { type ErrorClass, refusalOf } from './refusal.ts'
import type { CoreAnswer, Envelope } from './tool.ts'

/**
 * What a call came to, in the one envelope that every tool answers and the model reads: `code` is one of
 * nine words, the finer one is `details.rule`.
 */
export function toEnvelope(answer: CoreAnswer): Envelope {
  if (answer.ok) return { ok: true, data: answer.data, meta: {} }
  const { status, problem } = answer
  return {
    ok: false,
    ...(problem.result !== undefined && { data: problem.result }),
    error: {
      code: classOf(status),
      message: problem.detail || problem.title,
      blocked: status === 401 || status === 403 || status === 412,
      failed: true,
      retryable: status >= 500 || status === 409 || status === 429,
      details: { rule: problem.code ?? `HTTP_${status}`, status, auto_recoverable: false },
    },
    meta: {},
  }
}

function classOf(status: number): ErrorClass {
  if (status === 404 || status === 410) return 'NOT_FOUND'
  if (status === 400 || status === 422) return 'INVALID_INPUT'
  if (status === 401 || status === 403) return 'ACTION_NOT_ALLOWED'
  return 'EXECUTION_FAILED'
}

/** It was tried and did not work. `data`: what there was all the same. */
export function failedEnvelope(rule: string, message: string, data?: unknown): Envelope {
  const details = { rule, auto_recoverable: false }
  return {
    ok: false,
    ...(data !== undefined && { data }),
    error: { code: 'EXECUTION_FAILED', message, blocked: false, failed: true, retryable: false, details },
    meta: {},
  }
}

/** A call that policy stopped: nothing was tried. */
export function blockedEnvelope(code: ErrorClass, rule: string, message: string): Envelope {
  return {
    ok: false,
    error: {
      code,
      message,
      blocked: true,
      failed: false,
      retryable: false,
      details: { rule, auto_recoverable: false },
    },
    meta: {},
  }
}

/** A refusal of the judge as the model reads it: what is wrong, how to get past it, and whether it can by itself. */
export function refusedEnvelope(refusal: {
  code: string
  reason: string
  hint: string | null
  details?: Record<string, unknown>
}): Envelope {
  const { code, reason, hint, details } = refusal
  const { class: errorClass, recoverable } = refusalOf(code)
  return {
    ok: false,
    error: {
      code: errorClass,
      message: reason,
      blocked: true,
      failed: false,
      retryable: false,
      details: { rule: code, ...(hint && { recovery_hint: hint }), auto_recoverable: recoverable, ...details },
    },
    meta: {},
  }
}

/**
 * What became of a write's promise. `held` and `not_held`: somebody looked. `open`: it could not be read just now. `unproven`: it ran, and
 * nothing was promised that anybody could look at.
 */
export const verificationOutcomes = ['held', 'not_held', 'open', 'unproven'] as const
export type VerificationOutcome = (typeof verificationOutcomes)[number]

/** What shows afterwards that a write worked: code looks at the state, or nothing does and a person has to look. */
export const proof = z.object({
  by: z.enum(['state', 'nothing']),
  /** `state`: what must be true. `nothing`: where a person looks. */
  text: z.string(),
})
export type Proof = z.infer<typeof proof>
