import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign as signBytes,
  verify as verifyBytes,
} from 'node:crypto'
import { readFileSync } from 'node:fs'
import canonicalize from 'canonicalize'

/** A private key and the name under which devices know its public half. */
export type SigningKey = { id: string; key: KeyObject }

/** What a signature is over: canonical JSON (RFC 8785) of everything but the signature itself. */
export function signedBytes(value: Record<string, unknown>): Buffer {
  const { signature: _, ...rest } = value
  return Buffer.from(canonicalize(rest) as string, 'utf8')
}

/** Signs with ed25519; the answer carries `key_id` and `signature`. */
export function signed<T extends Record<string, unknown>>(
  value: T,
  { id, key }: SigningKey,
): T & { key_id: string; signature: string } {
  const whole = { ...value, key_id: id }
  return { ...whole, signature: signBytes(null, signedBytes(whole), key).toString('base64') }
}

/** Was this signed by that key? False for whatever is not right; never throws. */
export function isSigned(value: Record<string, unknown> & { signature: string }, publicKey: KeyObject): boolean {
  try {
    return verifyBytes(null, signedBytes(value), publicKey, Buffer.from(value.signature, 'base64'))
  } catch {
    return false
  }
}

/** Reads an ed25519 public key as manifests hold it: SPKI, DER, base64. Null for anything else. */
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

/** SHA-256 of canonical JSON, as grants bind arguments by it. */
export function argsDigest(args: Record<string, unknown>): string {
  return createHash('sha256')
    .update(canonicalize(args) as string)
    .digest('hex')
}

/** The private keys of the mesh. They are in the API process and nowhere else. */
export type MeshKeys = {
  /** Signs manifests; its public half is pinned on each device. */
  root: SigningKey
  /** Signs requests and grants. */
  signing: SigningKey
  /** Signs from the next rotation on; manifests name it already. */
  next: SigningKey | null
}

export class MeshKeyError extends Error {
  override name = 'MeshKeyError' as const
}

/**
 * Reads an ed25519 key (PKCS8, PEM). Throws MeshKeyError, which names the file and nothing of what
 * is in it.
 */
export function readSigningKey(file: string): SigningKey {
  try {
    const key = createPrivateKey(readFileSync(file))
    if (key.asymmetricKeyType !== 'ed25519') throw new Error('another kind of key')
    return { id: keyIdOf(publicHalf({ id: '', key })), key }
  } catch {
    throw new MeshKeyError(`${file} cannot be read or holds no ed25519 key (PKCS8, PEM)`)
  }
}

/** The public half as manifests hold it. */
export function publicHalf({ key }: SigningKey): string {
  return writePublicKey(createPublicKey(key))
}

/** A key's name is of its public half: two processes with one key agree on it. */
function keyIdOf(publicKey: string): string {
  return `k-${createHash('sha256').update(publicKey).digest('hex').slice(0, 16)}`
}
