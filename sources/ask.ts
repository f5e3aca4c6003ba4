import { HttpError, request } from '../clients/http.ts'
import { type CredentialHider, hideCredentials } from '../domain/hidden-credentials.ts'
import type { Source, SourceHealth } from '../domain/source.ts'
import { addCommand, defaultSourcesDirectory, findCredentialTrouble, readSentWith } from './credentials.ts'
import { type AskSource, type PageAnswer, SourceError, type SourceErrorCode, type SourceRequest } from './kind.ts'

/** Most bytes of one answer. A query that gives more is to be narrowed, not cut: half a series is no evidence. */
const maxAnswerBytes = 4_000_000
/** Failures in a row after which a source is left alone, and for how long. */
const failuresToRest = 5
const restMs = 30_000
/** Requests to one source at once: a storm of incidents is no load test. */
const maxAtOnce = 8

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
export type SourceStates = {
  byName: Map<string, State>
  report: (change: SourceChange) => void
  /** The only one whose files a source may name. */
  directory: string
}

export const newSourceStates = (
  report: SourceStates['report'] = () => {},
  directory = defaultSourcesDirectory,
): SourceStates => ({ byName: new Map(), report, directory })

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

export function healthOf({ byName, directory }: SourceStates, source: Source, nowMs: number): SourceHealth {
  const state = byName.get(source.name)
  const trouble = findCredentialTrouble(source, directory)
  const lastOkAt = state?.lastOkMs == null ? null : new Date(state.lastOkMs).toISOString()
  if (trouble) return { state: 'failing', lastOkAt, lastError: trouble.text, restsUntil: null }
  if (!state) return { state: 'unknown', lastOkAt: null, lastError: null, restsUntil: null }
  const isResting = state.restsUntilMs > nowMs
  return {
    state: isResting ? 'resting' : state.failures > 0 ? 'failing' : state.lastOkMs === null ? 'unknown' : 'ok',
    lastOkAt,
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
    if (state.atOnce >= maxAtOnce)
      throw new SourceError('BUSY', `${source.name} is asked ${maxAtOnce} things already: ask again`)
    state.atOnce += 1
    try {
      const answer = await send(source, asked, states.directory, signal)
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

async function send(
  source: Source,
  asked: SourceRequest,
  directory: string,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const { path, form, json, method = 'GET', accept = 'json', maxBytes = maxAnswerBytes } = asked
  const sentWith = readSentWith(source, directory)
  const { ca, client } = sentWith
  let answer: Awaited<ReturnType<typeof request>>
  try {
    answer = await request({
      method,
      url: `${source.url.replace(/\/+$/, '')}${path}`,
      headers: {
        accept: accept === 'json' ? 'application/json' : '*/*',
        ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
        ...(json !== undefined && { 'content-type': 'application/json' }),
        ...sentWith.headers,
      },
      ...(form && { body: new URLSearchParams(form).toString() }),
      ...(json !== undefined && { body: JSON.stringify(json) }),
      timeoutMs: source.timeoutSeconds * 1000,
      maxBytes,
      allow: 'private',
      ...(ca !== null && { ca }),
      ...(client !== null && { client }),
      ...(signal && { signal }),
    })
  } catch (error) {
    throw error instanceof HttpError ? toSourceError(source, error, maxBytes) : error
  }
  return readAnswer(source, answer, accept, hideCredentials(sentWith.secrets))
}

const certificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME|UNABLE_TO_GET_ISSUER/

/** What TLS says where a server refuses the certificate that it was, or was not, shown; of TLS 1.2 that it shares no cipher, too. */
const refusedByServer = /ALERT_(?:HANDSHAKE|ACCESS_DENIED|UNKNOWN_CA|\w*CERT)/

function toSourceError(source: Source, error: HttpError, maxBytes: number): SourceError {
  const { name, timeoutSeconds, certFile } = source
  const say = (code: SourceErrorCode, text: string) => new SourceError(code, `${name} ${text}`)
  const isRefused = refusedByServer.test(error.message)
  if (isRefused && certFile === null) {
    const why = 'ended the handshake, as a server does that asks for a certificate of ours'
    return say('UNAUTHORIZED', `${why}: ${addCommand(source)} --cert FILE --key FILE`)
  }
  if (isRefused)
    return say('UNAUTHORIZED', `refused the certificate in ${certFile}: name one whose authority it believes`)
  if (error.code === 'timeout')
    return say(
      'TIMEOUT',
      `gave no whole answer within ${timeoutSeconds} s: ask for less, or give it longer (--timeout)`,
    )
  if (error.code === 'too_large')
    return say('TOO_LARGE', `answered more than ${maxBytes / 1e6} MB: aggregate, or name fewer series`)
  if (certificate.test(error.message))
    return say('UNTRUSTED_CERTIFICATE', 'has a certificate that is not trusted: set its caFile')
  if (error.code === 'refused_address') return say('UNREACHABLE', 'is at an address that is refused by policy')
  if (error.code === 'protocol') {
    // Of TLS 1.3 some servers say nothing about a certificate: they hang up.
    const own = certFile === null ? 'asks for a certificate of ours (--cert, --key)' : `does not believe ${certFile}`
    const perhaps = source.url.startsWith('https:') ? `; a server that ${own} does so, too` : ''
    return say('BAD_ANSWER', `answered something that is not HTTP, or broke off${perhaps}`)
  }
  return say('UNREACHABLE', 'cannot be reached')
}

/** Some servers repeat the headers of a request in what they answer: neither a text nor a value leaves this function with the credential. */
function readAnswer(
  source: Source,
  { status, headers, body }: Awaited<ReturnType<typeof request>>,
  accept: SourceRequest['accept'],
  hide: CredentialHider,
): unknown {
  const { name } = source
  const text = hide.text(Buffer.from(body).toString('utf8'))
  const type = headers['content-type'] ?? ''
  if (status >= 300 && status < 400)
    throw new SourceError('REDIRECT', `${name} redirects: set its address to where it really is`)
  const refused = findRefusal(source, { status, text }, hide)
  if (refused) throw refused
  // A gateway that says that the server behind it is not there is no page of that server.
  if (accept === 'page' && status !== 502 && status !== 504) return readPage(name, { status, type, text }, hide)
  if (status === 400 || status === 422)
    throw new SourceError('REJECTED', `${name} refused the query: ${errorIn(text, hide)}`)
  if (status < 200 || status >= 300) throw new SourceError('BAD_ANSWER', `${name} answered ${status}`, { status })
  if (accept !== 'json') return text
  if (!/json/.test(type)) {
    throw new SourceError(
      'BAD_ANSWER',
      `${name} answered ${nameType(type)} instead of JSON: is that the address of its API?`,
    )
  }
  return parseJson(name, text, hide)
}

/** What Loki, Mimir, Cortex and Tempo say (401), and VictoriaLogs (400) of a tenant that is no number. */
const aboutTenant = /\b(?:no org id|multiple org ids|cannot obtain tenant ?id)\b/i
/** What a cluster of VictoriaMetrics says (400) where the address names no tenant. */
const withoutTenantInPath = /requestURI: .*unsupported path requested/

/** Who is asking, or for whose data, is what the server refused: what to set. Null: it is neither. */
function findRefusal(
  source: Source,
  { status, text }: { status: number; text: string },
  hide: CredentialHider,
): SourceError | null {
  const { name, headers, credential, certFile } = source
  const tenants = Object.entries(headers).map(([header, value]) => `${header}=${value}`)
  const isAboutWho = status === 401 || status === 403
  if ((isAboutWho || status === 400) && aboutTenant.test(text)) {
    const words = `(${status}: ${errorIn(text, hide)})`
    const why = tenants.length > 0 ? `refused the tenant ${tenants.join(', ')} ${words}` : `wants a tenant ${words}`
    const header = /org id/i.test(text) ? 'X-Scope-OrgID' : 'AccountID'
    return new SourceError(
      'NO_TENANT',
      `${name} ${why}: ${addCommand({ ...source, headers: {} })} --header ${header}=TENANT`,
    )
  }
  if (status === 400 && withoutTenantInPath.test(text)) {
    const remedy = `give it as --at ${source.url.replace(/\/+$/, '')}/select/0/prometheus`
    return new SourceError(
      'NO_TENANT',
      `${name} knows no such path: a cluster of VictoriaMetrics has the tenant in its address: ${remedy}`,
    )
  }
  // nginx says it within HTTP.
  if (status === 400 && /SSL certificate/.test(text)) {
    const why = certFile === null ? 'asks for a certificate of ours' : `refused the certificate in ${certFile}`
    const remedy = addCommand({ ...source, certFile: null, keyFile: null })
    return new SourceError('UNAUTHORIZED', `${name} ${why}: ${remedy} --cert FILE --key FILE`)
  }
  if (!isAboutWho) return null
  if (credential === null) {
    const also = certFile === null ? '' : ' beside the certificate'
    const why = `answered ${status}, and no credential is set${also}`
    return new SourceError('UNAUTHORIZED', `${name} ${why}: ${addCommand(source)} --credential REF`)
  }
  const tenant = tenants.length > 0 ? `, or may not read the tenant ${tenants.join(', ')}` : ''
  return new SourceError(
    'UNAUTHORIZED',
    `${name} refused the credential (${status}): renew what its credential refers to${tenant}`,
  )
}

/** A page as it is, whatever its status: what a health page says with 503 is what is asked for. */
function readPage(
  name: string,
  { status, type, text }: { status: number; type: string; text: string },
  hide: CredentialHider,
): PageAnswer {
  if (/[/+]json\b/i.test(type)) return { status, json: parseJson(name, text, hide) }
  if (/^text\/|[/+](?:xml|yaml|x-ndjson|openmetrics-text)\b/i.test(type) || (type === '' && !text.includes('\0')))
    return { status, text: text.replaceAll('\0', '\u{fffd}') }
  throw new SourceError('BAD_ANSWER', `${name} answered ${nameType(type)}, which is neither JSON nor text`)
}

/** Types that are shown by name. What a server makes up is its own text, and may be anything. */
const shownTypes = [
  ...['text/html', 'text/plain', 'text/css', 'text/csv', 'text/event-stream', 'text/javascript', 'text/xml'],
  ...['application/json', 'application/javascript', 'application/octet-stream', 'application/pdf', 'application/xml'],
  ...['application/x-protobuf', 'application/vnd.google.protobuf', 'application/gzip', 'application/zip'],
  ...['application/openmetrics-text', 'application/yaml', 'application/x-www-form-urlencoded', 'multipart/form-data'],
  ...['image/gif', 'image/jpeg', 'image/png', 'image/svg+xml', 'image/webp'],
]

function nameType(type: string): string {
  if (type === '') return 'no content type'
  const plain = type.replace(/;.*$/s, '').trim().toLowerCase()
  return shownTypes.includes(plain) ? plain : 'an unknown content type'
}

function parseJson(name: string, text: string, hide: CredentialHider): unknown {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    throw new SourceError('BAD_ANSWER', `${name} answered JSON that does not parse`)
  }
  return hide.value(parsed)
}

/** The reason that a server of this family gives, as plain text of one line. */
function errorIn(text: string, hide: CredentialHider): string {
  try {
    const { error } = JSON.parse(text) as { error?: unknown }
    if (typeof error === 'string') return hide.text(error).replace(/\s+/g, ' ').slice(0, 300)
  } catch {
    // It is text then.
  }
  return text.replace(/\s+/g, ' ').trim().slice(0, 200) || 'without a reason'
}
