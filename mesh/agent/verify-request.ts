import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { z } from 'zod'
import {
  type CancelRequest,
  type CapabilityRequest,
  cancelRequest,
  capabilityRequest,
  clockSkewSeconds,
  type MeshErrorCode,
  maxSeconds,
  type SignedRead,
  signedRead,
} from '../../domain/mesh.ts'
import { nameFaults } from '../../domain/schema-faults.ts'
import { isSigned } from '../sign.ts'
import { keyOf, type TrustedKeys } from './manifest.ts'

/** No request is larger. */
export const bodyBytes = 1_048_576

/**
 * What a request is verified against. Nothing here is secret: signatures are checked with public
 * keys, nonces are public.
 */
export type VerificationContext = {
  device: string
  keys: TrustedKeys
  nowMs: number
  hasSeen(nonce: string): boolean
  /**
   * Nonces of requests from before this moment are not known any more, so all of those are
   * rejected. Null when all are known.
   */
  forgottenBeforeMs: number | null
}

export type Rejection = { ok: false; code: MeshErrorCode; message: string }
type VerifiedRequest<T> = { ok: true; request: T }

/**
 * Decides whether a call is one of the control plane, for this device, now and for the first time.
 * Pure and total.
 */
export function verifyCall(body: Uint8Array, at: VerificationContext): VerifiedRequest<CapabilityRequest> | Rejection {
  const verified = verifyRequest(body, capabilityRequest, at)
  if (!verified.ok) return verified
  const deadlineMs = Date.parse(verified.request.deadline)
  if (deadlineMs <= at.nowMs) return rejection('bad_deadline', 'The deadline has passed.')
  if (deadlineMs > at.nowMs + maxSeconds * 1000)
    return rejection('bad_deadline', `The deadline is more than ${maxSeconds} seconds away.`)
  return verifyTime(verified, at)
}

/** The same for a request to stop a running operation. */
export function verifyCancel(body: Uint8Array, at: VerificationContext): VerifiedRequest<CancelRequest> | Rejection {
  const verified = verifyRequest(body, cancelRequest, at)
  return verified.ok ? verifyTime(verified, at) : verified
}

/** The same for leave to read: `shown` is the header, `asked` the path with its query. */
export function verifyRead(
  shown: string | undefined,
  asked: string,
  at: VerificationContext,
): VerifiedRequest<SignedRead> | Rejection {
  const [, text] = /^Mesh ([A-Za-z0-9_-]{1,4096})$/.exec(shown ?? '') ?? []
  if (!text) return rejection('bad_signature', 'A reader shows a signed leave: Authorization: Mesh ….')
  const verified = verifyRequest(Buffer.from(text, 'base64url'), signedRead, at)
  if (!verified.ok) return verified
  if (verified.request.read !== asked) return rejection('bad_signature', 'The leave is for something else.')
  return verifyTime(verified, at)
}

type Signed = { device: string; nonce: string; issued_at: string; key_id: string; signature: string }

function verifyRequest<T extends Signed>(
  body: Uint8Array,
  schema: z.ZodType<T>,
  at: VerificationContext,
): VerifiedRequest<T> | Rejection {
  if (body.length > bodyBytes) return rejection('malformed', `The request is larger than ${bodyBytes} bytes.`)
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return rejection('malformed', 'The request is not JSON.')
  }
  const parsed = schema.safeParse(value)
  if (!parsed.success) {
    return rejection('malformed', nameFaults(parsed.error, { whole: 'The request', max: 1 }))
  }
  const request = parsed.data
  const key = keyOf(at.keys, request.key_id, at.nowMs)
  if (!key) return rejection('unknown_key', `Key ${request.key_id} may not sign for this device, or not any more.`)
  // Over the text as it came: what a default fills in was not signed.
  if (!isSigned(value as Signed, key)) return rejection('bad_signature', 'The signature is not over this request.')
  if (request.device !== at.device)
    return rejection('wrong_device', `The request is for ${request.device}, and this is ${at.device}.`)
  return { ok: true, request }
}

function verifyTime<T extends Signed>(
  verified: VerifiedRequest<T>,
  at: VerificationContext,
): VerifiedRequest<T> | Rejection {
  const { issued_at, nonce } = verified.request
  const issuedMs = Date.parse(issued_at)
  if (Math.abs(issuedMs - at.nowMs) > clockSkewSeconds * 1000) {
    const now = new Date(at.nowMs).toISOString()
    return rejection(
      'clock_skew',
      `It was issued at ${issued_at}, and here it is ${now}: more than ${clockSkewSeconds} s.`,
    )
  }
  if (at.forgottenBeforeMs !== null && issuedMs < at.forgottenBeforeMs)
    return rejection(
      'replayed_nonce',
      'It is older than what this agent remembers, so nobody can tell whether it is new.',
    )
  if (at.hasSeen(nonce)) return rejection('replayed_nonce', 'This nonce was used before.')
  return verified
}

/** For the answer to a malformed request: its id if it has one. */
export function requestIdIn(body: Uint8Array): string {
  try {
    const { request_id } = JSON.parse(Buffer.from(body).toString('utf8')) as { request_id?: unknown }
    if (typeof request_id === 'string' && /^req_[0-9a-f]{24}$/.test(request_id)) return request_id
  } catch {
    // Then it has none.
  }
  return noRequestId
}

export const noRequestId = `req_${'0'.repeat(24)}`

function rejection(code: MeshErrorCode, message: string): Rejection {
  return { ok: false, code, message: message.slice(0, 2_000) }
}

/**
 * Nonces of the requests that could still be sent again, on disk as well: one line each,
 * `issuedMs nonce`.
 */
export type Nonces = {
  has(nonce: string): boolean
  remember(nonce: string, issuedMs: number, nowMs: number): void
  /**
   * Requests from before cannot be told apart from new ones: the file was gone. Null when it was
   * there.
   */
  forgottenBeforeMs: number | null
}

const windowMs = clockSkewSeconds * 1000
const maxLines = 20_000

/**
 * The memory in that directory. Does not wait for the disk: a write survives the process' end, and
 * after a power loss the journal still knows it by its key.
 */
export function openNonces(directory: string, nowMs: number): Nonces {
  const file = join(directory, 'nonces')
  const isLost = !existsSync(file)
  const known = new Map<string, number>()
  let lines = 0
  if (!isLost) {
    for (const line of readFileSync(file, 'utf8').split('\n')) {
      const [issued, nonce] = line.split(' ')
      if (nonce && Number(issued) + windowMs >= nowMs) known.set(nonce, Number(issued))
    }
  }
  rewrite(nowMs)

  function rewrite(at: number): void {
    for (const [nonce, issuedMs] of known) if (issuedMs + windowMs < at) known.delete(nonce)
    writeFileSync(`${file}.new`, [...known].map(([nonce, issuedMs]) => `${issuedMs} ${nonce}\n`).join(''), {
      mode: 0o600,
    })
    renameSync(`${file}.new`, file)
    lines = known.size
  }

  return {
    has: (nonce) => known.has(nonce),
    remember(nonce, issuedMs, at) {
      known.set(nonce, issuedMs)
      appendFileSync(file, `${issuedMs} ${nonce}\n`, { mode: 0o600 })
      lines += 1
      if (lines > Math.max(maxLines, known.size * 2)) rewrite(at)
    },
    forgottenBeforeMs: isLost ? nowMs : null,
  }
}
