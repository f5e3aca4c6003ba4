import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { ApiTarget } from './connection.ts'
import type { ExitOutcome } from './exit-codes.ts'
import { startLine } from './start-line.ts'

/** The problem+json of the API. Keeps the fields that a newer API adds. */
type ProblemBody = { title: string; status: number; detail: string; code?: string; [field: string]: unknown }

const outcomeByStatus: Record<number, ExitOutcome> = {
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
  readonly problem: ProblemBody
  readonly remedy: string | null
  constructor(problem: ProblemBody, remedy: string | null) {
    super(problem.detail ? `${problem.title}: ${problem.detail}` : problem.title)
    this.problem = problem
    this.remedy = remedy
  }
  get outcome(): ExitOutcome {
    // Counts a setting that the environment sets as an error and not a conflict, because no request
    // can change the setting.
    if (this.problem.code === 'LOCKED') return 'error'
    if (this.problem.code === 'INVALID' || this.problem.code === 'BAD_REQUEST') return 'usage'
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
 * The core API as the commands use it. Every call throws ApiProblem if the response is not a
 * success.
 */
export type ApiClient = {
  url: string
  get(path: string): Promise<unknown>
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<unknown>
  /** Sends bytes of JSON as they are. */
  postBytes(path: string, body: Uint8Array<ArrayBuffer>): Promise<unknown>
  put(path: string, body: unknown, headers?: Record<string, string>): Promise<unknown>
  /** Returns the response with an unread body, for streams and exports. */
  open(path: string, options?: { headers?: Record<string, string>; signal?: AbortSignal }): Promise<Response>
}

/** Milliseconds to wait for any response. A wrong address must still be reported soon. */
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
    const text = await response.text().catch((error: unknown) => {
      throw toUnreachableProblem(url, error)
    })
    return text === '' ? null : (JSON.parse(text) as unknown)
  }
  return {
    url,
    get: (path) => ask('GET', path),
    post: (path, body = {}, headers = {}) => ask('POST', path, body, { 'idempotency-key': randomUUID(), ...headers }),
    postBytes: (path, body) => ask('POST', path, body),
    put: (path, body, headers) => ask('PUT', path, body, headers),
    open,
  }
}

/**
 * Builds the problem for an address that does not respond. A refused connection changed nothing,
 * but after a timeout the API may have carried out the request.
 */
export function toUnreachableProblem(url: string, error: unknown): ApiProblem {
  if (error instanceof Error && error.name === 'TimeoutError') {
    const detail = `${url} took the request but did not answer within ${answerTimeoutMs / 1_000} s`
    return new ApiProblem(
      { title: 'The core API did not answer in time', status: 0, detail, code: 'NO_ANSWER' },
      'The API may still do what you asked. Check the result before you ask again.',
    )
  }
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const reason =
    cause instanceof Error ? cause.message || (cause as NodeJS.ErrnoException).code || cause.name : String(cause)
  return new ApiProblem(
    { title: 'The core API was not reached', status: 0, detail: `${url}: ${reason}`, code: 'UNREACHABLE' },
    `Is the API running? "${startLine()}" starts it here; "nightshift doctor" checks what is reachable.`,
  )
}

/** Reads the problem in a refused response, with a remedy for its status. */
export async function readProblem(response: Response): Promise<ApiProblem> {
  const text = await response.text()
  let answered: ProblemBody
  try {
    answered = problem.parse(JSON.parse(text))
  } catch {
    answered = {
      title: `${response.status} ${response.statusText}`.trim(),
      status: response.status,
      detail: text.slice(0, 500),
    }
  }
  const remedy = response.status === 404 ? remedyOfMissing(response.url) : remedyByStatus[response.status]
  return new ApiProblem({ ...answered, status: response.status }, remedy ?? null)
}

const remedyByStatus: Record<number, string> = {
  401: 'The token is unknown or has expired. Sign in with "nightshift login", name another token with --token-file, or use the token of a Nightshift that runs here.',
  403: 'Use a token whose role may do this: --as approver or --as admin if "nightshift start" runs here, --token-file elsewhere.',
  429: 'Wait for the time that the response gives. "nightshift audit list --what security" shows the refused attempts.',
  503: 'Try again in a moment. "nightshift doctor" shows what is down.',
}

/** The command that lists objects of one kind, by the first part of their API path. */
const lists: Record<string, string> = {
  'active-alerts': 'alerts list',
  alerts: 'alerts list',
  approvals: 'approvals list',
  changes: 'changes list',
  config: 'config list',
  devices: 'mesh devices',
  expectations: 'expectations list',
  hosts: 'resources list',
  incidents: 'incidents list',
  inventory: 'resources list',
  jobs: 'jobs list',
  knowledge: 'knowledge list',
  models: 'model list',
  nodes: 'resources list',
  operators: 'operators list',
  resources: 'resources list',
  shards: 'resources list',
  sources: 'sources list',
  tenants: 'resources list',
  tokens: 'tokens list',
  vms: 'resources list',
  webhooks: 'config list',
}

function remedyOfMissing(url: string): string | undefined {
  const [, noun = ''] = /\/api\/v1\/([^/?]+)/.exec(url) ?? []
  const command = Object.hasOwn(lists, noun) ? lists[noun] : undefined
  return command && `"nightshift ${command}" shows what exists.`
}
