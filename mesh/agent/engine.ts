import { type IncomingMessage, request } from 'node:http'
import { z } from 'zod'
import { placeOfFault } from '../../domain/schema-faults.ts'
import { stripText } from '../../safety/redact.ts'
import { CapabilityError, errnoOf } from './capability.ts'

/**
 * The container engine's HTTP API over its Unix socket. Paths name no version of the API, so the
 * engine uses its newest version.
 */
export type ContainerEngine = { socket: string; host: string }

const standard = 'unix:///var/run/docker.sock'
const patienceMs = 3_000
/** The most bytes of a response. A list of a few hundred containers fits. */
const maxBytes = 4 << 20
const maxErrorBytes = 64 << 10

/** Builds an engine from an address in the form of DOCKER_HOST. Absent for the usual socket. */
export function engineAt(host: string | undefined): ContainerEngine {
  const written = host || standard
  return { host: written, socket: written.startsWith('unix://') ? written.slice('unix://'.length) : '' }
}

/** Returns null if an engine responds, and otherwise why it does not respond, in words. */
export async function missingEngine(engine: ContainerEngine): Promise<string | null> {
  if (engine.socket === '') return `${engine.host} is not a Unix socket, and other addresses are not supported`
  try {
    const answer = await send(engine, 'GET', '/_ping', undefined, AbortSignal.timeout(patienceMs))
    answer.resume()
    return answer.statusCode === 200 ? null : `the engine at ${engine.socket} answers ${answer.statusCode}`
  } catch (error) {
    return notThere(engine, error)
  }
}

function notThere({ socket }: ContainerEngine, error: unknown): string {
  const code = errnoOf(error)
  if (code === 'ENOENT') return `no engine socket at ${socket}`
  if (code === 'EACCES') return `the agent may not use the engine socket at ${socket}`
  return `no engine answers at ${socket}`
}

type EngineRequest = { method: 'GET' | 'POST'; path: string; body?: unknown }

/**
 * Requests JSON of this shape. Throws CapabilityError with the engine's message if the engine
 * refuses, and for JSON of another shape.
 */
export async function requestJson<T>(
  engine: ContainerEngine,
  { method, path, body }: EngineRequest,
  shape: z.ZodType<T>,
  signal: AbortSignal,
): Promise<T> {
  const text = await readUpTo(maxBytes, await open(engine, method, path, signal, body))
  if (text === null)
    throw new CapabilityError('failed', `the response of the engine has more than ${maxBytes >> 20} MiB`)
  const parsed = shape.safeParse(jsonIn(text))
  if (parsed.success) return parsed.data
  throw new CapabilityError('failed', `the engine sent an unexpected response, at ${placeOfFault(parsed.error)}`)
}

/** Reads a response up to a limit. Null for a longer response, which is not read further. */
async function readUpTo(max: number, answer: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > max) {
      answer.destroy()
      return null
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Requests a response as a stream, which the caller reads or destroys. */
export async function open(
  engine: ContainerEngine,
  method: 'GET' | 'POST' | 'HEAD',
  path: string,
  signal: AbortSignal,
  body?: unknown,
): Promise<IncomingMessage> {
  let answer: IncomingMessage
  try {
    answer = await send(engine, method, path, body, signal)
  } catch (error) {
    if (signal.aborted) throw error
    throw new CapabilityError('capability_unavailable', notThere(engine, error))
  }
  const status = answer.statusCode ?? 0
  if (status >= 200 && status < 300) return answer
  const why = wordsOf((await readUpTo(maxErrorBytes, answer)) ?? 'too much text')
  throw new CapabilityError(
    status === 404 ? 'not_found' : status === 409 ? 'conflict' : 'failed',
    `the engine reports: ${why}`,
  )
}

/** Returns the engine's error message from `{ "message": "…" }`, or else the complete text. */
function wordsOf(text: string): string {
  let said = text
  try {
    said = String((JSON.parse(text) as { message?: unknown }).message)
  } catch {}
  return stripText(said, { keepNewlines: false }).slice(0, 500)
}

function send(
  engine: ContainerEngine,
  method: string,
  path: string,
  body: unknown,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const bytes = body === undefined ? null : Buffer.from(JSON.stringify(body))
  const headers = bytes ? { 'content-type': 'application/json', 'content-length': bytes.length } : {}
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath: engine.socket, method, path, signal, headers: { host: 'engine', ...headers } })
    sent.once('response', resolve)
    sent.once('error', reject)
    sent.end(bytes ?? undefined)
  })
}

type Piece = { stream: 'stdout' | 'stderr'; bytes: Buffer }

/**
 * Separates a container's standard output and standard error. Without a terminal, each piece has a
 * header of eight bytes: the output (1 and 0: standard, 2: error), three zeros, and the length,
 * big-endian. Passes on bytes as they come, even if the network split a piece.
 */
export async function* demultiplex(body: AsyncIterable<Buffer>, terminal: boolean): AsyncGenerator<Piece> {
  if (terminal) {
    for await (const bytes of body) yield { stream: 'stdout', bytes }
    return
  }
  let rest: Buffer = Buffer.alloc(0)
  let left = 0
  let stream: Piece['stream'] = 'stdout'
  for await (const chunk of body) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (;;) {
      if (left > 0 && rest.length > 0) {
        const bytes = rest.subarray(0, left)
        rest = rest.subarray(bytes.length)
        left -= bytes.length
        yield { stream, bytes }
      }
      if (left > 0 || rest.length < 8) break
      if (rest[0]! > 2 || rest.readUIntBE(1, 3) !== 0)
        throw new CapabilityError('failed', 'the engine did not send a stream of output')
      stream = rest[0] === 2 ? 'stderr' : 'stdout'
      left = rest.readUInt32BE(4)
      rest = rest.subarray(8)
    }
  }
}

/** An id that the engine made, for paths of its API and a search in control groups. */
export const engineId = z.string().regex(/^[0-9a-f]{64}$/, 'is no id')

/**
 * A text of the engine on one line, so that untrusted text can neither control a terminal nor look
 * like another line.
 */
export const word = (longest = 200) =>
  z.string().transform((text) => stripText(text, { keepNewlines: false }).slice(0, longest).toWellFormed())

const inspected = z.looseObject({
  Id: engineId,
  Name: word().default(''),
  Config: z.looseObject({ Tty: z.boolean().default(false) }),
})

export type Container = { id: string; name: string; terminal: boolean }

/** Looks up a container by name or id: its full id, and whether a terminal joins its outputs. */
export async function containerOf(engine: ContainerEngine, name: string, signal: AbortSignal): Promise<Container> {
  const found = await requestJson(engine, { method: 'GET', path: pathOf(name) }, inspected, signal)
  return { id: found.Id, name: found.Name.replace(/^\//, ''), terminal: found.Config.Tty }
}

/** Returns the API path that describes a container. */
export const pathOf = (name: string): string => `/containers/${encodeURIComponent(name)}/json`
