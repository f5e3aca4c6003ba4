import { HttpError, request } from '../clients/http.ts'
import { NoCredential, readRef } from '../config/references.ts'
import type { Source, SourceHealth } from '../domain/source.ts'
import { type AskSource, type PageAnswer, SourceError, type SourceErrorCode, type SourceRequest } from './kind.ts'

/** Most bytes of one answer. A query that gives more is to be narrowed, not cut: half a series is no evidence. */
const maxAnswerBytes = 4_000_000
/** Failures in a row after which a source is left alone, and for how long. */
const failuresToRest = 5
const restMs = 30_000
/** Requests to one source at once: a storm of incidents is no load test. */
const mostAtOnce = 8

type State = {
  /** In a row. */
  failures: number
  restsUntilMs: number
  atOnce: number
  lastOkMs: number | null
  lastError: string | null
  /** It was left alone, and has not answered since. */
  isAway: boolean
}

/** A source that is left alone after failures in a row, or that answers after that. */
export type SourceChange = { source: string; is: 'away'; because: string } | { source: string; is: 'back' }

/** How the sources did, as this process saw them. */
export type SourceStates = { byName: Map<string, State>; report: (change: SourceChange) => void }

export const newSourceStates = (report: SourceStates['report'] = () => {}): SourceStates => ({
  byName: new Map(),
  report,
})

/** A source that was changed or removed begins as one that nobody asked. */
export const forgetSource = ({ byName }: SourceStates, name: string): void => void byName.delete(name)

const newState = (): State => ({
  failures: 0,
  restsUntilMs: 0,
  atOnce: 0,
  lastOkMs: null,
  lastError: null,
  isAway: false,
})

export function healthOf({ byName }: SourceStates, name: string, nowMs: number): SourceHealth {
  const state = byName.get(name)
  if (!state) return { state: 'unknown', lastOkAt: null, lastError: null, restsUntil: null }
  const isResting = state.restsUntilMs > nowMs
  return {
    state: isResting ? 'resting' : state.failures > 0 ? 'failing' : state.lastOkMs === null ? 'unknown' : 'ok',
    lastOkAt: state.lastOkMs === null ? null : new Date(state.lastOkMs).toISOString(),
    lastError: state.failures > 0 ? state.lastError : null,
    restsUntil: isResting ? new Date(state.restsUntilMs).toISOString() : null,
  }
}

/**
 * Asks one source: with its credential, which is read now and stays in this process, within its time and the bounds of one answer.
 * Follows no redirect. After five failures in a row nothing is sent for 30 s, then one request finds out.
 */
export function askerOf(source: Source, states: SourceStates, signal?: AbortSignal): AskSource {
  const state = states.byName.get(source.name) ?? newState()
  states.byName.set(source.name, state)
  const report = reportChanges(source.name, state, states)
  return async (asked) => {
    const nowMs = Date.now()
    if (state.restsUntilMs > nowMs) {
      const seconds = Math.ceil((state.restsUntilMs - nowMs) / 1000)
      throw new SourceError(
        'RESTING',
        `${source.name} failed ${failuresToRest} times (${state.lastError}); asked again in ${seconds} s`,
      )
    }
    if (state.atOnce >= mostAtOnce)
      throw new SourceError('BUSY', `${source.name} is asked ${mostAtOnce} things already: ask again`)
    state.atOnce += 1
    try {
      const answer = await send(source, asked, signal)
      noteAnswer(state)
      return answer
    } catch (error) {
      noteFailure(state, error)
      throw error
    } finally {
      state.atOnce -= 1
      report()
    }
  }
}

/** Says once that a source is away, and once that it is back; a failure here and there is its health, and no change. */
function reportChanges(source: string, state: State, { byName, report }: SourceStates): () => void {
  return () => {
    // An answer that comes in after the source was changed is about another one.
    if (byName.get(source) !== state) return
    if (!state.isAway && state.failures >= failuresToRest) {
      state.isAway = true
      report({ source, is: 'away', because: state.lastError ?? 'it gave no answer' })
    } else if (state.isAway && state.failures === 0) {
      state.isAway = false
      report({ source, is: 'back' })
    }
  }
}

function noteAnswer(state: State): void {
  Object.assign(state, { failures: 0, restsUntilMs: 0, lastOkMs: Date.now(), lastError: null })
}

/** What the server refused was the query's fault: the server is well. */
function noteFailure(state: State, error: unknown): void {
  if (!(error instanceof SourceError) || error.code === 'BUSY') return
  if (error.code === 'REJECTED') {
    noteAnswer(state)
    return
  }
  state.failures += 1
  state.lastError = error.message.slice(0, 200)
  if (state.failures >= failuresToRest) state.restsUntilMs = Date.now() + restMs
}

async function send(source: Source, asked: SourceRequest, signal: AbortSignal | undefined): Promise<unknown> {
  const { path, form, method = 'GET', accept = 'json', maxBytes = maxAnswerBytes } = asked
  const secret = source.credential === null ? null : readSecret(source.name, source.credential)
  let answer: Awaited<ReturnType<typeof request>>
  try {
    answer = await request({
      method,
      url: `${source.url.replace(/\/+$/, '')}${path}`,
      headers: {
        accept: accept === 'json' ? 'application/json' : '*/*',
        ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
        ...(secret !== null && { authorization: toAuthorization(secret) }),
      },
      ...(form && { body: new URLSearchParams(form).toString() }),
      timeoutMs: source.timeoutSeconds * 1000,
      maxBytes,
      allow: 'private',
      ...(source.caFile !== null && { ca: readSecret(source.name, `file:${source.caFile}`) }),
      ...(signal && { signal }),
    })
  } catch (error) {
    throw error instanceof HttpError ? toSourceError(source, error, maxBytes) : error
  }
  return readAnswer(source, answer, accept, secret)
}

const certificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME|UNABLE_TO_GET_ISSUER/

function toSourceError({ name, timeoutSeconds }: Source, error: HttpError, maxBytes: number): SourceError {
  const say = (code: SourceErrorCode, text: string) => new SourceError(code, `${name} ${text}`)
  if (error.code === 'timeout') return say('TIMEOUT', `gave no answer within ${timeoutSeconds} s`)
  if (error.code === 'too_large')
    return say('TOO_LARGE', `answered more than ${maxBytes / 1e6} MB: aggregate, or name fewer series`)
  if (certificate.test(error.message))
    return say('UNTRUSTED_CERTIFICATE', 'has a certificate that is not trusted: set its caFile')
  if (error.code === 'refused_address') return say('UNREACHABLE', 'is at an address that is refused by policy')
  if (error.code === 'protocol') return say('BAD_ANSWER', 'answered something that is not HTTP, or broke off')
  return say('UNREACHABLE', 'cannot be reached')
}

function readAnswer(
  { name }: Source,
  { status, headers, body }: Awaited<ReturnType<typeof request>>,
  accept: SourceRequest['accept'],
  secret: string | null,
): unknown {
  const text = hideCredential(Buffer.from(body).toString('utf8'), secret)
  if (status >= 300 && status < 400)
    throw new SourceError('REDIRECT', `${name} redirects: set its address to where it really is`)
  if (status === 401 || status === 403) {
    throw new SourceError(
      'UNAUTHORIZED',
      `${name} refused the credential (${status}): renew what its credential refers to`,
    )
  }
  // A gateway that says that the server behind it is not there is no page of that server.
  if (accept === 'page' && status !== 502 && status !== 504)
    return readPage(name, status, headers['content-type'] ?? '', text)
  if (status === 400 || status === 422) throw new SourceError('REJECTED', `${name} refused the query: ${errorIn(text)}`)
  if (status < 200 || status >= 300) throw new SourceError('BAD_ANSWER', `${name} answered ${status}`, { status })
  if (accept !== 'json') return text
  if (!/json/.test(headers['content-type'] ?? '')) {
    const type = (headers['content-type'] ?? 'no content type').slice(0, 60)
    throw new SourceError('BAD_ANSWER', `${name} answered ${type} instead of JSON: is that the address of its API?`)
  }
  return parseJson(name, text)
}

/** A page as it is, whatever its status: what a health page says with 503 is what is asked for. */
function readPage(name: string, status: number, type: string, text: string): PageAnswer {
  if (/[/+]json\b/i.test(type)) return { status, json: parseJson(name, text) }
  if (/^text\/|[/+](?:xml|yaml|x-ndjson|openmetrics-text)\b/i.test(type) || (type === '' && !text.includes('\0')))
    return { status, text: text.replaceAll('\0', '\u{fffd}') }
  throw new SourceError(
    'BAD_ANSWER',
    `${name} answered ${type.slice(0, 60) || 'bytes'}, which is neither JSON nor text`,
  )
}

function parseJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new SourceError('BAD_ANSWER', `${name} answered JSON that does not parse`)
  }
}

/** The reason that a server of this family gives, as plain text of one line. */
function errorIn(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: unknown }
    if (typeof error === 'string') return error.replace(/\s+/g, ' ').slice(0, 300)
  } catch {
    // It is text then.
  }
  return text.replace(/\s+/g, ' ').slice(0, 200) || 'without a reason'
}

function toAuthorization(secret: string): string {
  const isPair = /^[^\s:]+:\S+$/.test(secret) && !secret.startsWith('eyJ')
  return isPair ? `Basic ${Buffer.from(secret).toString('base64')}` : `Bearer ${secret}`
}

/** Some servers repeat the headers of a request in what they answer. The credential is not what anybody asked for. */
function hideCredential(text: string, secret: string | null): string {
  if (secret === null) return text
  const [, encoded = secret] = toAuthorization(secret).split(' ')
  const password = /^[^\s:]+:(\S{6,})$/.exec(secret)?.[1]
  return [secret, encoded, ...(password ? [password] : [])].reduce(
    (rest, part) => rest.replaceAll(part, '[credential]'),
    text,
  )
}

function readSecret(name: string, ref: string): string {
  try {
    return readRef(ref)
  } catch (error) {
    throw error instanceof NoCredential ? new SourceError('NO_CREDENTIAL', `${name}: ${error.message}`) : error
  }
}
