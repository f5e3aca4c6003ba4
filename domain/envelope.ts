import { z } from 'zod'
import { type ErrorClass, refusalOf } from './refusal.ts'
import type { Envelope } from './tool.ts'

/** Builds the result of a call that was tried and failed. `data`: a partial result. */
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
 * Whether the core API responded that the request may be sent again: a request with this key is
 * running, the database is unavailable, or too many requests are running.
 */
export function saysNotYet(status: unknown, code: unknown): boolean {
  return status === 429 || code === 'IN_PROGRESS' || code === 'DATABASE_UNAVAILABLE'
}

/** Builds the result of a call that the policy stopped, so that nothing was tried. */
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

/**
 * Builds the result of a refused call for the model: the problem and its remedy, or that there is
 * no remedy.
 */
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

/** The observation after an approved read, which has nothing to verify. */
export const readObserved = 'read-only: its answer is the result'

/**
 * The outcome of verifying a write. `held`, `not_held`: a read showed whether the postcondition is
 * true. `open`: the state cannot be read at the moment. `unproven`: the write ran, but has no
 * postcondition that code could read.
 */
export const verificationOutcomes = ['held', 'not_held', 'open', 'unproven'] as const
export type VerificationOutcome = (typeof verificationOutcomes)[number]

/** The verification of one step of a plan. The steps of one plan may have different results. */
export type StepVerification = {
  step: number
  vm: string
  to: string
  status: Exclude<VerificationOutcome, 'open'>
  observed: string
}

/** How a write is proven: code reads the state, or a person checks. */
export const proof = z.object({
  by: z.enum(['state', 'nothing']),
  /** `state`: the condition that code reads. `nothing`: where a person can check the result. */
  text: z.string(),
})
export type PostconditionProof = z.infer<typeof proof>

/** Fields for programs, without facts about the incident. Rows of the log keep these fields. */
const recordKeeping = new Set([
  ...['audit_hash', 'request_id', 'duration_ms', 'cmd_executed', 'prevHash', 'hash', 'stepKey', 'fingerprint'],
  ...['planDigest', 'stateFingerprint', 'currentFingerprint', 'capabilities'],
])
/** Fields that are left out if they have the value listed here. */
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
/** Lists that are left out if they are empty. */
const oftenEmpty = new Set(['pinnedTo', 'forbiddenHosts', 'aliases', 'needs', 'readable', 'about'])
/** A write's key in its attempt, which the core API returns. */
const ownKey = /^inc_[0-9a-z]{26}\.\d+:/

/**
 * Removes repeated and uninformative parts from the result of a tool: empty fields, digests,
 * request ids, the requested device, blanks at the end of lines, and the end of a long digest. The
 * row of the log keeps every other field word for word. Results that differ only in the removed
 * parts become equal.
 */
export function withoutNoise(data: unknown): unknown {
  if (typeof data === 'string') return data.replace(/[ \t]{4,}$/gm, '')
  if (Array.isArray(data)) return data.map(withoutNoise)
  if (data === null || typeof data !== 'object') return data
  const kept = Object.entries(data).filter(([key, value]) => !isNoise(key, value, data as Record<string, unknown>))
  const shown = (key: string, value: unknown) =>
    isLabels(key) ? unnamed(data, value) : isWholesDigest(key, data) ? String(value).slice(0, shownDigest) : value
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutNoise(shown(key, value))]))
}

/** How many characters of a digest identify a whole response within one incident. */
const shownDigest = 12
/** Whether the field is the digest of a source's whole response, beside its summary. */
const isWholesDigest = (key: string, data: object) => key === 'digest' && 'source' in data && 'summary' in data

const isLabels = (key: string) => key === 'labels'

/** Returns an alert's labels without `alertname` if `alertname` is also the field `name`. */
function unnamed({ name }: { name?: unknown }, labels: unknown): unknown {
  if (labels === null || typeof labels !== 'object') return labels
  const { alertname, ...others } = labels as Record<string, unknown>
  return alertname !== undefined && alertname === name ? others : labels
}

/** Fields of a log row that a model needs. All other fields only serve storage. */
const toldOfRow = new Set(['seq', 'at', 'attempt', 'actor', 'action', 'kind', 'detail'])
const keptOfPlan = new Set(['createdAt', 'incidentId', 'lowerBound', 'proof'])
/** Fields of a runbook that a model needs. All other fields only serve storage. */
const toldOfRunbook = new Set(['name', 'body'])

function isNoise(key: string, value: unknown, fields: Record<string, unknown>): boolean {
  if ('prevHash' in fields && !toldOfRow.has(key)) return true
  if ('planDigest' in fields && keptOfPlan.has(key)) return true
  if ('incidentTypes' in fields && 'body' in fields && !toldOfRunbook.has(key)) return true
  if (value === null || value === undefined || recordKeeping.has(key)) return true
  if (key in usual && usual[key] === value) return true
  if (key === 'stderr' && value === '') return true
  if (saysAgain(key, value, fields)) return true
  if (oftenEmpty.has(key) && Array.isArray(value) && value.length === 0) return true
  if (key === 'key' && typeof value === 'string' && ownKey.test(value)) return true
  return key === 'device' && isOwnDevice(value, fields)
}

/** Whether a value is repeated in its object, or follows from other fields of its object. */
function saysAgain(key: string, value: unknown, fields: Record<string, unknown>): boolean {
  if (key === 'name') return value === fields.id
  if (key === 'template') return value === fields.sample
  if (key === 'count') return value === 1 && 'startsAt' in fields
  if (key === 'seriesFound') return Array.isArray(fields.series) && fields.series.length === value
  if (key === 'templatesFound') return Array.isArray(fields.templates) && fields.templates.length === value
  if (key === 'health') return value === 'ok' && 'expression' in fields
  return (
    key === 'threshold' &&
    String(fields.expression ?? '')
      .split(/\s+/)
      .at(-1) === String(value)
  )
}

/** Whether the field `device` only repeats the resource of the result. */
function isOwnDevice(device: unknown, { on, id, node, vm }: Record<string, unknown>): boolean {
  if (typeof device === 'string') return device === (on as { id?: unknown } | undefined)?.id
  const { capabilities: _, id: own, mode = 'all', ...more } = device as Record<string, unknown>
  return mode === 'all' && Object.keys(more).length === 0 && [id, node, vm].includes(own)
}
