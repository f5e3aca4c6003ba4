import { connect, createSecureServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { Pair } from './certificates.ts'

type ProxyOptions = {
  pair: Pair
  /** PEM of the authority whose certificates clients have to show. */
  clientAuthority?: string
  /** The key that each call has to carry. */
  apiKey?: string
  /** A service that it lets nobody near, as Temporal Cloud does with the operator's. */
  closedService?: string
}

export type TemporalProxy = {
  port: number
  stop(): Promise<void>
}

/** What stands before Temporal at other people's sites: it ends TLS, asks for certificates or a key, and passes calls on. */
export async function startTemporalProxy(target: string, options: ProxyOptions): Promise<TemporalProxy> {
  const upstream = connect(`http://${target}`)
  const server = createSecureServer({
    ...{ cert: options.pair.certificate, key: options.pair.key },
    ...(options.clientAuthority && { ca: options.clientAuthority, requestCert: true, rejectUnauthorized: true }),
  })
  server.on('session', (session) => session.on('error', () => undefined))
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => undefined)
    const isClosed = options.closedService && `${headers[':path']}`.includes(options.closedService)
    if (isClosed || (options.apiKey && headers.authorization !== `Bearer ${options.apiKey}`)) {
      const status = { 'grpc-status': '16', 'grpc-message': 'Request unauthorized.' }
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...status }, { endStream: true })
      return
    }
    const { ':authority': _, ...rest } = headers
    const call = upstream.request(rest)
    let trailers = {}
    call.on('error', () => stream.close())
    call.on('trailers', (got) => {
      trailers = Object.fromEntries(Object.entries(got).filter(([name]) => !name.startsWith(':')))
    })
    call.on('response', (answer, flags) => {
      // END_STREAM: the answer is all in its headers.
      const isAll = (flags & 1) === 1
      stream.respond(answer, isAll ? { endStream: true } : { waitForTrailers: true })
      if (isAll) return
      stream.on('wantTrailers', () => stream.sendTrailers(trailers))
      call.pipe(stream)
    })
    stream.on('close', () => call.close())
    stream.pipe(call)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      upstream.destroy()
      server.close()
    },
  }
}
