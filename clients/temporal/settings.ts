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
