import { X509Certificate } from 'node:crypto'
import { connect as openSession } from 'node:http2'
import { isIP, connect as openTcp } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ConnectionOptions, checkServerIdentity, connect as openTls } from 'node:tls'
import { Connection, isGrpcServiceError } from '@temporalio/client'
import { queueScheduleId } from '../domain/step-key.ts'
import { isUnknownSigner } from '../domain/unknown-signer.ts'

/** Can a connection be made at all: name, port, TLS, HTTP/2? Null where it can. */
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
    // The first words of a server of HTTP/2; a client's certificate has been looked at by then.
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
    // An address of numbers is no name to ask for.
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
      what: `The name in ${address} is not known: ${code}`,
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
          what: `${at} speaks TLS, and we do not`,
          remedy: `Set TEMPORAL_TLS=true, and ${authority} for an authority of your own.`,
        }
      : { what: `What listens at ${address} is not Temporal: ${message}`, remedy: 'Correct TEMPORAL_ADDRESS.' }
  }
  if (!shown) {
    return {
      what: `What listens at ${address} does not speak TLS: ${message}`,
      remedy: 'Set TEMPORAL_TLS=false if nobody can listen on the way, or correct TEMPORAL_ADDRESS.',
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
      what: `${at} shows a certificate of ${inOneLine(shown.issuer)}, which ${own ? `${authority} does not vouch for` : 'this machine does not trust'}`,
      remedy: `Name the PEM file of that authority in ${authority}.`,
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
      remedy: 'Correct TEMPORAL_ADDRESS; if it is the right server behind another name, set TEMPORAL_TLS_SERVER_NAME.',
    }
  }
  const pair = typeof tls === 'object' ? tls.clientCertPair : undefined
  if (!pair) {
    return {
      what: `${at} ended the connection after the handshake: ${message}. It probably asks for a certificate of ours`,
      remedy: `Set ${ownPair}.`,
    }
  }
  const own = new X509Certificate(pair.crt)
  return {
    what: `${at} did not take our certificate of ${inOneLine(own.subject)}, issued by ${inOneLine(own.issuer)}, valid to ${own.validTo}: ${message}`,
    remedy: `Set ${ownPair} to a pair that the server trusts.`,
  }
}

/** The certificate that the server shows, believed or not; null where it speaks no TLS. */
function shownCertificate(settings: TemporalSettings, withinMs: number): Promise<X509Certificate | null> {
  const { host, port } = hostAndPort(settings.address)
  return new Promise((resolve) => {
    // Only to say what it is: nothing is sent over this connection.
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

/** What keeps us from Temporal and what to do about it, in words that name the setting. */
type Trouble = {
  what: string
  remedy: string
  /** It may only be starting, and waiting may be all it takes. */
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

/** The namespace works for another Nightshift, whose workers would take what this one starts. */
export function foreignNamespace({ namespace, address }: TemporalSettings, cause: unknown): TemporalError {
  const what = `The namespace ${namespace} at ${address} belongs to another Nightshift, with another database`
  const remedy = `Name a namespace of this one's own in TEMPORAL_NAMESPACE. Where the other one is gone for good: temporal schedule delete --namespace ${namespace} --schedule-id ${queueScheduleId}`
  return new TemporalError({ what, remedy }, cause)
}

/**
 * Asks on a separate connection what is in the way: name, port, TLS, key, namespace. Null where
 * Temporal answers for the namespace. The SDK's two clients mostly say "no connection before the
 * deadline", and differ.
 */
export async function troubleWith(settings: TemporalSettings, withinMs = 5_000): Promise<Trouble | null> {
  return (await handshake(settings, withinMs)) ?? (await refusal(settings, withinMs))
}

/** Does this; in Temporal's trouble the error names it, at once where waiting would not help. */
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
 * Does this once the whole server knows the namespace. A new one is described at once, while server
 * parts with namespaces in memory read them again every few seconds and say NOT_FOUND until then.
 * Asks for `patienceMs`, then throws the last words. What it does may be done in part and then
 * again.
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

/** Status codes of gRPC. */
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
        remedy: `Correct TEMPORAL_NAMESPACE, or make it with "temporal operator namespace create --namespace ${namespace}".`,
      }
    }
    if (code === unauthenticated || code === permissionDenied) {
      const what = apiKey ? 'refuses the key' : 'asks for a key or a certificate'
      return {
        what: `Temporal at ${address} ${what} for the namespace "${namespace}": ${details}`,
        remedy: apiKey
          ? 'Check TEMPORAL_API_KEY: is it of this namespace, and not expired or revoked?'
          : 'Set TEMPORAL_API_KEY, or TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH.',
      }
    }
    return {
      what: `Temporal at ${address} does not answer for the namespace "${namespace}": ${details}`,
      remedy: 'Look at the log of the Temporal frontend, and at what stands between.',
      mayPass: true,
    }
  } finally {
    await connection.close().catch(() => undefined)
  }
}

/** The way to Temporal and the identity: a client's and a worker's connection take it as it is. */
export type TemporalSettings = {
  /** `host:port` */
  address: string
  namespace: string
  apiKey?: string
  /** false: in clear text. true: by the authorities that this machine trusts. */
  tls:
    | boolean
    | {
        serverNameOverride?: string
        serverRootCACertificate?: Uint8Array
        clientCertPair?: { crt: Uint8Array; key: Uint8Array }
      }
  /** Headers of each call. */
  metadata?: Record<string, string>
}

/** What both kinds of connection are made with. */
export function connectionOptions({ address, apiKey, tls, metadata }: TemporalSettings) {
  return { address, tls, ...(apiKey && { apiKey }), ...(metadata && { metadata }) }
}
