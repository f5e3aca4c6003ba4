import { setTimeout as sleep } from 'node:timers/promises'
import { Connection, isGrpcServiceError } from '@temporalio/client'
import { handshake } from './handshake.ts'

/** What keeps us from Temporal and what to do about it, in words that name the setting. */
export type Trouble = {
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

/**
 * Asks on a separate connection what is in the way: the name, the port, TLS, the key, the namespace. Null where Temporal answers for
 * the namespace. The two clients of the SDK say most of it as "no connection before the deadline", and differ.
 */
export async function troubleWith(settings: TemporalSettings, withinMs = 5_000): Promise<Trouble | null> {
  return (await handshake(settings, withinMs)) ?? (await refusal(settings, withinMs))
}

/** Does this; where Temporal is in trouble, the error says which, at once where waiting would not help. */
export async function orTrouble<T>(settings: TemporalSettings, connect: () => Promise<T>): Promise<T> {
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
 * Does this once the whole server knows the namespace. One that was made a moment ago is described at once, while the parts of the
 * server that keep namespaces in memory read them again every few seconds and say NOT_FOUND until then. Asks for `patienceMs`,
 * then throws what the server said last. What it does may be done in part and then again.
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

/** How to reach Temporal and as whom; both kinds of connection, a client's and a worker's, take it as it is. */
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
