import { X509Certificate } from 'node:crypto'
import { connect as openSession } from 'node:http2'
import { isIP, connect as openTcp } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ConnectionOptions, checkServerIdentity, connect as openTls } from 'node:tls'
import { Connection, isGrpcServiceError } from '@temporalio/client'
import { queueScheduleId } from '../domain/step-key.ts'
import { isUnknownSigner } from '../domain/unknown-signer.ts'

/** Tries a connection to Temporal: name, port, TLS, HTTP/2. Null if the connection works. */
async function handshake(settings: TemporalSettings, withinMs: number): Promise<Trouble | null> {
  const failure = await openOnce(settings, withinMs)
  return failure ? await explain(settings, failure, withinMs) : null
}

type Failure = { code: string; message: string }

function openOnce(settings: TemporalSettings, withinMs: number): Promise<Failure | null> {
  const { tls, address } = settings
  return new Promise((resolve) => {
    const socket = tls
      ? openTls({ ...tlsOptions(settings), ...hostAndPort(address) })
      : openTcp({ ...hostAndPort(address) })
    const session = openSession(`http://${address}`, { createConnection: () => socket })
    const timer = setTimeout(() => end({ code: 'ETIMEDOUT', message: 'no answer' }), withinMs)
    const end = (failure: Failure | null) => {
      clearTimeout(timer)
      session.destroy()
      socket.destroy()
      resolve(failure)
    }
    // Waits for the server's first frame of HTTP/2, which follows its check of the certificate.
    session.once('remoteSettings', () => end(null))
    const fail = (error: NodeJS.ErrnoException) => end({ code: error.code ?? '', message: error.message })
    session.on('error', fail)
    socket.on('error', fail)
    socket.once('close', () => end({ code: 'ECONNRESET', message: 'the connection was closed' }))
  })
}

function tlsOptions({ address, tls }: TemporalSettings): ConnectionOptions {
  const {
    serverNameOverride: name,
    serverRootCACertificate: ca,
    clientCertPair: pair,
  } = tls === true || !tls ? {} : tls
  const { host } = hostAndPort(address)
  return {
    ...(ca && { ca: Buffer.from(ca) }),
    ...(pair && { cert: Buffer.from(pair.crt), key: Buffer.from(pair.key) }),
    ...(name && { checkServerIdentity: (_: string, certificate) => checkServerIdentity(name, certificate) }),
    // Leaves out a numeric address, which is not a valid server name for TLS.
    servername: name ?? (isIP(host) ? '' : host),
    ALPNProtocols: ['h2'],
  }
}

const authority = 'TEMPORAL_TLS_SERVER_CA_CERT_PATH'
const ownPair = 'TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH'

async function explain(settings: TemporalSettings, failure: Failure, withinMs: number): Promise<Trouble> {
  const { address, tls } = settings
  const at = `Temporal at ${address}`
  const { code, message } = failure
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return {
      what: `The host name in ${address} cannot be resolved: ${code}`,
      remedy: 'Correct TEMPORAL_ADDRESS, or the DNS.',
      mayPass: true,
    }
  }
  if (['ECONNREFUSED', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'].includes(code)) {
    const what = code === 'ECONNREFUSED' ? `Nothing listens at ${address}` : `${at} does not answer: ${code}`
    return { what, remedy: 'Start Temporal, or correct TEMPORAL_ADDRESS.', mayPass: true }
  }
  const shown = await shownCertificate(settings, withinMs)
  if (!tls) {
    return shown
      ? {
          what: `${at} uses TLS, but Nightshift does not`,
          remedy: `Set TEMPORAL_TLS=true, and ${authority} for your own authority.`,
        }
      : { what: `The server at ${address} is not Temporal: ${message}`, remedy: 'Correct TEMPORAL_ADDRESS.' }
  }
  if (!shown) {
    return {
      what: `The server at ${address} does not use TLS: ${message}`,
      remedy: 'Set TEMPORAL_TLS=false if nobody can read that network, or correct TEMPORAL_ADDRESS.',
    }
  }
  return explainTls(settings, failure, shown)
}

function explainTls(settings: TemporalSettings, { code, message }: Failure, shown: X509Certificate): Trouble {
  const { address, tls } = settings
  const at = `Temporal at ${address}`
  if (isUnknownSigner(code)) {
    const own = typeof tls === 'object' && tls.serverRootCACertificate
    return {
      what: `${at} has a certificate of ${inOneLine(shown.issuer)}, which ${own ? `${authority} does not contain` : 'this machine does not trust'}`,
      remedy: `Set ${authority} to the PEM file of that certificate authority.`,
    }
  }
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return {
      what: `The certificate of ${at} is valid from ${shown.validFrom} to ${shown.validTo}, and not now`,
      remedy: 'Renew the certificate of the server, or correct the clock of this machine.',
    }
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const names = shown.subjectAltName ?? inOneLine(shown.subject)
    return {
      what: `The certificate of ${at} is for another name: ${names}`,
      remedy: 'Correct TEMPORAL_ADDRESS; if the server is right but has another name, set TEMPORAL_TLS_SERVER_NAME.',
    }
  }
  const pair = typeof tls === 'object' ? tls.clientCertPair : undefined
  if (!pair) {
    return {
      what: `${at} ended the connection after the handshake: ${message}. The server probably requires a client certificate`,
      remedy: `Set ${ownPair}.`,
    }
  }
  const own = new X509Certificate(pair.crt)
  return {
    what: `${at} refused the client certificate of ${inOneLine(own.subject)}, issued by ${inOneLine(own.issuer)}, valid to ${own.validTo}: ${message}`,
    remedy: `Set ${ownPair} to a certificate and key that the server trusts.`,
  }
}

/** Returns Temporal's certificate, trusted or not. Null if Temporal does not use TLS. */
function shownCertificate(settings: TemporalSettings, withinMs: number): Promise<X509Certificate | null> {
  const { host, port } = hostAndPort(settings.address)
  return new Promise((resolve) => {
    // Accepts any certificate, only to describe it. No request is sent over this connection.
    const socket = openTls({ ...tlsOptions(settings), host, port, rejectUnauthorized: false, timeout: withinMs }, () =>
      end(socket.getPeerX509Certificate() ?? null),
    )
    const end = (certificate: X509Certificate | null) => {
      socket.destroy()
      resolve(certificate)
    }
    socket.on('error', () => end(null))
    socket.once('timeout', () => end(null))
    socket.once('close', () => end(null))
  })
}

function hostAndPort(address: string): { host: string; port: number } {
  const { hostname, port } = new URL(`tcp://${address}`)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) }
}

const inOneLine = (name: string) => name.replaceAll('\n', ', ')

/** The problem that blocks the connection to Temporal, and the remedy, which names a setting. */
type Trouble = {
  what: string
  remedy: string
  /** True if waiting may be enough, because Temporal may still be starting. */
  mayPass?: boolean
}

export class TemporalError extends Error {
  override name = 'TemporalError' as const
  readonly trouble: Trouble
  constructor(trouble: Trouble, cause?: unknown) {
    super(`${trouble.what}. ${trouble.remedy}`, { cause })
    this.trouble = trouble
  }
}

/**
 * Makes the error that the namespace belongs to another Nightshift, whose workers would take this
 * one's work.
 */
export function foreignNamespace({ namespace, address }: TemporalSettings, cause: unknown): TemporalError {
  const what = `The namespace ${namespace} at ${address} belongs to another Nightshift, which has another database`
  const remedy = `Name another namespace in TEMPORAL_NAMESPACE. If the other Nightshift does not exist any more: temporal schedule delete --namespace ${namespace} --schedule-id ${queueScheduleId}`
  return new TemporalError({ what, remedy }, cause)
}

/**
 * Checks on a separate connection what blocks Temporal: name, port, TLS, key, namespace. Null if
 * Temporal responds for the namespace. The SDK's two clients differ, and mostly report only "no
 * connection before the deadline".
 */
export async function troubleWith(settings: TemporalSettings, withinMs = 5_000): Promise<Trouble | null> {
  return (await handshake(settings, withinMs)) ?? (await refusal(settings, withinMs))
}

/** Runs `connect`. If Temporal fails, throws the problem, and at once if waiting would not help. */
export async function explainTrouble<T>(settings: TemporalSettings, connect: () => Promise<T>): Promise<T> {
  const before = await troubleWith(settings)
  if (before && !before.mayPass) throw new TemporalError(before)
  try {
    return await connect()
  } catch (error) {
    const trouble = await troubleWith(settings)
    throw trouble ? new TemporalError(trouble, error) : error
  }
}

/**
 * Runs `work` as soon as the complete Temporal server knows the namespace. A new namespace can be
 * described at once. Parts of the server that keep namespaces in memory reload them every few
 * seconds, and return NOT_FOUND until then. Repeats `work` for `patienceMs`, then throws the last
 * error. A failed `work` may be partly done before it is repeated.
 */
export async function onceNamespaceIsKnown<T>(work: () => Promise<T>, patienceMs = 30_000): Promise<T> {
  const until = performance.now() + patienceMs
  for (;;) {
    try {
      return await work()
    } catch (error) {
      const isUnknown = isGrpcServiceError(error) && error.code === notFound
      if (!isUnknown || performance.now() > until) throw error
      await sleep(500)
    }
  }
}

/** The status codes of gRPC that are checked below. */
const notFound = 5
const permissionDenied = 7
const unauthenticated = 16

async function refusal(settings: TemporalSettings, withinMs: number): Promise<Trouble | null> {
  const { address, namespace, apiKey } = settings
  const connection = Connection.lazy(connectionOptions(settings))
  try {
    await connection.withDeadline(Date.now() + withinMs, () =>
      connection.workflowService.describeNamespace({ namespace }),
    )
    return null
  } catch (error) {
    const { code, details } = isGrpcServiceError(error) ? error : { code: -1, details: String(error) }
    if (code === notFound) {
      return {
        what: `Temporal at ${address} has no namespace "${namespace}"`,
        remedy: `Correct TEMPORAL_NAMESPACE, or create the namespace with "temporal operator namespace create --namespace ${namespace}".`,
      }
    }
    if (code === unauthenticated || code === permissionDenied) {
      const what = apiKey ? 'refuses the key' : 'asks for a key or a certificate'
      return {
        what: `Temporal at ${address} ${what} for the namespace "${namespace}": ${details}`,
        remedy: apiKey
          ? 'Check TEMPORAL_API_KEY: is the key for this namespace, and not expired or revoked?'
          : 'Set TEMPORAL_API_KEY, or TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH.',
      }
    }
    return {
      what: `Temporal at ${address} does not answer for the namespace "${namespace}": ${details}`,
      remedy: 'Check the log of the Temporal frontend, and proxies on the way.',
      mayPass: true,
    }
  } finally {
    await connection.close().catch(() => undefined)
  }
}

/** Temporal's address and credentials, in the form that client and worker connections accept. */
export type TemporalSettings = {
  /** The address as `host:port`. */
  address: string
  namespace: string
  apiKey?: string
  /** `false`: without TLS. `true`: with the authorities that this machine trusts. */
  tls:
    | boolean
    | {
        serverNameOverride?: string
        serverRootCACertificate?: Uint8Array
        clientCertPair?: { crt: Uint8Array; key: Uint8Array }
      }
  /** Headers of each call to Temporal. */
  metadata?: Record<string, string>
}

/** Returns the options for the connections of clients and workers. */
export function connectionOptions({ address, apiKey, tls, metadata }: TemporalSettings) {
  return { address, tls, ...(apiKey && { apiKey }), ...(metadata && { metadata }) }
}
