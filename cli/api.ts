import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { approval, approvalDetail, evidence } from '../domain/approval.ts'
import type { IncidentEvent } from '../domain/event.ts'
import { incident, queuePlace } from '../domain/incident.ts'
import { type Surroundings, surroundings } from '../domain/incident-detail.ts'
import type { ApiTarget } from './connection.ts'

/**
 * Exit codes that scripts may rely on. `help exit-codes` prints this table; docs/reference/cli.md repeats it.
 */
export const exitCodes = {
  ok: { code: 0, meaning: 'done' },
  error: { code: 1, meaning: 'it failed; stderr has the reason' },
  usage: { code: 2, meaning: 'the command line is wrong' },
  notFound: { code: 3, meaning: 'not found' },
  auth: { code: 4, meaning: 'no token, an unknown token, or a role that may not do this' },
  conflict: { code: 5, meaning: 'it was already decided, closed or changed' },
  denied: { code: 6, meaning: 'the approval was denied, expired or withdrawn' },
  unresolved: { code: 7, meaning: 'the incident ended escalated or cancelled, or its end state is wrong' },
  partial: { code: 8, meaning: 'a plan leaves some VMs without a place, or the loss of a host would' },
  infeasible: { code: 9, meaning: 'proved: there is no plan' },
  undecided: { code: 10, meaning: 'no plan was found in time; one may still exist' },
  broken: { code: 11, meaning: 'a step of the plan fails, or its certificate does not hold' },
  timeout: { code: 124, meaning: '--timeout ran out' },
  interrupted: { code: 130, meaning: 'Ctrl-C' },
} as const
export type Outcome = keyof typeof exitCodes

/**
 * Ends the command with the exit code of `outcome`. The message goes to stderr; an empty message
 * prints nothing.
 */
export class CommandFailed extends Error {
  override name = 'CommandFailed' as const
  readonly outcome: Outcome
  constructor(outcome: Outcome, message: string) {
    super(message)
    this.outcome = outcome
  }
}

/** problem+json as the API answers it. Keeps the fields that a newer API adds. */
export type Problem = { title: string; status: number; detail: string; code?: string; [field: string]: unknown }

const outcomeByStatus: Record<number, Outcome> = {
  401: 'auth',
  403: 'auth',
  404: 'notFound',
  409: 'conflict',
  410: 'denied',
  412: 'conflict',
}

/** The API refused the request, or was not reached (status 0). */
export class ApiProblem extends Error {
  override name = 'ApiProblem' as const
  readonly problem: Problem
  readonly remedy: string | null
  constructor(problem: Problem, remedy: string | null) {
    super(problem.detail ? `${problem.title}: ${problem.detail}` : problem.title)
    this.problem = problem
    this.remedy = remedy
  }
  get outcome(): Outcome {
    // The environment sets this value, so no request can change it: that is not a conflict.
    if (this.problem.code === 'LOCKED') return 'error'
    return outcomeByStatus[this.problem.status] ?? 'error'
  }
}

const problem = z.looseObject({
  title: z.string(),
  status: z.number().int(),
  detail: z.string().default(''),
  code: z.string().optional(),
})

/**
 * The core API as the commands use it. Every call throws ApiProblem when the answer is not a
 * success.
 */
export type ApiClient = {
  url: string
  get(path: string): Promise<unknown>
  post(path: string, body?: unknown): Promise<unknown>
  /** Sends bytes of JSON as they are. */
  postBytes(path: string, body: Uint8Array<ArrayBuffer>): Promise<unknown>
  put(path: string, body: unknown, headers?: Record<string, string>): Promise<unknown>
  /** The response, for streams and exports: the caller reads its body. */
  open(path: string, options?: { headers?: Record<string, string>; signal?: AbortSignal }): Promise<Response>
}

/** Long enough for every answer, and short enough that a wrong address is reported soon. */
const answerTimeoutMs = 30_000

export function createApiClient({ url, token }: ApiTarget): ApiClient {
  async function open(
    path: string,
    init: {
      method?: string
      headers?: Record<string, string>
      body?: string | Uint8Array<ArrayBuffer>
      signal?: AbortSignal
    } = {},
  ): Promise<Response> {
    let response: Response
    try {
      response = await fetch(new URL(path, url), {
        ...init,
        headers: { authorization: `Bearer ${token}`, ...init.headers },
      })
    } catch (error) {
      if (init.signal?.aborted && init.signal.reason?.name !== 'TimeoutError') throw error
      throw toUnreachableProblem(url, error)
    }
    if (!response.ok) throw await readProblem(response)
    return response
  }
  async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const response = await open(path, {
      method,
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && {
        body: body instanceof Uint8Array ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body),
      }),
      signal: AbortSignal.timeout(answerTimeoutMs),
    })
    const text = await response.text()
    return text === '' ? null : (JSON.parse(text) as unknown)
  }
  return {
    url,
    get: (path) => ask('GET', path),
    post: (path, body = {}) => ask('POST', path, body, { 'idempotency-key': randomUUID() }),
    postBytes: (path, body) => ask('POST', path, body),
    put: (path, body, headers) => ask('PUT', path, body, headers),
    open,
  }
}

/** The problem of an address that did not answer. */
export function toUnreachableProblem(url: string, error: unknown): ApiProblem {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const reason =
    cause instanceof Error ? cause.message || (cause as NodeJS.ErrnoException).code || cause.name : String(cause)
  return new ApiProblem(
    { title: 'The core API was not reached', status: 0, detail: `${url}: ${reason}`, code: 'UNREACHABLE' },
    'Is it running? "npm start" starts it here; "nightshift doctor" checks what is reachable.',
  )
}

/** The problem in a refused response, with a remedy for its status. */
export async function readProblem(response: Response): Promise<ApiProblem> {
  const text = await response.text()
  let answered: Problem
  try {
    answered = problem.parse(JSON.parse(text))
  } catch {
    answered = {
      title: `${response.status} ${response.statusText}`.trim(),
      status: response.status,
      detail: text.slice(0, 500),
    }
  }
  return new ApiProblem({ ...answered, status: response.status }, remedyByStatus[response.status] ?? null)
}

const remedyByStatus: Record<number, string> = {
  401: 'The token is unknown or has expired. Sign in with "nightshift login", name another with --token-file, or let the run file of a running start supply it.',
  403: 'Use a token whose role may do this: --as approver or --as admin where start runs here, --token-file elsewhere.',
  404: '"nightshift incidents list" and "nightshift approvals list" show what exists.',
  429: 'Wait as long as the answer says; "nightshift audit list --what security" shows who tried.',
  503: 'Try again in a moment; "nightshift doctor" shows what is down.',
}

// Loose, so that fields of a newer API still reach --json.
// Only a single incident has `queue`, and an older API leaves it out.
export const apiIncident = z.looseObject({ ...incident.shape, queue: queuePlace.nullish() })
export type ApiIncident = z.infer<typeof apiIncident>
/** Lists leave out the evidence. */
export const apiApproval = z.looseObject({
  ...approval.shape,
  evidence: z.array(evidence).optional(),
  hypotheses: approvalDetail.shape.hypotheses.optional(),
  together: approvalDetail.shape.together.optional(),
})
export type ApiApproval = z.infer<typeof apiApproval>

const apiEvent = z.looseObject({
  id: z.union([z.string(), z.number()]),
  incidentId: z.string(),
  attempt: z.number().int(),
  seq: z.number().int(),
  turn: z.number().int().nullable(),
  kind: z.string(),
  actor: z.string(),
  detail: z.string(),
  metadata: z.record(z.string(), z.unknown()),
  at: z.string(),
})

/** Accepts kinds that this version does not know: they are printed by their `detail`. */
export function parseEvent(value: unknown): IncidentEvent {
  return apiEvent.parse(value) as unknown as IncidentEvent
}

/** Every item of a paged list, up to a limit. */
export async function listAll<T>(
  api: ApiClient,
  path: string,
  item: z.ZodType<T>,
  limit = Number.POSITIVE_INFINITY,
): Promise<T[]> {
  const items: T[] = []
  let cursor: string | null = null
  do {
    const url: URL = new URL(path, api.url)
    if (cursor) url.searchParams.set('cursor', cursor)
    const page = z
      .looseObject({ items: z.array(item), nextCursor: z.union([z.string(), z.number()]).nullish() })
      .parse(await api.get(url.pathname + url.search))
    items.push(...page.items)
    cursor = page.nextCursor === null || page.nextCursor === undefined ? null : String(page.nextCursor)
  } while (cursor && items.length < limit)
  return items.slice(0, limit)
}

/** The rows of an incident after number `seq`, oldest first. */
export async function listEventsAfter(api: ApiClient, incidentId: string, seq = 0): Promise<IncidentEvent[]> {
  const events: IncidentEvent[] = []
  for (let after = seq; ; ) {
    const page = z
      .looseObject({ items: z.array(z.unknown()), nextCursor: z.union([z.string(), z.number()]).nullish() })
      .parse(await api.get(`/api/v1/incidents/${encodeURIComponent(incidentId)}/events?after=${after}&limit=200`))
    events.push(...page.items.map(parseEvent))
    const last = events.at(-1)?.seq ?? after
    if (page.items.length === 0 || !page.nextCursor || last === after) return events
    after = last
  }
}

export async function readIncident(api: ApiClient, id: string): Promise<ApiIncident> {
  return apiIncident.parse(await api.get(`/api/v1/incidents/${encodeURIComponent(id)}`))
}

/** What of its surroundings the command shows: the alerts of an incident. */
export async function readAlerts(api: ApiClient, id: string): Promise<Surroundings['alerts']> {
  const around = surroundings.pick({ alerts: true })
  return around.parse(await api.get(`/api/v1/incidents/${encodeURIComponent(id)}/surroundings`)).alerts
}

export async function readApproval(api: ApiClient, id: string): Promise<ApiApproval> {
  return apiApproval.parse(await api.get(`/api/v1/approvals/${encodeURIComponent(id)}`))
}
