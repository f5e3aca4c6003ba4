import { createParser } from 'eventsource-parser'
import type { z } from 'zod'
import { HttpError } from '../clients/http.ts'
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
import type { DeviceWay } from './exchange.ts'
import { issueRead, type SigningKey } from './sign.ts'

/**
 * The response does not match the request, the device or the schema of the protocol. Nothing in it
 * is used.
 */
export class InvalidDeviceResponseError extends Error {
  override name = 'InvalidDeviceResponseError' as const
}

/** What the way there and back may take beyond the device's own deadline. */
const graceMs = 5_000

/**
 * Sends one signed request and returns the device's answer, also a refusal. Throws HttpError when
 * no answer came, and InvalidDeviceResponseError when it is not one. Never repeats anything.
 */
export async function callDevice(
  device: DeviceWay,
  asked: CapabilityRequest,
  signal?: AbortSignal,
): Promise<CapabilityAnswer> {
  const timeoutMs = Math.max(1_000, Date.parse(asked.deadline) - Date.now() + graceMs)
  const body = JSON.stringify(asked)
  const answer = await device.exchange({
    method: 'POST',
    path: '/capability',
    body,
    timeoutMs,
    ...(signal && { signal }),
  })
  return about(device, asked.request_id, readJson(answer.body, capabilityAnswer, device.id))
}

/** The state of an operation: of the one that runs, else from the journal. */
export async function readOperation(
  device: DeviceWay,
  requestId: string,
  signing: SigningKey,
): Promise<CapabilityAnswer> {
  const path = `/operations/${requestId}`
  const authorization = leaveToRead(device, path, signing)
  const answer = await device.exchange({ method: 'GET', path, authorization, timeoutMs: 10_000 })
  return about(device, requestId, readJson(answer.body, capabilityAnswer, device.id))
}

/**
 * Follows a long operation: each line as it comes, then the answer. Null when the stream ended
 * without one; `readOperation` then returns its state.
 */
export async function followOperation(
  device: DeviceWay,
  requestId: string,
  signing: SigningKey,
  onLine: (line: string) => void,
  options: { timeoutMs: number; signal?: AbortSignal },
): Promise<CapabilityAnswer | null> {
  let last: CapabilityAnswer | null = null
  const parser = createParser({
    onEvent({ event, data }) {
      if (event === 'answer') last = readText(data, capabilityAnswer, device.id)
      else if (event === 'missed') onLine(`(${data} lines were missed)`)
      else onLine(lineOf(data))
    },
  })
  const path = `/operations/${requestId}`
  const authorization = leaveToRead(device, path, signing)
  const ask = { method: 'GET', path, authorization, accept: 'text/event-stream', ...options } as const
  for await (const line of device.lines(ask)) {
    parser.feed(`${line}\n`)
    if (last) break
  }
  return last === null ? null : about(device, requestId, last)
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
export async function cancelOperation(device: DeviceWay, requestId: string, order: object): Promise<void> {
  const path = `/operations/${requestId}`
  await device.exchange({ method: 'DELETE', path, body: JSON.stringify(order), timeoutMs: 10_000 })
}

/** The entries of a device's journal after number `after`: the chain, without its contents. */
export async function readJournal(device: DeviceWay, after: number, signing: SigningKey): Promise<JournalPage> {
  const path = `/journal?after=${after}`
  const authorization = leaveToRead(device, path, signing)
  const { status, body } = await device.exchange({ method: 'GET', path, authorization, timeoutMs: 20_000 })
  if (status !== 200)
    throw new InvalidDeviceResponseError(`${device.id} does not tell its journal: ${status} ${wordOf(body)}`)
  const page = readJson(body, journalPage, device.id)
  if (page.device !== device.id) throw new InvalidDeviceResponseError(`${device.id} answered as another device`)
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

/** What a reader shows in `Authorization`. */
function leaveToRead({ id }: DeviceWay, path: string, signing: SigningKey): string {
  const leave = JSON.stringify(issueRead(path, id, signing))
  return `Mesh ${Buffer.from(leave, 'utf8').toString('base64url')}`
}

export async function readHealth(device: DeviceWay): Promise<MeshHealth> {
  const answer = await device.exchange({ method: 'GET', path: '/health', timeoutMs: 5_000 })
  const health = readJson(answer.body, meshHealth, device.id)
  if (health.device !== null && health.device !== device.id) {
    throw new InvalidDeviceResponseError(`${device.id} says that it is another device`)
  }
  return health
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

function about(device: DeviceWay, requestId: string, answer: CapabilityAnswer): CapabilityAnswer {
  if (answer.device !== device.id) throw new InvalidDeviceResponseError(`${device.id} answered as another device`)
  if (answer.request_id !== requestId) throw new InvalidDeviceResponseError(`${device.id} answered another request`)
  return answer
}

/** Is it certain that nothing was sent? */
export function wasNotSent(error: unknown): boolean {
  return error instanceof HttpError && (error.code === 'connect' || error.code === 'refused_address')
}
