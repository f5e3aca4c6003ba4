import type { Context } from './hono.ts'
import { Problem } from './problem.ts'

/**
 * Refuses a body whose header says another type, another character set than UTF-8, or a compression: what would be read then
 * is not what was sent (RFC 9110, 15.5.16).
 */
export function requireMediaType(c: Context, taken: readonly string[]): void {
  const header = c.req.header('content-type')
  const [type, ...parameters] = (header ?? '').split(';').map((part) => part.trim())
  const remedy = `Send Content-Type: ${taken.join(' or ')}.`
  if (!type) throw unsupported(`The body has no Content-Type. ${remedy}`)
  if (!taken.includes(type.toLowerCase())) throw unsupported(`Content-Type ${shown(type)} is not taken here. ${remedy}`)
  for (const parameter of parameters) {
    const [, charset] = /^charset\s*=\s*"?([^"]*)"?$/i.exec(parameter) ?? []
    if (charset !== undefined && !/^utf-?8$/i.test(charset.trim())) {
      throw unsupported(`The character set ${shown(charset)} is not taken here. Send UTF-8.`)
    }
  }
  const coding = c.req.header('content-encoding')
  if (coding !== undefined && !/^\s*(identity)?\s*$/i.test(coding)) {
    const detail = `Content-Encoding ${shown(coding)} is not taken here. Send the body uncompressed.`
    throw new Problem(415, 'UNSUPPORTED_CONTENT_ENCODING', detail, { headers: { 'accept-encoding': 'identity' } })
  }
}

/** As much of a header as tells what it was. */
function shown(value: string): string {
  return value.replace(/[^\x21-\x7e ]/g, '?').slice(0, 80)
}

function unsupported(detail: string): Problem {
  return new Problem(415, 'UNSUPPORTED_MEDIA_TYPE', detail)
}
