/** A JSON object as it came, before anybody believed a word of it. */
export type Fields = Record<string, unknown>

export type Body = { ok: true; value: unknown } | { ok: false; reason: string }

const decoder = new TextDecoder('utf-8')

/** Bytes as JSON. Never throws; bytes that are not UTF-8 become U+FFFD, since a half-readable page beats a lost one. */
export function readBody(bytes: Uint8Array): Body {
  if (bytes.byteLength === 0) return { ok: false, reason: 'the body is empty' }
  try {
    return { ok: true, value: JSON.parse(decoder.decode(bytes)) }
  } catch {
    return { ok: false, reason: 'the body is not JSON' }
  }
}

export function isFields(value: unknown): value is Fields {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

/** What a value is, in the words of a refusal: `a string`, `an array`, `missing`. */
export function nameOfShape(value: unknown): string {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
