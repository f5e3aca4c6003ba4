import { findCertificateFault } from '../clients/certificate-fault.ts'
import { HttpError, request } from '../clients/http.ts'
import { type CredentialHider, hideCredentials } from '../domain/hidden-credentials.ts'
import type { Source } from '../domain/source.ts'
import { addCommand, readSentWith } from './credentials.ts'
import { type AskSource, type PageAnswer, SourceError, type SourceErrorCode, type SourceRequest } from './kind.ts'

/**
 * The most bytes of one response. A larger response is refused and not cut, because half of the
 * data is no evidence.
 */
const maxAnswerBytes = 4_000_000

/**
 * Sends HTTP requests to a source, within limits of time and size. Reads the source's credential
 * for each request and keeps it in this process. Follows no redirects.
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
 * TLS alerts of a server that refuses a client certificate or requires one. In TLS 1.2 a missing
 * common cipher gives this alert too.
 */
const refusedByServer = /ALERT_(?:HANDSHAKE|ACCESS_DENIED|UNKNOWN_CA|\w*CERT)/

function toSourceError(source: Source, error: HttpError, maxBytes: number): SourceError {
  const { name, timeoutSeconds, certFile } = source
  const say = (code: SourceErrorCode, text: string) => new SourceError(code, `${name} ${text}`)
  const isRefused = refusedByServer.test(error.message)
  if (isRefused && certFile === null) {
    const why = 'ended the handshake: it may require a client certificate'
    return say('UNAUTHORIZED', `${why}: ${addCommand(source)} --cert FILE --key FILE`)
  }
  if (isRefused)
    return say(
      'UNAUTHORIZED',
      `refused the certificate in ${certFile}: give one from a certificate authority that the server trusts`,
    )
  if (error.code === 'timeout')
    return say(
      'TIMEOUT',
      `sent no complete response within ${timeoutSeconds} s: ask for less, or allow more time (--timeout)`,
    )
  if (error.code === 'too_large')
    return say('TOO_LARGE', `answered with more than ${maxBytes / 1e6} MB: aggregate, or name fewer series`)
  const [code = ''] = /[A-Z_]{8,}/.exec(error.message) ?? []
  const fault = findCertificateFault({ code })
  if (fault !== null) return say('UNTRUSTED_CERTIFICATE', fault)
  if (certificate.test(error.message))
    return say('UNTRUSTED_CERTIFICATE', 'has a certificate that is not trusted: set its caFile')
  if (error.code === 'refused_address') return say('UNREACHABLE', 'has an address to which Nightshift may not connect')
  if (error.code === 'protocol') {
    // Mentions the certificate: with TLS 1.3 some servers close the connection without an alert.
    const own = certFile === null ? 'requires a client certificate (--cert, --key)' : `does not accept ${certFile}`
    const perhaps = source.url.startsWith('https:') ? `; a server that ${own} also sends such responses` : ''
    return say('BAD_ANSWER', `sent a response that is not HTTP or not complete${perhaps}`)
  }
  return say('UNREACHABLE', 'cannot be reached')
}

/**
 * Reads a response, without the source's credential in its texts and values, because some servers
 * repeat the headers of the request.
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
    throw new SourceError('REDIRECT', `${name} answers with a redirect: set the address to which the redirect points`)
  // Treats status 400 as a normal response if a page was requested, because the page may have this
  // status.
  const refused = accept === 'page' && status === 400 ? null : findRefusal(source, { status, text }, hide)
  if (refused) throw refused
  // Reads no page from a gateway error, because the server behind the gateway did not send it.
  if (accept === 'page' && status !== 502 && status !== 504) return readPage(name, { status, type, text }, hide)
  if (status === 400 || status === 422)
    throw new SourceError('REJECTED', `${name} refused the query: ${errorIn(text, hide)}`)
  if (status < 200 || status >= 300) throw new SourceError('BAD_ANSWER', `${name} answered ${status}`, { status })
  if (accept !== 'json') return text
  if (!/json/.test(type)) {
    throw new SourceError(
      'BAD_ANSWER',
      `${name} answered with ${nameType(type)} instead of JSON: is this the address of its API?`,
    )
  }
  return parseJson(name, text, hide)
}

/** Errors of Loki, Mimir, Cortex, Tempo (401) and VictoriaLogs (400) about the tenant. */
const aboutTenant = /\b(?:no org id|multiple org ids|cannot obtain tenant?id)\b/i
/** VictoriaMetrics' error message (400) for an unknown path. */
const unknownPath = /requestURI: .*unsupported path requested/s

/**
 * Returns an error that names the refused path, credential or tenant, and the setting that helps.
 * Null if the response is no refusal of these kinds.
 */
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
    const why = tenants.length > 0 ? `refused the tenant ${tenants.join(', ')} ${words}` : `requires a tenant ${words}`
    const header = /org id/i.test(text) ? 'X-Scope-OrgID' : 'AccountID'
    return new SourceError(
      'NO_TENANT',
      `${name} ${why}: ${addCommand({ ...source, headers: {} })} --header ${header}=TENANT`,
    )
  }
  if (status === 400 && unknownPath.test(text)) {
    const perhaps = `a VictoriaMetrics cluster has the tenant in its address, such as ${new URL(source.url).origin}/select/0/prometheus`
    return new SourceError('BAD_ANSWER', `${name} does not have this path: is the source's address right? ${perhaps}`)
  }
  // Recognizes a problem with the client certificate, which nginx reports in an HTTP response.
  if (status === 400 && /SSL certificate/.test(text)) {
    const why = certFile === null ? 'requires a client certificate' : `refused the certificate in ${certFile}`
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
  return new SourceError('UNAUTHORIZED', `${name} refused the credential (${status}): renew the credential${tenant}`)
}

/** Reads a page with any status, because a health page may have the status 503. */
function readPage(
  name: string,
  { status, type, text }: { status: number; type: string; text: string },
  hide: CredentialHider,
): PageAnswer {
  if (/[/+]json\b/i.test(type)) return { status, json: parseJson(name, text, hide) }
  if (/^text\/|[/+](?:xml|yaml|x-ndjson|openmetrics-text)\b/i.test(type) || (type === '' && !text.includes('\0')))
    return { status, text: text.replaceAll('\0', '\u{fffd}') }
  throw new SourceError('BAD_ANSWER', `${name} answered with ${nameType(type)}, which is neither JSON nor text`)
}

/** Content types that a message may name. Other content types are untrusted text of the server. */
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
    throw new SourceError('BAD_ANSWER', `${name} answered with invalid JSON`)
  }
  return hide.value(parsed)
}

/** Returns the reason in an error response of the server, as plain text on one line. */
function errorIn(text: string, hide: CredentialHider): string {
  try {
    const { error } = JSON.parse(text) as { error?: unknown }
    if (typeof error === 'string') return hide.text(error).replace(/\s+/g, ' ').slice(0, 300)
  } catch {
    // Treats an error response that is not JSON as text.
  }
  return text.replace(/\s+/g, ' ').trim().slice(0, 200) || 'without a reason'
}
