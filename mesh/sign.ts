import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  randomBytes,
  sign as signBytes,
  verify as verifyBytes,
} from 'node:crypto'
import { readFileSync } from 'node:fs'
import canonicalize from 'canonicalize'
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

/** A private key, and the id under which devices know its public half. */
export type SigningKey = { id: string; key: KeyObject }

/** Returns the bytes that are signed: canonical JSON (RFC 8785) of all fields but the signature. */
function signedBytes(value: Record<string, unknown>): Buffer {
  const { signature: _, ...rest } = value
  return Buffer.from(canonicalize(rest) as string, 'utf8')
}

/** Signs a value with ed25519; the result also has `key_id` and `signature`. */
export function signed<T extends Record<string, unknown>>(
  value: T,
  { id, key }: SigningKey,
): T & { key_id: string; signature: string } {
  const whole = { ...value, key_id: id }
  return { ...whole, signature: signBytes(null, signedBytes(whole), key).toString('base64') }
}

/** Whether this key signed the value. False for a malformed signature too; never throws. */
export function isSigned(value: Record<string, unknown> & { signature: string }, publicKey: KeyObject): boolean {
  try {
    return verifyBytes(null, signedBytes(value), publicKey, Buffer.from(value.signature, 'base64'))
  } catch {
    return false
  }
}

/**
 * Reads an ed25519 public key in the format of manifests: SPKI, DER, base64. Null for anything
 * else.
 */
export function readPublicKey(text: string): KeyObject | null {
  try {
    const key = createPublicKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'spki' })
    return key.asymmetricKeyType === 'ed25519' ? key : null
  } catch {
    return null
  }
}

export function writePublicKey(key: KeyObject): string {
  return key.export({ format: 'der', type: 'spki' }).toString('base64')
}

/** Returns the SHA-256 of the arguments' canonical JSON, which binds a grant to its arguments. */
export function argsDigest(args: Record<string, unknown>): string {
  return createHash('sha256')
    .update(canonicalize(args) as string)
    .digest('hex')
}

/** The private keys of the mesh. Only the API process has them. */
export type MeshKeys = {
  /** The key that signs manifests. Its public half is pinned on each device. */
  root: SigningKey
  /** Signs requests and grants. */
  signing: SigningKey
  /** Signs requests after the next rotation of keys. Manifests already contain this key. */
  next: SigningKey | null
}

class MeshKeyError extends Error {
  override name = 'MeshKeyError' as const
}

/**
 * Reads an ed25519 key (PKCS8, PEM). Throws MeshKeyError, which contains the file's name but no
 * part of the key.
 */
export function readSigningKey(file: string): SigningKey {
  try {
    const key = createPrivateKey(readFileSync(file))
    if (key.asymmetricKeyType !== 'ed25519') throw new Error('another kind of key')
    return { id: keyIdOf(publicHalf({ id: '', key })), key }
  } catch {
    throw new MeshKeyError(`${file} cannot be read or has no ed25519 key (PKCS8, PEM)`)
  }
}

/** Returns the key's public half in the format of manifests. */
export function publicHalf({ key }: SigningKey): string {
  return writePublicKey(createPublicKey(key))
}

/**
 * Returns the id of a key, made from its public half, so that two processes with the same key use
 * the same id.
 */
function keyIdOf(publicKey: string): string {
  return `k-${createHash('sha256').update(publicKey).digest('hex').slice(0, 16)}`
}

const iso = (ms: number) => new Date(ms).toISOString()

type ManifestSubject = {
  device: string
  mode: MeshMode
  terms: DeviceTerms
  keys: { id: string; publicKey: string; notAfter: string | null }[]
  days: number
}

/** Issues a device's manifest: the calls that it accepts from now on, signed by the root key. */
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
        // Leaves the field `root_reads` out if it is empty, because agents older than the field
        // reject a manifest that has it.
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

type RequestSubject = {
  requestId: string
  device: string
  capability: Capability
  args: Record<string, unknown>
  idempotencyKey: string
  deadlineMs: number
  stream?: boolean
  rehearse?: boolean
  names?: readonly string[]
  grant: Grant | null
}

/**
 * Signs one request. A repeated request has another nonce and time, because a device accepts each
 * request once.
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
        ...(subject.names?.length && { names: subject.names }),
        grant: subject.grant,
      },
      signing,
    ),
  )
}

type GrantSubject = {
  id: string
  device: string
  requestId: string
  capability: Capability
  args: Record<string, unknown>
  /** The id of the approval or standing grant that a person gave. */
  authority: string
  /**
   * The time when the call was recorded. A grant that is issued again for the call is identical,
   * and ends at the same time.
   */
  issuedAt: string
}

/**
 * Issues a grant, which permits one action once. Equal subjects give equal bytes, so that a second
 * issue permits nothing more.
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

/** Signs a request to stop a running operation. */
export function issueCancel(requestId: string, device: string, signing: SigningKey): CancelRequest {
  return cancelRequest.parse(
    signed(
      { request_id: requestId, nonce: randomBytes(16).toString('base64'), issued_at: iso(Date.now()), device },
      signing,
    ),
  )
}

/** Signs permission to read one path with its query from a device, once. */
export function issueRead(read: string, device: string, signing: SigningKey): SignedRead {
  return signedRead.parse(
    signed({ read, nonce: randomBytes(16).toString('base64'), issued_at: iso(Date.now()), device }, signing),
  )
}
