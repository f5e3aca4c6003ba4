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

/** The most bytes of a request. */
export const bodyBytes = 1_048_576

/**
 * The inputs of a verification. No input is secret: public keys check the signatures, and nonces
 * are public.
 */
export type VerificationContext = {
  device: string
  keys: TrustedKeys
  nowMs: number
  hasSeen(nonce: string): boolean
  /**
   * Nonces from before this time are lost, so every request from before it is rejected. Null if all
   * nonces are known.
   */
  forgottenBeforeMs: number | null
}

export type Rejection = { ok: false; code: MeshErrorCode; message: string }
type VerifiedRequest<T> = { ok: true; request: T }

/**
 * Decides whether a call comes from the control plane, for this device, now and for the first time.
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

/** Verifies a request to stop a running operation as `verifyCall` does. */
export function verifyCancel(body: Uint8Array, at: VerificationContext): VerifiedRequest<CancelRequest> | Rejection {
  const verified = verifyRequest(body, cancelRequest, at)
  return verified.ok ? verifyTime(verified, at) : verified
}

/** Verifies a read as `verifyCall` does. `shown` is the header, `asked` the path with query. */
export function verifyRead(
  shown: string | undefined,
  asked: string,
  at: VerificationContext,
): VerifiedRequest<SignedRead> | Rejection {
  const [, text] = /^Mesh ([A-Za-z0-9_-]{1,4096})$/.exec(shown ?? '') ?? []
  if (!text) return rejection('bad_signature', 'A read needs a signed permission in a header: Authorization: Mesh ….')
  const verified = verifyRequest(Buffer.from(text, 'base64url'), signedRead, at)
  if (!verified.ok) return verified
  if (verified.request.read !== asked) return rejection('bad_signature', 'The permission is for another request.')
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
  if (!key)
    return rejection('unknown_key', `Key ${request.key_id} may not sign for this device, or its permission has ended.`)
  // Checks the signature of the received text, because defaults of the schema were not signed.
  if (!isSigned(value as Signed, key)) return rejection('bad_signature', 'The signature does not match this request.')
  if (request.device !== at.device)
    return rejection('wrong_device', `The request is for ${request.device}, and this device is ${at.device}.`)
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
      `The request was issued at ${issued_at}, and the clock of this device shows ${now}: more than ${clockSkewSeconds} s apart.`,
    )
  }
  if (at.forgottenBeforeMs !== null && issuedMs < at.forgottenBeforeMs)
    return rejection(
      'replayed_nonce',
      'The request is older than the nonces that this agent remembers, so it may be a replay.',
    )
  if (at.hasSeen(nonce)) return rejection('replayed_nonce', 'This nonce was used before.')
  return verified
}

/** Returns the id of a malformed request, or a constant id if the request has none. */
export function requestIdIn(body: Uint8Array): string {
  try {
    const { request_id } = JSON.parse(Buffer.from(body).toString('utf8')) as { request_id?: unknown }
    if (typeof request_id === 'string' && /^req_[0-9a-f]{24}$/.test(request_id)) return request_id
  } catch {
    // A body that is not JSON has no id.
  }
  return noRequestId
}

export const noRequestId = `req_${'0'.repeat(24)}`

function rejection(code: MeshErrorCode, message: string): Rejection {
  return { ok: false, code, message: message.slice(0, 2_000) }
}

/** Nonces of requests that could still be repeated. A file has one per line: `issuedMs nonce`. */
export type Nonces = {
  has(nonce: string): boolean
  remember(nonce: string, issuedMs: number, nowMs: number): void
  /**
   * Requests from before this time may be repeats, because the file of nonces was missing. Null if
   * the file existed.
   */
  forgottenBeforeMs: number | null
}

const windowMs = clockSkewSeconds * 1000
const maxLines = 20_000

/**
 * Opens the nonces of a state directory. Does not wait for the disk: a nonce survives the end of
 * the process, and after a power loss the journal still knows a write by its idempotency key.
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
