import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { CredentialHider } from '../../domain/hidden-credentials.ts'
import type { JobOutcome } from '../../domain/job.ts'
import { placeOfFault } from '../../domain/schema-faults.ts'
import { HttpError, request } from '../http.ts'

/** Common to the systems that run jobs for us: one exchange, and following a job to its end. */

/** A system that runs jobs for us: it is sent one, and asked by its number how it went. */
export type RemoteJobs = {
  /** `isCheck`: its mode that changes nothing. `key` goes along where the system takes one. */
  launch(options: { isCheck: boolean; key: string }): Promise<{ ref: string } | { outcome: JobOutcome }>
  /** Null while it runs. Throws JobSystemError where it cannot be told. */
  look(ref: string): Promise<JobOutcome | null>
  /** Asks it to stop; whether it did is to be looked at. */
  cancel(ref: string): Promise<void>
  everyMs: number
}

/** The system said no, or nothing. `mayHaveBegun`: the job was sent; its outcome is unknown. */
export class JobSystemError extends Error {
  override name = 'JobSystemError' as const
  readonly mayHaveBegun: boolean
  /** The system did something else than it was asked to. */
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
  /** The system, for errors. */
  who: string
  accept?: 'json' | 'text'
  /** Hides the credentials that the request carries. */
  hide: CredentialHider
}

/** What a system is asked with; `hide` takes it out of what is answered. */
export type JobCredentials = { token: string; hide: CredentialHider; ca?: string }

const answerWithinMs = 30_000
const maxAnswerBytes = 2_000_000
/** More of an output than people or models read. */
const maxOutputCharacters = 64_000

/** One request without redirects. Throws JobSystemError; a 4xx began nothing, silence may have. */
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
    throw new JobSystemError(`${who} gave no answer (${error.code})`, !isLook && !neverSent)
  }
  // Hidden before anything is cut: half a credential would not be known.
  const text = hide.text(Buffer.from(answer.body).toString('utf8'))
  if (answer.status >= 200 && answer.status < 300) {
    if (accept === 'text') return text
    const json = jsonOf(text)
    if (json === undefined) throw new JobSystemError(`${who} answered something that is not JSON`, !isLook)
    return hide.value(json)
  }
  const said = text.replace(/\s+/g, ' ').slice(0, 300)
  throw new JobSystemError(`${who} answered ${answer.status}: ${said}`, !isLook && answer.status >= 500)
}

/** An answer as its schema reads it. */
export function read<T>(schema: z.ZodType<T>, answer: unknown, who: string): T {
  const parsed = schema.safeParse(answer)
  if (parsed.success) return parsed.data
  const at = placeOfFault(parsed.error)
  throw new JobSystemError(`${who} answered something else than its documentation says, at ${at}`, false)
}

/** What a job printed. Where that cannot be had, nothing is to be read out of its absence. */
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

/** The end of an output, where the recap is. */
export function keepEnd(text: string): { output: string; isCut: boolean } {
  return { output: text.slice(-maxOutputCharacters), isCut: text.length > maxOutputCharacters }
}

/** A job that was asked to stop is given this long to say that it did. */
const stopWithinMs = 30_000

/**
 * Waits for a sent job. Its deadline asks the system to stop it. Null: no answer told its end; ask
 * by its number.
 */
export async function followRemote(remote: RemoteJobs, ref: string, timeoutMs: number): Promise<JobOutcome | null> {
  const untilMs = performance.now() + timeoutMs
  // A question without an answer changes nothing: the job goes on whatever the network does.
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
      const late = `it was asked to stop after ${Math.round(timeoutMs / 1000)} s; ${outcome.detail}`
      return { ...outcome, detail: late }
    }
    await sleep(Math.min(1_000, remote.everyMs))
  } while (performance.now() < stopByMs)
  return null
}

export const output = z.object({ entries: z.array(z.object({ log: z.string().default('') })).default([]) })
