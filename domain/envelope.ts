import { z } from 'zod'
import { type ErrorClass, refusalOf } from './refusal.ts'
import type { Envelope } from './tool.ts'

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

/**
 * Whether the core API only said "not yet", so that the same request may be sent again: a request
 * with this key is at work, the database is away, or the limit of running ones is reached.
 */
export function saysNotYet(status: unknown, code: unknown): boolean {
  return status === 429 || code === 'IN_PROGRESS' || code === 'DATABASE_UNAVAILABLE'
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

/** A refusal as the model reads it: what is wrong, how to get past it, and whether it can. */
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
 * The outcome of a write's promise. `held`, `not_held`: somebody looked. `open`: unreadable just
 * now. `unproven`: it ran, and promised nothing that can be looked at.
 */
/** The observation of a read that a person allowed: there was nothing to verify. */
export const readObserved = 'read-only: its answer is the result'

export const verificationOutcomes = ['held', 'not_held', 'open', 'unproven'] as const
export type VerificationOutcome = (typeof verificationOutcomes)[number]

/** What a look showed of one step of a plan: it may hold where another did not. */
export type StepVerification = {
  step: number
  vm: string
  to: string
  status: Exclude<VerificationOutcome, 'open'>
  observed: string
}

/** The proof that a write worked: code looks at the state, or a person has to. */
export const proof = z.object({
  by: z.enum(['state', 'nothing']),
  /** `state`: what must be true. `nothing`: where a person looks. */
  text: z.string(),
})
export type PostconditionProof = z.infer<typeof proof>

/** Fields that programs compare and that say nothing of the incident; rows keep them. */
const recordKeeping = new Set([
  ...['audit_hash', 'request_id', 'duration_ms', 'cmd_executed', 'prevHash', 'hash', 'stepKey', 'fingerprint'],
  ...['planDigest', 'stateFingerprint', 'currentFingerprint', 'capabilities'],
])
/** The usual values: only another one is worth a word. */
const usual: Readonly<Record<string, unknown>> = {
  approval_status: 'auto_approved',
  truncated: false,
  total_is_more: false,
  isEmpty: false,
  isPartial: false,
  kernel_thread: false,
  encoding: 'utf8',
  offset: 0,
}
/** Lists that tell something only where they hold something. */
const oftenEmpty = new Set(['pinnedTo', 'forbiddenHosts', 'aliases', 'needs'])
/** An attempt's own key of a write, as the core API repeats it. */
const ownKey = /^inc_[0-9a-z]{26}\.\d+:/

/**
 * Leaves out of a tool's answer what repeats or says nothing: empty fields, digests, request ids,
 * the asked device, blanks at ends of lines. Every field that is left stands in the row word for
 * word, and answers that differ in noise alone are equal.
 */
export function withoutNoise(data: unknown): unknown {
  if (typeof data === 'string') return data.replace(/[ \t]{4,}$/gm, '')
  if (Array.isArray(data)) return data.map(withoutNoise)
  if (data === null || typeof data !== 'object') return data
  const kept = Object.entries(data).filter(([key, value]) => !isNoise(key, value, data as Record<string, unknown>))
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutNoise(value)]))
}

/** What a row of a log tells its reader; the rest is how rows and plans are kept. */
const toldOfRow = new Set(['seq', 'at', 'attempt', 'actor', 'action', 'kind', 'detail'])
const keptOfPlan = new Set(['createdAt', 'incidentId', 'lowerBound', 'proof'])
/** What a runbook tells; the rest is by what it is found and kept. */
const toldOfRunbook = new Set(['name', 'body'])

function isNoise(key: string, value: unknown, fields: Record<string, unknown>): boolean {
  if ('prevHash' in fields && !toldOfRow.has(key)) return true
  if ('planDigest' in fields && keptOfPlan.has(key)) return true
  if ('incidentTypes' in fields && 'body' in fields && !toldOfRunbook.has(key)) return true
  if (value === null || value === undefined || recordKeeping.has(key)) return true
  if (key in usual && usual[key] === value) return true
  if (key === 'stderr' && value === '') return true
  if (oftenEmpty.has(key) && Array.isArray(value) && value.length === 0) return true
  if (key === 'key' && typeof value === 'string' && ownKey.test(value)) return true
  return key === 'device' && isOwnDevice(value, fields)
}

/** The device of what the answer is about, under the same name, without another word on it. */
function isOwnDevice(device: unknown, { on, id, node, vm }: Record<string, unknown>): boolean {
  if (typeof device === 'string') return device === (on as { id?: unknown } | undefined)?.id
  const { capabilities: _, id: own, ...more } = device as Record<string, unknown>
  return Object.keys(more).length === 0 && [id, node, vm].includes(own)
}
