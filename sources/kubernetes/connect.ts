import { setTimeout as sleep } from 'node:timers/promises'
import { findCertificateFault } from '../../clients/certificate-fault.ts'
import { HttpError } from '../../clients/http.ts'
import { ClusterError, type ClusterServer, getObject, getText } from '../../clients/kubernetes/server.ts'
import { clusterVerbs, sayRule } from '../../domain/cluster-rights.ts'
import { type CredentialHider, hideCredentials } from '../../domain/hidden-credentials.ts'
import type { Source } from '../../domain/source.ts'
import { redact } from '../../safety/redact.ts'
import { addCommand } from '../credentials.ts'
import { SourceError, type SourceErrorCode } from '../kind.ts'
import { readAccess } from './access.ts'
import { viewOf } from './kept.ts'
import { type ClusterKind, clusterKinds, pathOf } from './kinds.ts'
import type { ClusterView, FollowState } from './view.ts'

/**
 * A question to a cluster: one object or list of a known kind, lines of a pod's log, the version of
 * the cluster, or the view in memory.
 */
type ClusterQuestion =
  | { read: ClusterKind; namespace: string | null; name?: string; query?: Record<string, string> }
  | { logOf: string; namespace: string; query: Record<string, string>; maxBytes: number }
  | { view: true }
  | { version: true }

/** The view of a cluster in memory, with the name of its source. */
export type SeenCluster = {
  name: string
  view: ClusterView
  namespaces: readonly string[] | null
  /** Names that alerts use for the cluster, in addition to the name of the source. */
  names: readonly string[]
}

export type AskCluster = {
  (question: { view: true }): Promise<SeenCluster>
  (question: {
    logOf: string
    namespace: string
    query: Record<string, string>
    maxBytes: number
  }): Promise<{
    text: string
    isCut: boolean
  }>
  (question: ClusterQuestion): Promise<unknown>
}

const maxAnswerBytes = 16_000_000
/**
 * The longest wait in milliseconds if the server requests a delay. A server that requests a longer
 * delay counts as busy.
 */
const maxWaitMs = 2_000

/** Namespaces that the rights cover. Null for the whole cluster. */
const namespacesOf = ({ namespaces }: Record<string, unknown>): string[] | null => listWords(namespaces)

/** Splits words at commas. Null if there is no text. */
const listWords = (text: unknown): string[] | null =>
  typeof text === 'string' ? [...new Set(text.split(',').map((each) => each.trim()))] : null

export const connectCluster = (source: Source, directory: string): AskCluster =>
  (async (question: ClusterQuestion): Promise<unknown> => {
    const { server, secrets } = readAccess(source, directory)
    const hide = hideCredentials(secrets)
    if ('view' in question) return await seeCluster(source, directory, hide)
    try {
      return await ask(server, question, hide).catch(async (error: unknown) => {
        const waitMs = error instanceof ClusterError && error.code === 'busy' ? error.retryAfterMs : null
        if (waitMs === null || waitMs > maxWaitMs) throw error
        await sleep(waitMs)
        return await ask(server, question, hide)
      })
    } catch (error) {
      throw toSourceError(source, error, 'read' in question ? question : null, hide)
    }
  }) as AskCluster

async function ask(
  server: ClusterServer,
  question: Exclude<ClusterQuestion, { view: true }>,
  hide: CredentialHider,
): Promise<unknown> {
  if ('version' in question) return hide.value(await getObject(server, '/version', 100_000))
  if ('logOf' in question) {
    const { namespace, logOf, query, maxBytes } = question
    const path = `${pathOf('Pod', namespace, logOf)}/log?${new URLSearchParams(query)}`
    const { text, isCut } = await getText(server, path, maxBytes)
    return { text: hide.text(text), isCut }
  }
  const { read, namespace, name, query } = question
  const asked = query ? `?${new URLSearchParams(query)}` : ''
  return hide.value(await getObject(server, `${pathOf(read, namespace, name)}${asked}`, maxAnswerBytes))
}

/** Milliseconds without news about pods after which the view counts as out of date. */
const maxQuietMs = 600_000

async function seeCluster(source: Source, directory: string, hide: CredentialHider): Promise<SeenCluster> {
  const { name, url, credential, caFile, certFile, keyFile, options, timeoutSeconds } = source
  const namespaces = namespacesOf(options)
  const open = () => {
    const { server, secrets } = readAccess(source, directory)
    return { server, hide: hideCredentials(secrets) }
  }
  const key = JSON.stringify({ url, credential, caFile, certFile, keyFile, options, directory })
  const view = await viewOf({ name, key, namespaces, open }, timeoutSeconds * 1_000)
  const pods = view.states.filter(({ kind }) => kind === 'Pod')
  const [first] = pods
  if (first && pods.every(({ listedMs }) => listedMs === null)) throw notListed(source, first, hide)
  const heardMs = Math.max(...pods.map((each) => each.heardMs ?? 0))
  if (first?.trouble && Date.now() - heardMs > maxQuietMs) throw notListed(source, first, hide)
  return { name, view, namespaces, names: listWords(options.names) ?? [] }
}

function notListed(source: Source, { kind, namespace, trouble }: FollowState, hide: CredentialHider): SourceError {
  if (trouble) return toSourceError(source, trouble.error, { read: kind, namespace }, hide)
  return new SourceError(
    'TIMEOUT',
    `${source.name} is being listed for the first time: try again, or allow more time (--timeout)`,
  )
}

type Asked = { read: ClusterKind; namespace: string | null; name?: string }

/** Returns the rule that the source's role needs to allow a refused request. */
export function missingRule({ read }: Pick<Asked, 'read'>): string {
  const { group, plural } = clusterKinds[read]
  return sayRule({ group, resources: [plural], verbs: clusterVerbs })
}

const refusedByServer = /ALERT_(?:HANDSHAKE|ACCESS_DENIED|UNKNOWN_CA|\w*CERT)/
const certificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME|UNABLE_TO_GET_ISSUER/

/**
 * Converts an error to a SourceError, with the remedy. `asked` is null for log lines or the version
 * of the cluster.
 */
function toSourceError(source: Source, error: unknown, asked: Asked | null, hide: CredentialHider): SourceError {
  const { name, timeoutSeconds } = source
  const say = (code: SourceErrorCode, text: string, status: number | null = null) =>
    new SourceError(code, `${name} ${text}`, { status, cause: error })
  if (error instanceof SourceError) return error
  if (error instanceof ClusterError) return refusalOf(source, error, asked, hide)
  if (!(error instanceof HttpError)) throw error
  if (error.code === 'timeout')
    return say(
      'TIMEOUT',
      `sent no complete response within ${timeoutSeconds} s: ask for less, or allow more time (--timeout)`,
    )
  if (error.code === 'too_large') return say('TOO_LARGE', 'sent too large a response: name one object or namespace')
  if (error.code === 'refused_address') return say('UNREACHABLE', 'has an address to which Nightshift may not connect')
  const [code = ''] = /[A-Z_]{8,}/.exec(error.message) ?? []
  const fault = findCertificateFault({ code })
  if (fault !== null) return say('UNTRUSTED_CERTIFICATE', fault)
  if (refusedByServer.test(error.message)) return say('UNAUTHORIZED', 'refused the client certificate, or requires one')
  if (certificate.test(error.message))
    return say('UNTRUSTED_CERTIFICATE', `has a certificate that is not trusted: ${addCommand(source)} --ca FILE`)
  return error.code === 'protocol'
    ? say('BAD_ANSWER', 'sent a response that is not HTTP or not complete')
    : say('UNREACHABLE', 'cannot be reached')
}

function refusalOf(
  { name }: Source,
  { code, status, message, retryAfterMs }: ClusterError,
  asked: Asked | null,
  hide: CredentialHider,
): SourceError {
  const said = redact(hide.text(message))
  const say = (word: SourceErrorCode, text: string) => new SourceError(word, `${name} ${text}`, { status })
  const plural = asked ? clusterKinds[asked.read].plural : 'pods/log'
  const place = asked?.namespace ? ` in ${asked.namespace}` : ''
  switch (code) {
    case 'unauthorized':
      return say('UNAUTHORIZED', `does not accept the credential (401): its token may have expired; create a new one`)
    case 'forbidden': {
      const rule = asked ? missingRule(asked) : sayRule({ group: '', resources: ['pods/log'], verbs: ['get'] })
      return say(
        'FORBIDDEN',
        `does not let the account of Nightshift read ${plural}${place}: the role lacks the rule ${rule}; nightshift sources rights ${name} prints all rules`,
      )
    }
    case 'not_found':
      return say('REJECTED', `has no such ${asked?.name ? `object: ${plural} ${asked.name}${place}` : `${plural}`}`)
    case 'busy': {
      const wait = retryAfterMs === null ? '' : `, for ${Math.ceil(retryAfterMs / 1_000)} s`
      return say('BUSY', `asks Nightshift to wait${wait} (${status})`)
    }
    case 'gone':
    case 'rejected':
      return say('REJECTED', `refused the request: ${said}`)
    case 'failed':
      return say('BAD_ANSWER', `answered ${status}: ${said}`)
    case 'no_json':
      return say('BAD_ANSWER', `${said}: is this the address of an API server?`)
  }
}
