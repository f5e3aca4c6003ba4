import { createCipheriv, createDecipheriv, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'

/**
 * Encrypts messages between control plane processes. A message is unreadable in its row, and
 * invalid if it was altered, forged or moved to another exchange. Only these processes have the
 * root key.
 */
export type Seal = {
  close(plain: Uint8Array, about: string): Buffer
  /** Returns null for bytes that this key did not seal for this exchange. */
  open(sealed: Uint8Array, about: string): Buffer | null
}

const nonceBytes = 12
const tagBytes = 16

export function sealUnder(root: KeyObject): Seal {
  const secret = root.export({ format: 'der', type: 'pkcs8' })
  const key = Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), 'nightshift-mesh-relay', 32))
  return {
    close(plain, about) {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(about, 'utf8'))
      return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
    },
    open(sealed, about) {
      const bytes = Buffer.from(sealed)
      if (bytes.length < nonceBytes + tagBytes) return null
      const nonce = bytes.subarray(0, nonceBytes)
      const decipher = createDecipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(about, 'utf8'))
      decipher.setAuthTag(bytes.subarray(-tagBytes))
      try {
        return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()])
      } catch {
        return null
      }
    },
  }
}
