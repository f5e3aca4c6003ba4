import { z } from 'zod'
import { hideKey } from '../domain/hidden-credentials.ts'
import type { CoreAnswer, CorePort } from '../domain/tool.ts'
import type { AddressPolicy } from './address.ts'
import { HttpError, type HttpRequest, request } from './http.ts'

type CoreOptions = {
  /** The core API's address without a path. The paths of requests include `/api/v1`. */
  baseUrl: string
  apiKey: string
  timeoutMs?: number
  maxBytes?: number
  allow?: AddressPolicy
}

/** An error by RFC 9457, with every field optional. */
const problem = z.looseObject({
  title: z.string().optional(),
  detail: z.string().optional(),
  code: z.string().optional(),
})

/**
 * Connects to the core API over HTTP. Callers encode the parts of a path. Returns a response of any
 * status. Throws HttpError only for a network error, an absent API, or a success without JSON. No
 * error contains the key.
 */
export function createCoreClient(options: CoreOptions): CorePort {
  const base = options.baseUrl.replace(/\/+$/, '')

  async function exchange(method: 'GET' | 'POST', path: string, more: Partial<HttpRequest>): Promise<CoreAnswer> {
    const url = `${base}${path}`
    if (!path.startsWith('/') || !isPlain(url)) return badPath()
    const answer = await request({
      method,
      url,
      ...more,
      headers: { authorization: `Bearer ${options.apiKey}`, accept: 'application/json', ...more.headers },
      timeoutMs: options.timeoutMs ?? 30_000,
      maxBytes: options.maxBytes ?? 8_000_000,
      allow: options.allow ?? 'private',
    })
    const text = Buffer.from(answer.body).toString('utf8')
    if (answer.status >= 200 && answer.status < 300) {
      return { ok: true, status: answer.status, data: readJson(text, `${method} ${path}`) }
    }
    const told = problemOf(answer.status, text, options.apiKey)
    if (isAway(answer.status, told.code)) {
      throw new HttpError('unavailable', `the core API is not available now (${told.code ?? answer.status})`, true)
    }
    return { ok: false, status: answer.status, problem: told }
  }

  return {
    get: (path, { signal } = {}) => exchange('GET', path, { signal }),
    post: (path, body, { idempotencyKey, ifMatch, signal }) =>
      exchange('POST', path, {
        body: JSON.stringify(body ?? {}),
        headers: {
          'content-type': 'application/json',
          'idempotency-key': idempotencyKey,
          ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
        },
        signal,
      }),
  }
}

/**
 * Whether this status means that the API itself did not respond: a proxy responded for a restarting
 * API, or the API has no database. A report of the API about a platform or device is a response.
 */
function isAway(status: number, code: string | undefined): boolean {
  if (code === 'DATABASE_UNAVAILABLE') return true
  return code === undefined && (status === 502 || status === 503 || status === 504)
}

/**
 * Whether the URL parser leaves the URL unchanged. An invented id such as `..` must not reach
 * another route.
 */
function isPlain(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && url.hash === '' && text.endsWith(`${url.pathname}${url.search}`)
}

function badPath(): CoreAnswer {
  const detail = 'A part of the path is not a plain identifier.'
  return { ok: false, status: 400, problem: { title: 'Bad path', detail, code: 'BAD_PATH' } }
}

function readJson(text: string, what: string): unknown {
  if (text === '') return null
  try {
    return JSON.parse(text)
  } catch {
    throw new HttpError('protocol', `the core API answered ${what} with a success that is not JSON`, true)
  }
}

function problemOf(status: number, text: string, apiKey: string) {
  const safe = hideKey(apiKey).text(text)
  let told: z.infer<typeof problem> = {}
  try {
    told = problem.parse(JSON.parse(safe))
  } catch {
    told = { detail: safe.slice(0, 500).toWellFormed() }
  }
  return { ...told, title: told.title ?? `HTTP ${status}`, detail: told.detail ?? '' }
}
