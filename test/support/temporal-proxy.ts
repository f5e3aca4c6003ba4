import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, request as send } from 'node:http'
import { connect, createSecureServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import * as x509 from '@peculiar/x509'
import { isFree, releasePort } from '../../start/process.ts'
import { searchAttributes, startTemporal, type Temporal } from '../../start/temporal.ts'
import { findTemporalCli } from '../../start/temporal-cli.ts'
import { eventually } from './directory.ts'

// The library's parts find each other by it.

x509.cryptoProvider.set(webcrypto as never)

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const day = 86_400_000

/** A certificate and its key, both PEM. */
export type Pair = { certificate: string; key: string }

export type Authority = {
  certificate: string
  issue(names: { dns?: string[]; ip?: string[]; expired?: boolean }): Promise<Pair>
}

/** An authority that nobody knows, made for a test. */
export async function newAuthority(name: string): Promise<Authority> {
  const keys = await newKeys()
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    signingAlgorithm: algorithm,
    serialNumber: '01',
    ...validity(-1, 30),
    extensions: [
      new x509.BasicConstraintsExtension(true, 1, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return {
    certificate: root.toString('pem'),
    async issue({ dns = [], ip = [], expired = false }) {
      const own = await newKeys()
      const names = [...dns.map((value) => ({ type: 'dns', value })), ...ip.map((value) => ({ type: 'ip', value }))]
      const certificate = await x509.X509CertificateGenerator.create({
        subject: `CN=${dns[0] ?? ip[0]}`,
        issuer: root.subject,
        publicKey: own.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: algorithm,
        ...(expired ? validity(-10, -2) : validity(-1, 10)),
        extensions: [
          new x509.BasicConstraintsExtension(false, undefined, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
          new x509.SubjectAlternativeNameExtension(names as never),
          await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey),
        ],
      })
      const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', own.privateKey as never)
      return { certificate: certificate.toString('pem'), key: x509.PemConverter.encode(pkcs8, 'PRIVATE KEY') }
    },
  }
}

type CryptoKey = webcrypto.CryptoKey

async function newKeys(): Promise<{ publicKey: CryptoKey; privateKey: CryptoKey }> {
  return (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as never
}

function validity(from: number, to: number) {
  return { notBefore: new Date(Date.now() + from * day), notAfter: new Date(Date.now() + to * day) }
}

export type Relay = {
  url: string
  /**
   * Holds the next answer whose request matches, after the receiver has done its work; resolves
   * when one is held.
   */
  holdNext(matches: (method: string, path: string) => boolean): Promise<void>
  /** Requests passed on, as `METHOD path`. */
  passed: string[]
  stop(): Promise<void>
}

/**
 * A relay before an HTTP server, so that a caller can be killed between what happened and what it
 * hears of it.
 */
export async function startRelay(target: string): Promise<Relay> {
  const passed: string[] = []
  let hold: { matches: (method: string, path: string) => boolean; held: () => void } | null = null
  const server = createServer((request, response) => {
    const method = request.method ?? 'GET'
    const path = request.url ?? '/'
    passed.push(`${method} ${path}`)
    const upstream = send(new URL(path, target), { method, headers: request.headers }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk) => chunks.push(chunk))
      answer.on('end', () => {
        if (hold?.matches(method, path)) {
          hold.held()
          hold = null
          return
        }
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        response.end(Buffer.concat(chunks))
      })
    })
    upstream.on('error', () => response.destroy())
    request.pipe(upstream)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    passed,
    holdNext: (matches) =>
      new Promise<void>((held) => {
        hold = { matches, held }
      }),
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/**
 * Stops a process and all below it without ending them, as a machine that hangs does. Answers how
 * to let them go on.
 */
export function freeze(pid: number): () => void {
  const frozen: number[] = []
  // A parent first: it starts no more children while they are looked for.
  const stop = (each: number) => {
    process.kill(each, 'SIGSTOP')
    frozen.push(each)
    for (const child of childrenOf(each)) stop(child)
  }
  stop(pid)
  return () => {
    for (const each of frozen.reverse()) process.kill(each, 'SIGCONT')
  }
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && parentOf(pid) === parent)
}

function parentOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return null
  }
}

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
      cli: cli.path,
      dir,
      searchAttributes,
      logFile: `${dir}/temporal.log`,
      env: process.env,
      ...(ports ? { ports } : {}),
    })
  const own: OwnTemporal = {
    current: await start(),
    async again() {
      const ports = { frontend: portOf(own.current.address), ui: portOf(own.current.uiUrl) }
      for (const port of Object.values(ports)) {
        releasePort(port)
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

/**
 * What stands before Temporal at other people's sites: it ends TLS, asks for certificates or a key,
 * and passes calls on.
 */
export async function startTemporalProxy(target: string, options: ProxyOptions): Promise<TemporalProxy> {
  const upstream = connect(`http://${target}`)
  const server = createSecureServer({
    cert: options.pair.certificate,
    key: options.pair.key,
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
