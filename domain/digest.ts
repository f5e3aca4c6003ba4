import { createHash, randomBytes } from 'node:crypto'
import canonicalize from 'canonicalize'

/** Returns the SHA-256 of text or bytes, in lower-case hex. */
export function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}

/**
 * Returns the SHA-256 of the canonical form (RFC 8785) of plain JSON. Equal data has equal digests,
 * whatever the order of keys.
 */
export function digestOf(value: unknown): string {
  return sha256(canonicalize(value) ?? 'null')
}

/**
 * Replaces characters that PostgreSQL cannot store: U+0000 and lone surrogates become U+FFFD, in
 * keys too. Leaves out what JSON cannot express (undefined, functions), as JSON.stringify does.
 */
export function cleanJson<T>(value: T): T {
  if (typeof value === 'string') return value.replaceAll('\u0000', '\uFFFD').toWellFormed() as T
  if (Array.isArray(value)) return value.map(cleanJson) as T
  if (value !== null && typeof value === 'object') {
    const clean: Record<string, unknown> = {}
    for (const [key, entry] of Object.entries(value)) {
      if (entry === undefined) continue
      Object.defineProperty(clean, cleanJson(key), {
        value: cleanJson(entry),
        enumerable: true,
        configurable: true,
        writable: true,
      })
    }
    return clean as T
  }
  return value
}

/**
 * Computes the digest of an action. An approval is bound to this digest, a denial forbids it, and
 * the core API requires it. The digest covers the tool and `identity`, the fields that make two
 * calls one action, without absent fields and `reason`.
 */
export function actionDigest(tool: string, identity: Record<string, unknown>): string {
  const kept = Object.entries(identity).filter(
    ([key, value]) => key !== 'reason' && value !== null && value !== undefined,
  )
  return digestOf({ tool, identity: cleanJson(Object.fromEntries(kept)) })
}

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/**
 * Creates a sortable id such as `inc_01k…`: 48 bits of milliseconds and 80 random bits in
 * Crockford's base 32 (a ULID in lower case). Ids sort by creation time, to the millisecond, and
 * have no other meaning.
 */
export function newId(prefix: string, nowMs = Date.now()): string {
  let time = ''
  for (let rest = nowMs, i = 0; i < 10; i++, rest = Math.floor(rest / 32)) time = alphabet[rest % 32] + time
  let chance = ''
  for (const byte of randomBytes(16)) chance += alphabet[byte % 32]
  return `${prefix}_${time}${chance}`
}
