import { findCertificateFault } from '../clients/certificate-fault.ts'
import { HttpError, request } from '../clients/http.ts'
import { type CredentialHider, hideCredentials } from '../domain/hidden-credentials.ts'
import type { Source } from '../domain/source.ts'
import { addCommand, readSentWith } from './credentials.ts'
import { type AskSource, type PageAnswer, SourceError, type SourceErrorCode, type SourceRequest } from './kind.ts'

/**
 * The most bytes of one answer. A query with more is to be narrowed, not cut: half a series is no
 * evidence.
 */
const maxAnswerBytes = 4_000_000

/**
 * Speaks HTTP with a source: with its credential, read at each request and kept in this process,
 * within its time and an answer's bounds. Follows no redirect.
 */
export const connectHttp =
  (source: Source, directory: string): AskSource =>
  (asked) =>
    send(source, asked, directory)

async function send(source: Source, asked: SourceRequest, directory: string): Promise<unknown> {
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
    })
  } catch (error) {
    throw error instanceof HttpError ? toSourceError(source, error, maxBytes) : error
  }
  return readAnswer(source, answer, accept, hideCredentials(sentWith.secrets))
}

const certificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME|UNABLE_TO_GET_ISSUER/

/**
 * TLS' words where a server refuses the certificate, or its absence; in TLS 1.2 also that it shares
 * no cipher.
 */
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
  const [code = ''] = /[A-Z_]{8,}/.exec(error.message) ?? []
  const fault = findCertificateFault({ code })
  if (fault !== null) return say('UNTRUSTED_CERTIFICATE', fault)
  if (certificate.test(error.message))
    return say('UNTRUSTED_CERTIFICATE', 'has a certificate that is not trusted: set its caFile')
  if (error.code === 'refused_address') return say('UNREACHABLE', 'is at an address that is refused by policy')
  if (error.code === 'protocol') {
    // With TLS 1.3 some servers say nothing of a certificate: they hang up.
    const own = certFile === null ? 'asks for a certificate of ours (--cert, --key)' : `does not believe ${certFile}`
    const perhaps = source.url.startsWith('https:') ? `; a server that ${own} does so, too` : ''
    return say('BAD_ANSWER', `answered something that is not HTTP, or broke off${perhaps}`)
  }
  return say('UNREACHABLE', 'cannot be reached')
}

/**
 * Some servers repeat a request's headers: neither text nor value leaves this function with the
 * credential.
 */
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
  // A page that says 400 is what was asked for.
  const refused = accept === 'page' && status === 400 ? null : findRefusal(source, { status, text }, hide)
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

/** Words of Loki, Mimir, Cortex, Tempo (401) and VictoriaLogs (400) on a tenant's form. */
const aboutTenant = /\b(?:no org id|multiple org ids|cannot obtain tenant?id)\b/i
/** What VictoriaMetrics says (400) of a path that it does not serve. */
const unknownPath = /requestURI: .*unsupported path requested/s

/** The refused part, the asker or the tenant: what to set. Null: neither. */
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
  if (status === 400 && unknownPath.test(text)) {
    const perhaps = `a cluster of VictoriaMetrics has the tenant in it, as ${new URL(source.url).origin}/select/0/prometheus`
    return new SourceError('BAD_ANSWER', `${name} knows no such path: is its address right? ${perhaps}`)
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
