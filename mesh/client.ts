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
 * The response does not match the request, the device or the protocol's schema. No part of it is
 * used.
 */
export class InvalidDeviceResponseError extends Error {
  override name = 'InvalidDeviceResponseError' as const
}

/** Milliseconds for the transport of request and response, in addition to the device's deadline. */
const graceMs = 5_000

/**
 * Sends one signed request once. Returns the device's response, which may be a refusal. Throws
 * HttpError for no response, and InvalidDeviceResponseError for an invalid response.
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

/** Reads the present response to an operation, from the running operation or the journal. */
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
 * Follows a long operation: passes on each line when it comes, then returns the response. Null if
 * the stream ended without a response; `readOperation` then returns the operation's state.
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

/** Reads a line of a stream, which is a JSON string. Returns any other text unchanged. */
function lineOf(text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' ? value : text
  } catch {
    return text
  }
}

/** Sends a device the signed request to stop an operation. `readOperation` returns how it ended. */
export async function cancelOperation(device: DeviceWay, requestId: string, order: object): Promise<void> {
  const path = `/operations/${requestId}`
  await device.exchange({ method: 'DELETE', path, body: JSON.stringify(order), timeoutMs: 10_000 })
}

/**
 * Reads the entries of a device's journal after number `after`: the chain, without the contents.
 */
export async function readJournal(device: DeviceWay, after: number, signing: SigningKey): Promise<JournalPage> {
  const path = `/journal?after=${after}`
  const authorization = leaveToRead(device, path, signing)
  const { status, body } = await device.exchange({ method: 'GET', path, authorization, timeoutMs: 20_000 })
  if (status !== 200)
    throw new InvalidDeviceResponseError(`${device.id} does not show its journal: ${status} ${wordOf(body)}`)
  const page = readJson(body, journalPage, device.id)
  if (page.device !== device.id) throw new InvalidDeviceResponseError(`${device.id} answered as another device`)
  return page
}

/** Returns the device's error code. Empty if the body has no code. */
function wordOf(body: Uint8Array): string {
  try {
    return capabilityAnswer.parse(JSON.parse(Buffer.from(body).toString('utf8'))).error?.code ?? ''
  } catch {
    return ''
  }
}

/** Builds the `Authorization` header that permits one read of a path. */
function leaveToRead({ id }: DeviceWay, path: string, signing: SigningKey): string {
  const leave = JSON.stringify(issueRead(path, id, signing))
  return `Mesh ${Buffer.from(leave, 'utf8').toString('base64url')}`
}

export async function readHealth(device: DeviceWay): Promise<MeshHealth> {
  const answer = await device.exchange({ method: 'GET', path: '/health', timeoutMs: 5_000 })
  const health = readJson(answer.body, meshHealth, device.id)
  if (health.device !== null && health.device !== device.id) {
    throw new InvalidDeviceResponseError(`${device.id} reports that it is another device`)
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
    throw new InvalidDeviceResponseError(`the response of ${device} is not JSON`)
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const place = placeOfFault(parsed.error)
  throw new InvalidDeviceResponseError(`the response of ${device} does not fit the protocol, at ${place}`)
}

function about(device: DeviceWay, requestId: string, answer: CapabilityAnswer): CapabilityAnswer {
  if (answer.device !== device.id) throw new InvalidDeviceResponseError(`${device.id} answered as another device`)
  if (answer.request_id !== requestId) throw new InvalidDeviceResponseError(`${device.id} answered a different request`)
  return answer
}

/** Whether the error proves that no request was sent. */
export function wasNotSent(error: unknown): boolean {
  return error instanceof HttpError && (error.code === 'connect' || error.code === 'refused_address')
}
