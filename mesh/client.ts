import { createParser } from 'eventsource-parser'
import type { z } from 'zod'
import { HttpError, type HttpRequest, request, streamLines } from '../clients/http.ts'
import {
  type CapabilityAnswer,
  type CapabilityRequest,
  capabilityAnswer,
  type JournalPage,
  journalPage,
  type MeshHealth,
  meshHealth,
} from '../domain/mesh.ts'
import { placeOfFault } from '../domain/schema-faults.ts'
import { issueRead, type SigningKey } from './sign.ts'

/** Where a device listens, and the authority (PEM) that its certificate has to be signed by. */
export type DeviceAddress = { id: string; url: string; ca?: string }

/**
 * The response does not match the request, the device or the schema of the protocol. Nothing in it
 * is used.
 */
export class InvalidDeviceResponseError extends Error {
  override name = 'InvalidDeviceResponseError' as const
}

const maxAnswerBytes = 16_000_000
/** What the way there and back may take beyond the device's own deadline. */
const graceMs = 5_000

/**
 * Sends one signed request and returns the device's answer, also a refusal. Throws HttpError when
 * no answer came, and InvalidDeviceResponseError when it is not one. Never repeats anything.
 */
export async function callDevice(
  address: DeviceAddress,
  asked: CapabilityRequest,
  signal?: AbortSignal,
): Promise<CapabilityAnswer> {
  const timeoutMs = Math.max(1_000, Date.parse(asked.deadline) - Date.now() + graceMs)
  const answer = await request(
    post(address, 'POST', '/capability', JSON.stringify(asked), { timeoutMs, ...(signal && { signal }) }),
  )
  return about(address, asked.request_id, readJson(answer.body, capabilityAnswer, address.id))
}

/** The state of an operation: of the one that runs, else from the journal. */
export async function readOperation(
  address: DeviceAddress,
  requestId: string,
  signing: SigningKey,
): Promise<CapabilityAnswer> {
  const path = `/operations/${requestId}`
  const headers = readingHeader(address, path, signing)
  const answer = await request(post(address, 'GET', path, undefined, { timeoutMs: 10_000, headers }))
  return about(address, requestId, readJson(answer.body, capabilityAnswer, address.id))
}

/**
 * Follows a long operation: each line as it comes, then the answer. Null when the stream ended
 * without one; `readOperation` then returns its state.
 */
export async function followOperation(
  address: DeviceAddress,
  requestId: string,
  signing: SigningKey,
  onLine: (line: string) => void,
  options: { timeoutMs: number; signal?: AbortSignal },
): Promise<CapabilityAnswer | null> {
  let last: CapabilityAnswer | null = null
  const parser = createParser({
    onEvent({ event, data }) {
      if (event === 'answer') last = readText(data, capabilityAnswer, address.id)
      else if (event === 'missed') onLine(`(${data} lines were missed)`)
      else onLine(lineOf(data))
    },
  })
  const path = `/operations/${requestId}`
  const headers = { accept: 'text/event-stream', ...readingHeader(address, path, signing) }
  for await (const line of streamLines(post(address, 'GET', path, undefined, { ...options, headers }))) {
    parser.feed(`${line}\n`)
    if (last) break
  }
  return last === null ? null : about(address, requestId, last)
}

/** Lines are JSON strings; anything else is a line as it stands. */
function lineOf(text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' ? value : text
  } catch {
    return text
  }
}

/**
 * Asks a device to stop an operation; signed like any request. `readOperation` returns how it
 * ended.
 */
export async function cancelOperation(address: DeviceAddress, requestId: string, order: object): Promise<void> {
  await request(post(address, 'DELETE', `/operations/${requestId}`, JSON.stringify(order), { timeoutMs: 10_000 }))
}

/** The entries of a device's journal after number `after`: the chain, without its contents. */
export async function readJournal(address: DeviceAddress, after: number, signing: SigningKey): Promise<JournalPage> {
  const path = `/journal?after=${after}`
  const headers = readingHeader(address, path, signing)
  const { status, body } = await request(post(address, 'GET', path, undefined, { timeoutMs: 20_000, headers }))
  if (status !== 200)
    throw new InvalidDeviceResponseError(`${address.id} does not tell its journal: ${status} ${wordOf(body)}`)
  const page = readJson(body, journalPage, address.id)
  if (page.device !== address.id) throw new InvalidDeviceResponseError(`${address.id} answered as another device`)
  return page
}

/** The device's word for why not, where it has one. */
function wordOf(body: Uint8Array): string {
  try {
    return capabilityAnswer.parse(JSON.parse(Buffer.from(body).toString('utf8'))).error?.code ?? ''
  } catch {
    return ''
  }
}

function readingHeader({ id }: DeviceAddress, path: string, signing: SigningKey): Record<string, string> {
  const leave = JSON.stringify(issueRead(path, id, signing))
  return { authorization: `Mesh ${Buffer.from(leave, 'utf8').toString('base64url')}` }
}

export async function readHealth(address: DeviceAddress): Promise<MeshHealth> {
  const answer = await request(post(address, 'GET', '/health', undefined, { timeoutMs: 5_000 }))
  const health = readJson(answer.body, meshHealth, address.id)
  if (health.device !== null && health.device !== address.id) {
    throw new InvalidDeviceResponseError(`${address.id} says that it is another device`)
  }
  return health
}

function post(
  address: DeviceAddress,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body: string | undefined,
  more: Pick<HttpRequest, 'timeoutMs' | 'headers' | 'signal'>,
): HttpRequest {
  return {
    method,
    url: `${address.url.replace(/\/+$/, '')}${path}`,
    ...(body !== undefined && { body, headers: { 'content-type': 'application/json' } }),
    maxBytes: maxAnswerBytes,
    // Devices are in private networks; link-local addresses and metadata services are refused.
    allow: 'private',
    ...(address.ca !== undefined && { ca: address.ca }),
    ...more,
  }
}

function readJson<T>(body: Uint8Array, schema: z.ZodType<T>, device: string): T {
  return readText(Buffer.from(body).toString('utf8'), schema, device)
}

function readText<T>(text: string, schema: z.ZodType<T>, device: string): T {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new InvalidDeviceResponseError(`${device} answered something that is no JSON`)
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const place = placeOfFault(parsed.error)
  throw new InvalidDeviceResponseError(`${device} answered what the protocol does not know, at ${place}`)
}

function about(address: DeviceAddress, requestId: string, answer: CapabilityAnswer): CapabilityAnswer {
  if (answer.device !== address.id) throw new InvalidDeviceResponseError(`${address.id} answered as another device`)
  if (answer.request_id !== requestId) throw new InvalidDeviceResponseError(`${address.id} answered another request`)
  return answer
}

/** Is it certain that nothing was sent? */
export function wasNotSent(error: unknown): boolean {
  return error instanceof HttpError && (error.code === 'connect' || error.code === 'refused_address')
}
