import { connect, createSecureServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { giveBack, isFree } from '../../start/port.ts'
import { searchAttributes, startTemporal, type Temporal } from '../../start/temporal.ts'
import { findTemporalCli } from '../../start/temporal-cli.ts'
import type { Pair } from './certificates.ts'
import { eventually } from './directory.ts'

const rootDir = fileURLToPath(new URL('../..', import.meta.url))
const portOf = (address: string) => Number(address.slice(address.lastIndexOf(':') + 1))

type OwnTemporal = {
  current: Temporal
  /** Starts it again from its file and at its ports, after it was stopped or killed. */
  again(): Promise<void>
  stop(): Promise<void>
}

/** A Temporal that a test may kill, with its file in this directory. */
export async function ownTemporal(dir: string): Promise<OwnTemporal> {
  const cli = await findTemporalCli({ rootDir, env: process.env })
  const start = (ports?: { frontend: number; ui: number }) =>
    startTemporal({
      ...{ cli: cli.path, dir, searchAttributes, logFile: `${dir}/temporal.log`, env: process.env },
      ...(ports ? { ports } : {}),
    })
  const own: OwnTemporal = {
    current: await start(),
    async again() {
      const ports = { frontend: portOf(own.current.address), ui: portOf(own.current.uiUrl) }
      for (const port of Object.values(ports)) {
        giveBack(port)
        // The kernel closes a killed server's ports a moment later.
        await eventually(`port ${port} to be free`, () => isFree(port))
      }
      own.current = await start(ports)
    },
    stop: async () => void (await own.current.stop()),
  }
  return own
}

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
