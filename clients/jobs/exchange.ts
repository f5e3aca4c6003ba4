import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { CredentialHider } from '../../domain/hidden-credentials.ts'
import type { JobOutcome } from '../../domain/job.ts'
import { placeOfFault } from '../../domain/schema-faults.ts'
import { HttpError, request } from '../http.ts'

/** Shared parts of the systems that run jobs: one exchange, and following a job to its end. */

/** A system that runs jobs: it launches a job, and reports the outcome by the job's number. */
export type RemoteJobs = {
  /**
   * Launches a job. `isCheck`: launches the job in a mode that changes nothing. `key` is sent if
   * the system accepts an idempotency key.
   */
  launch(options: { isCheck: boolean; key: string }): Promise<{ ref: string } | { outcome: JobOutcome }>
  /**
   * Returns the outcome of a job. Null while the job runs. Throws JobSystemError if the outcome
   * cannot be read.
   */
  look(ref: string): Promise<JobOutcome | null>
  /** Requests that the job stops; `look` later reports whether it stopped. */
  cancel(ref: string): Promise<void>
  everyMs: number
}

/**
 * A refusal of the job system, or no response. `mayHaveBegun`: the job was requested, and its
 * outcome is unknown.
 */
export class JobSystemError extends Error {
  override name = 'JobSystemError' as const
  readonly mayHaveBegun: boolean
  /** True if the system runs something other than the requested job. */
  readonly isOtherwise: boolean
  constructor(message: string, mayHaveBegun: boolean, isOtherwise = false) {
    super(message)
    this.mayHaveBegun = mayHaveBegun
    this.isOtherwise = isOtherwise
  }
}

export type Exchange = {
  method: 'GET' | 'POST' | 'PUT'
  url: string
  headers?: Record<string, string>
  body?: unknown
  ca?: string | undefined
  /** The name of the job system, for errors. */
  who: string
  accept?: 'json' | 'text'
  /** Hides the credentials that the request carries. */
  hide: CredentialHider
}

/** The credential for a job system. `hide` removes the credential from responses. */
export type JobCredentials = { token: string; hide: CredentialHider; ca?: string }

const answerWithinMs = 30_000
const maxAnswerBytes = 2_000_000
/** Characters of a job's output that are kept, more than people or models read. */
const maxOutputCharacters = 64_000

/**
 * Makes one request without redirects. Throws JobSystemError. After a 4xx no job has begun; without
 * a response a job may have begun.
 */
export async function exchange(asked: Exchange): Promise<unknown> {
  const { method, url, headers, body, ca, who, accept = 'json', hide } = asked
  const isLook = method === 'GET'
  let answer: Awaited<ReturnType<typeof request>>
  try {
    answer = await request({
      method,
      url,
      headers: {
        accept: accept === 'json' ? 'application/json' : 'text/plain',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      timeoutMs: answerWithinMs,
      maxBytes: maxAnswerBytes,
      ...(accept === 'text' && { overflow: 'cut' as const }),
      allow: 'private',
      ...(ca !== undefined && { ca }),
    })
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    const neverSent = error.code === 'connect' || error.code === 'refused_address'
    throw new JobSystemError(`${who} did not answer (${error.code})`, !isLook && !neverSent)
  }
  // Hides the credential before the text is cut, because half of it would not be recognized.
  const text = hide.text(Buffer.from(answer.body).toString('utf8'))
  if (answer.status >= 200 && answer.status < 300) {
    if (accept === 'text') return text
    const json = jsonOf(text)
    if (json === undefined) throw new JobSystemError(`the response of ${who} is not JSON`, !isLook)
    return hide.value(json)
  }
  const said = text.replace(/\s+/g, ' ').slice(0, 300)
  throw new JobSystemError(`${who} answered ${answer.status}: ${said}`, !isLook && answer.status >= 500)
}

/** Parses a response by its schema. Throws JobSystemError if it does not fit. */
export function read<T>(schema: z.ZodType<T>, answer: unknown, who: string): T {
  const parsed = schema.safeParse(answer)
  if (parsed.success) return parsed.data
  const at = placeOfFault(parsed.error)
  throw new JobSystemError(`${who} answered something that its documentation does not describe, at ${at}`, false)
}

/** Reads a job's output. A missing output proves nothing about the job. */
export async function outputOf(ask: () => Promise<string>): Promise<{ output: string; isCut: boolean }> {
  try {
    return keepEnd(await ask())
  } catch (error) {
    if (error instanceof JobSystemError) return { output: '', isCut: true }
    throw error
  }
}

function jsonOf(text: string): unknown {
  try {
    return text === '' ? null : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Keeps the end of a job's output, which contains the summary. */
export function keepEnd(text: string): { output: string; isCut: boolean } {
  return { output: text.slice(-maxOutputCharacters), isCut: text.length > maxOutputCharacters }
}

/** Milliseconds within which a job has to report its end after it was requested to stop. */
const stopWithinMs = 30_000

/**
 * Waits for a launched job. At the deadline, requests that the system stops it. Null if no response
 * reported the job's end, which its number can show later.
 */
export async function followRemote(remote: RemoteJobs, ref: string, timeoutMs: number): Promise<JobOutcome | null> {
  const untilMs = performance.now() + timeoutMs
  // Ignores a failed query, because the job does not depend on this connection.
  const look = () =>
    remote.look(ref).catch((error: unknown) => {
      if (error instanceof JobSystemError) return null
      throw error
    })
  for (let waitMs = Math.min(200, remote.everyMs); performance.now() < untilMs; ) {
    const outcome = await look()
    if (outcome) return outcome
    await sleep(Math.min(waitMs, Math.max(0, untilMs - performance.now())))
    waitMs = Math.min(remote.everyMs, waitMs * 2)
  }
  await remote.cancel(ref).catch(() => {})
  const stopByMs = performance.now() + Math.min(stopWithinMs, Math.max(1_000, timeoutMs))
  do {
    const outcome = await look()
    if (outcome) {
      const late = `the job was asked to stop after ${Math.round(timeoutMs / 1000)} s; ${outcome.detail}`
      return { ...outcome, detail: late }
    }
    await sleep(Math.min(1_000, remote.everyMs))
  } while (performance.now() < stopByMs)
  return null
}

export const output = z.object({ entries: z.array(z.object({ log: z.string().default('') })).default([]) })
