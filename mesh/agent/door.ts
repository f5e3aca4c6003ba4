import type { z } from 'zod'
import {
  type CancelRequest,
  type CapabilityRequest,
  cancelRequest,
  capabilityRequest,
  clockSkewSeconds,
  longestSeconds,
  type MeshErrorCode,
  type SignedRead,
  signedRead,
} from '../../domain/mesh.ts'
import { isSigned } from '../sign.ts'
import { keyOf, type TrustedKeys } from './manifest.ts'

/** No request is larger. */
export const bodyBytes = 1_048_576

/** What a request is held against. Nothing here is a secret: signatures are checked with public keys, nonces are in the open. */
export type Doorstep = {
  device: string
  keys: TrustedKeys
  nowMs: number
  hasSeen(nonce: string): boolean
  /** Nonces of requests from before this moment are not known any more, so none of those is taken. Null when all are known. */
  forgottenBeforeMs: number | null
}

export type Refused = { ok: false; code: MeshErrorCode; message: string }
export type Admitted<T> = { ok: true; request: T }

/** Decides whether a call is one of the control plane, for this device, now and for the first time. Pure and total. */
export function admitCall(body: Uint8Array, at: Doorstep): Admitted<CapabilityRequest> | Refused {
  const signed = admit(body, capabilityRequest, at)
  if (!signed.ok) return signed
  const deadlineMs = Date.parse(signed.request.deadline)
  if (deadlineMs <= at.nowMs) return refused('bad_deadline', 'The deadline has passed.')
  if (deadlineMs > at.nowMs + longestSeconds * 1000)
    return refused('bad_deadline', `The deadline is more than ${longestSeconds} seconds away.`)
  return timely(signed, at)
}

/** The same for the wish to stop a running operation. */
export function admitCancel(body: Uint8Array, at: Doorstep): Admitted<CancelRequest> | Refused {
  const signed = admit(body, cancelRequest, at)
  return signed.ok ? timely(signed, at) : signed
}

/** The same for leave to read: `shown` is the header, `asked` the path with its query. */
export function admitRead(shown: string | undefined, asked: string, at: Doorstep): Admitted<SignedRead> | Refused {
  const [, text] = /^Mesh ([A-Za-z0-9_-]{1,4096})$/.exec(shown ?? '') ?? []
  if (!text) return refused('bad_signature', 'Who reads here shows a signed leave: Authorization: Mesh ….')
  const signed = admit(Buffer.from(text, 'base64url'), signedRead, at)
  if (!signed.ok) return signed
  if (signed.request.read !== asked) return refused('bad_signature', 'The leave is for something else.')
  return timely(signed, at)
}

type Signed = { device: string; nonce: string; issued_at: string; key_id: string; signature: string }

function admit<T extends Signed>(body: Uint8Array, schema: z.ZodType<T>, at: Doorstep): Admitted<T> | Refused {
  if (body.length > bodyBytes) return refused('malformed', `The request is larger than ${bodyBytes} bytes.`)
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return refused('malformed', 'The request is not JSON.')
  }
  const parsed = schema.safeParse(value)
  if (!parsed.success) {
    const first = parsed.error.issues[0]
    return refused('malformed', `${first?.path.join('.') || 'The request'}: ${first?.message}`)
  }
  const request = parsed.data
  const key = keyOf(at.keys, request.key_id, at.nowMs)
  if (!key) return refused('unknown_key', `Key ${request.key_id} may not sign for this device, or not any more.`)
  // Over the text as it came: what a default fills in was not signed.
  if (!isSigned(value as Signed, key)) return refused('bad_signature', 'The signature is not over this request.')
  if (request.device !== at.device)
    return refused('wrong_device', `The request is for ${request.device}, and this is ${at.device}.`)
  return { ok: true, request }
}

function timely<T extends Signed>(admitted: Admitted<T>, at: Doorstep): Admitted<T> | Refused {
  const { issued_at, nonce } = admitted.request
  const issuedMs = Date.parse(issued_at)
  if (Math.abs(issuedMs - at.nowMs) > clockSkewSeconds * 1000) {
    const now = new Date(at.nowMs).toISOString()
    return refused(
      'clock_skew',
      `It was issued at ${issued_at}, and here it is ${now}: more than ${clockSkewSeconds} s.`,
    )
  }
  if (at.forgottenBeforeMs !== null && issuedMs < at.forgottenBeforeMs)
    return refused(
      'replayed_nonce',
      'It is older than what this agent remembers, so nobody can tell whether it is new.',
    )
  if (at.hasSeen(nonce)) return refused('replayed_nonce', 'This nonce was used before.')
  return admitted
}

/** For the answer to something that is no request: its id if it has one. */
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

function refused(code: MeshErrorCode, message: string): Refused {
  return { ok: false, code, message: message.slice(0, 2_000) }
}
