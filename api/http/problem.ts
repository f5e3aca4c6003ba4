import { HTTPException } from 'hono/http-exception'
import { isDataFlaw, isTransient } from '../../db/connect.ts'
import { NotAllowedError } from '../../db/incidents/incidents.ts'
import { IncidentNotFoundError, StaleRunError } from '../../db/log/append.ts'
import { listFaults } from '../../domain/schema-faults.ts'
import { EffectRefused, type RefusalKind } from '../../effects/effect.ts'
import type { Context, Hook } from '../deps.ts'

/**
 * A refusal in the form of RFC 9457. Code anywhere below a route may throw it, and it becomes the
 * response unchanged.
 */
export class Problem extends Error {
  override name = 'Problem' as const
  readonly status: number
  readonly code: string
  readonly more: Record<string, unknown>
  readonly headers: Record<string, string>
  constructor(
    status: number,
    code: string,
    detail: string,
    more: { fields?: Record<string, unknown>; headers?: Record<string, string> } = {},
  ) {
    super(detail)
    this.status = status
    this.code = code
    this.more = more.fields ?? {}
    this.headers = more.headers ?? {}
  }
}

const titles: Record<number, string> = {
  400: 'Bad request',
  401: 'Not signed in',
  403: 'Not allowed',
  404: 'Not found',
  405: 'Method not allowed',
  409: 'Conflict',
  410: 'Gone',
  412: 'The state has changed',
  413: 'Too large',
  415: 'Unsupported media type',
  422: 'Not valid',
  424: 'The device refused or failed',
  428: 'A precondition is required',
  429: 'Too many attempts',
  500: 'Internal error',
  502: 'The platform failed',
  503: 'Not available now',
  504: 'No answer in time',
}

export function notFound(what: string): Problem {
  return new Problem(404, 'NOT_FOUND', `There is no ${what}.`)
}

export function answerProblem(c: Context, problem: Problem): Response {
  const body = {
    type: 'about:blank',
    title: titles[problem.status] ?? 'Error',
    status: problem.status,
    detail: problem.message,
    code: problem.code,
    requestId: c.get('requestId') ?? null,
    ...problem.more,
  }
  return c.body(JSON.stringify(body), problem.status as 400, {
    'content-type': 'application/problem+json',
    ...problem.headers,
  })
}

/** The HTTP status for each kind of refusal in effects/. */
const statuses: Record<RefusalKind, number> = {
  not_allowed: 403,
  not_found: 404,
  conflict: 409,
  state_changed: 412,
  invalid: 422,
  device_failed: 424,
  precondition_required: 428,
  too_many: 429,
  unavailable: 503,
}

function fromRefusal({ kind, code, message, fields, retryAfterSeconds: seconds }: EffectRefused): Problem {
  return new Problem(statuses[kind], code, message, {
    fields,
    headers: seconds === null ? {} : { 'retry-after': String(seconds) },
  })
}

const statementTimedOut = '57014'

/**
 * Converts every error to a problem. An unexpected error becomes a 500, and its details are logged.
 */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (error instanceof EffectRefused) return fromRefusal(error)
  if (error instanceof NotAllowedError) {
    return new Problem(409, 'NOT_ALLOWED', `${error.message}.`, { fields: { incidentStatus: error.status } })
  }
  if (error instanceof StaleRunError) return new Problem(409, 'STALE_RUN', `${error.message}.`)
  if (error instanceof IncidentNotFoundError) return new Problem(404, 'NOT_FOUND', `${error.message}.`)
  if (error instanceof HTTPException) {
    const code = error.status === 400 ? 'BAD_REQUEST' : `HTTP_${error.status}`
    const detail = /malformed json/i.test(error.message) ? 'The request body is not JSON.' : error.message || 'Refused.'
    return new Problem(error.status, code, detail)
  }
  if ((error as { code?: unknown }).code === statementTimedOut) {
    const detail =
      'The database ended this request, because a statement took longer than 20 s. No change was stored. Request less data at once, or repeat the request when the database is less busy.'
    return new Problem(503, 'DATABASE_SLOW', detail, { headers: { 'retry-after': '5' } })
  }
  if (isTransient(error)) {
    return new Problem(
      503,
      'DATABASE_UNAVAILABLE',
      'The database does not answer. No part of a change was stored. Try again.',
      {
        headers: { 'retry-after': '5' },
      },
    )
  }
  if (isDataFlaw(error)) {
    const detail = 'The database cannot store or compare a value of this request. Check its numbers, times and texts.'
    return new Problem(422, 'INVALID', detail)
  }
  return new Problem(500, 'INTERNAL', "An internal error occurred. The API's log has the details.")
}

/** Refuses a request that does not fit its schema with 422, and names the faulty fields. */
export const invalidRequest: Hook = (result, c) => {
  if (result.success) return undefined
  const errors = listFaults(result.error).map(({ field, message }) => ({
    in: result.target === 'json' ? 'body' : result.target === 'param' ? 'path' : result.target,
    field: field || null,
    message,
  }))
  const [first] = errors
  const detail = first?.field ? `${first.field}: ${first.message}` : (first?.message ?? 'The request is not valid')
  return answerProblem(c, new Problem(422, 'INVALID', detail, { fields: { errors } }))
}
