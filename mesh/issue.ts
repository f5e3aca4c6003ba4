import { randomBytes } from 'node:crypto'
import type { DeviceTerms } from '../domain/device.ts'
import {
  type CancelRequest,
  type Capability,
  type CapabilityRequest,
  cancelRequest,
  capabilityRequest,
  type Grant,
  grant,
  grantSeconds,
  type Manifest,
  type MeshMode,
  manifest,
  type SignedRead,
  signedRead,
} from '../domain/mesh.ts'
import { argsDigest, type SigningKey, signed } from './sign.ts'

const iso = (ms: number) => new Date(ms).toISOString()

export type ManifestSubject = {
  device: string
  mode: MeshMode
  terms: DeviceTerms
  keys: { id: string; publicKey: string; notAfter: string | null }[]
  days: number
}

/** What a device may be asked from now on, signed by the root key. */
export function issueManifest({ device, mode, terms, keys, days }: ManifestSubject, root: SigningKey): Manifest {
  const now = Date.now()
  const { root_reads, ...others } = terms
  return manifest.parse(
    signed(
      {
        id: `mft_${randomBytes(12).toString('hex')}`,
        device,
        mode,
        ...others,
        // Left out when empty: agents older than this field reject a manifest that has it.
        ...(root_reads?.length && { root_reads }),
        keys: keys.map(({ id, publicKey, notAfter }) => ({
          id,
          public_key: publicKey,
          not_after: notAfter === null ? null : iso(Date.parse(notAfter)),
        })),
        issued_at: iso(now),
        expires_at: iso(now + days * 86_400_000),
      },
      root,
    ),
  )
}

export type RequestSubject = {
  requestId: string
  device: string
  capability: Capability
  args: Record<string, unknown>
  idempotencyKey: string
  deadlineMs: number
  stream?: boolean
  rehearse?: boolean
  grant: Grant | null
}

/**
 * One request, signed. Sent again it has another nonce and another moment: a device takes each
 * once.
 */
export function issueRequest(subject: RequestSubject, signing: SigningKey): CapabilityRequest {
  const now = Date.now()
  return capabilityRequest.parse(
    signed(
      {
        request_id: subject.requestId,
        nonce: randomBytes(16).toString('base64'),
        issued_at: iso(now),
        deadline: iso(now + subject.deadlineMs),
        device: subject.device,
        capability: subject.capability,
        args: subject.args,
        idempotency_key: subject.idempotencyKey,
        stream: subject.stream ?? false,
        rehearse: subject.rehearse ?? false,
        grant: subject.grant,
      },
      signing,
    ),
  )
}

export type GrantSubject = {
  id: string
  device: string
  requestId: string
  capability: Capability
  args: Record<string, unknown>
  /** The approval, or the standing grant, that a person gave. */
  authority: string
  /** When the call was written down: minted again, it is the same grant with the same end. */
  issuedAt: string
}

/**
 * Leave to do one thing once. Equal subjects give equal bytes, so that asking again mints nothing
 * new.
 */
export function issueGrant(subject: GrantSubject, signing: SigningKey): Grant {
  const issued = Date.parse(subject.issuedAt)
  return grant.parse(
    signed(
      {
        id: subject.id,
        device: subject.device,
        request_id: subject.requestId,
        capability: subject.capability,
        args_digest: argsDigest(subject.args),
        authority: subject.authority,
        issued_at: iso(issued),
        expires_at: iso(issued + grantSeconds * 1000),
      },
      signing,
    ),
  )
}

/** The wish to stop a running operation. */
export function issueCancel(requestId: string, device: string, signing: SigningKey): CancelRequest {
  return cancelRequest.parse(
    signed(
      { request_id: requestId, nonce: randomBytes(16).toString('base64'), issued_at: iso(Date.now()), device },
      signing,
    ),
  )
}

/** Leave to read one path with its query from a device, once. */
export function issueRead(read: string, device: string, signing: SigningKey): SignedRead {
  return signedRead.parse(
    signed({ read, nonce: randomBytes(16).toString('base64'), issued_at: iso(Date.now()), device }, signing),
  )
}
