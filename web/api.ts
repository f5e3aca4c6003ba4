import { QueryCache, QueryClient, type QueryKey, type UseQueryOptions, useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { createWatchedValue } from './watched-value.ts'

type FieldError = { field: string | null; message: string }

/** A refusal of the API, sent as problem+json. */
export class ApiRefusal extends Error {
  override name = 'ApiProblem' as const
  readonly status: number
  readonly code: string
  readonly errors: readonly FieldError[]
  constructor(status: number, code: string, detail: string, errors: readonly FieldError[] = []) {
    super(detail)
    this.status = status
    this.code = code
    this.errors = errors
  }

  /** Returns the errors of fields with this prefix, by the rest of the field's name up to a dot. */
  byField(prefix: string): Record<string, string> {
    const own = this.errors.filter(({ field }) => field?.startsWith(prefix))
    return Object.fromEntries(own.map(({ field, message }) => [field?.slice(prefix.length).split('.')[0], message]))
  }
}

export type ListPage<T> = { items: T[]; nextCursor: string | null }

type Asking = {
  method?: 'POST' | 'PUT' | 'DELETE'
  body?: unknown
  ifMatch?: string
  ifNoneMatch?: '*' | undefined
  signal?: AbortSignal
}

/**
 * Milliseconds after which a server that does not respond counts as away for the waiting person.
 */
const answerWithinMs = 20_000

/**
 * Sends a request to the API as the person of this browser's cookie. Throws ApiRefusal unless it
 * succeeds.
 */
export async function ask<T>(path: string, asking: Asking = {}): Promise<T> {
  const response = await send(path, asking)
  return response.status === 204 ? (undefined as T) : ((await response.json()) as T)
}

/** Reads a path of the API, cached under a key, and reads it again as `more` defines. */
export const useAsk = <T>(queryKey: QueryKey, path: string, more?: Omit<UseQueryOptions<T>, 'queryKey' | 'queryFn'>) =>
  useQuery({ ...more, queryKey, queryFn: ({ signal }) => ask<T>(path, { signal }) })

/** Reads a text by its complete path. */
export async function askText(path: string, signal: AbortSignal): Promise<string> {
  return await (await send(path, { signal })).text()
}

/** Milliseconds after which a waiting request checks whether the server responds. */
const askLifeAfterMs = 3_000
const livesWithinMs = 2_000

async function lives(): Promise<boolean> {
  const inTime = AbortSignal.timeout(livesWithinMs)
  return await fetch('/livez', { cache: 'no-store', signal: inTime }).then(
    ({ ok }) => ok,
    () => false,
  )
}

function noteSilence(): void {
  const asOf = Date.now() - askLifeAfterMs - livesWithinMs
  if (!away.get()) away.set({ why: 'The server did not answer within 5 s.', asOf })
}

/**
 * Reports after 5 s of waiting that the server is away, if it is. Returns a function that stops the
 * check.
 */
function watchWait(): () => void {
  let isOver = false
  const timer = setTimeout(async () => {
    if (!(await lives()) && !isOver) noteSilence()
  }, askLifeAfterMs)
  return () => {
    isOver = true
    clearTimeout(timer)
  }
}

/**
 * Reports that the server is away while a person writes a decision, because no other request runs
 * then.
 */
export function useWatchedServer(isWatched: boolean): void {
  useEffect(() => {
    if (!isWatched) return
    let isSilent = false
    const timer = setInterval(async () => {
      const wasSilent = isSilent
      isSilent = !(await lives())
      if (isSilent) noteSilence()
      else if (wasSilent) noteAnswer()
    }, askLifeAfterMs)
    return () => clearInterval(timer)
  }, [isWatched])
}

async function send(path: string, { method, body, ifMatch, ifNoneMatch, signal }: Asking): Promise<Response> {
  const stopWatching = watchWait()
  const inTime = AbortSignal.timeout(answerWithinMs)
  const response = await fetch(/^\/(?:auth|api)\//.test(path) ? path : `/api/v1${path}`, {
    method: method ?? 'GET',
    credentials: 'same-origin',
    signal: signal ? AbortSignal.any([signal, inTime]) : inTime,
    headers: {
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      // Sends a key, so that a request that is sent twice, by a second press or a bad network, has
      // one effect.
      ...(method === 'POST' && { 'idempotency-key': newKey() }),
      ...(ifMatch !== undefined && { 'if-match': ifMatch }),
      ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }).catch((error: unknown) => {
    stopWatching()
    if (signal?.aborted) throw error
    if (inTime.aborted) {
      const detail = `The server did not answer within ${answerWithinMs / 1_000} s. The server may still do what you asked: check the result before you ask again.`
      throw new ApiRefusal(0, 'NO_ANSWER', detail)
    }
    throw new ApiRefusal(0, 'UNREACHABLE', 'The server does not answer. Is Nightshift running?')
  })
  stopWatching()
  if (response.status < 502) noteAnswer()
  if (response.ok) return response
  const problem = (await response.json().catch(() => ({}))) as { code?: string; detail?: string; errors?: FieldError[] }
  throw new ApiRefusal(
    response.status,
    problem.code ?? `HTTP_${response.status}`,
    problem.detail ?? `The server answered ${response.status}.`,
    problem.errors,
  )
}

/** Makes a random key itself, because pages over plain http have no `randomUUID`. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Does not read again when a window comes to the front, because the stream reports changes. */
export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    onSuccess: noteAnswer,
    onError: (error) => {
      noteNoAnswer(error)
      // The session ended while the page was open. The sign-in page replaces this page, and returns
      // to it afterwards.
      if (error instanceof ApiRefusal && error.status === 401) queryClient.setQueryData(['session'], null)
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      retry: (failures, error) =>
        failures < 2 && !(error instanceof ApiRefusal && error.status > 0 && error.status < 500),
    },
    // Sends a person's request now or lets the request fail now, without waiting for a network.
    mutations: { networkMode: 'always' },
  },
})

/** Reads answers again that are shown, and the others when they are shown next. */
export async function readAgain(...queryKeys: QueryKey[]): Promise<void> {
  await Promise.all(queryKeys.map((queryKey) => queryClient.invalidateQueries({ queryKey })))
}

/**
 * Whether the server responds, according to all requests. The page shows this state once, above the
 * data, which stays.
 */
const away = createWatchedValue<{ why: string; asOf: number } | null>(null)
export const useAway = away.use
let heardAt = Date.now()
let isStreaming = false

/** Records that the server responded. */
function noteAnswer(): void {
  heardAt = Date.now()
  if (away.get()) away.set(null)
}

/** Records that a request got no response. A refusal counts as a response. */
function noteNoAnswer(error: unknown): void {
  if (!(error instanceof ApiRefusal) || (error.status !== 0 && error.status < 502)) return
  // Data that the stream still sends is current, even if requests fail.
  if (!away.get()) away.set({ why: error.message, asOf: isStreaming ? Date.now() : heardAt })
}

export function streaming(isOpen: boolean): void {
  if (isStreaming) heardAt = Date.now()
  const wasOpen = isStreaming
  isStreaming = isOpen
  if (isOpen) noteAnswer()
  else if (wasOpen && !away.get()) away.set({ why: 'The server does not answer.', asOf: heardAt })
}
