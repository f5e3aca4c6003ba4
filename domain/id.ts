import { randomBytes } from 'node:crypto'

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/**
 * A sortable, opaque identifier: `inc_01k…`, 48 bits of milliseconds and 80 bits of chance in Crockford's base 32 (the
 * ULID layout, lower case). Sorting by id is sorting by creation to the millisecond; nothing else may be read from it.
 */
export function newId(prefix: string, nowMs = Date.now()): string {
  let time = ''
  for (let rest = nowMs, i = 0; i < 10; i++, rest = Math.floor(rest / 32)) time = alphabet[rest % 32] + time
  let chance = ''
  for (const byte of randomBytes(16)) chance += alphabet[byte % 32]
  return `${prefix}_${time}${chance}`
}
