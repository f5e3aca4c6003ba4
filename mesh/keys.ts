import { createHash, createPrivateKey, createPublicKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type SigningKey, writePublicKey } from './sign.ts'

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
