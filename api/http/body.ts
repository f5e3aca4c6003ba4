import { isUtf8 } from 'node:buffer'
import { z } from '@hono/zod-openapi'
import { findUtf8Flaw } from '../../placement/document.ts'
import type { Context } from '../deps.ts'
import { Problem } from './problem.ts'

/** Maximum depth of nesting: more than any operation accepts, and far below a stack overflow. */
const maxJsonDepth = 64

/**
 * Reads a request's body as JSON that PostgreSQL can store: UTF-8, without NUL and unpaired
 * surrogates in texts and keys. Returns undefined for a request without a body.
 */
export async function jsonBody(c: Context): Promise<unknown> {
  const bytes = new Uint8Array(await c.req.arrayBuffer())
  if (bytes.length === 0 && c.req.header('content-type') === undefined) return undefined
  requireMediaType(c, ['application/json'])
  if (bytes.length === 0) return undefined
  const value = parse(bytes)
  const flaw = flawIn(value)
  if (flaw) {
    const { field, message } = flaw
    const errors = [{ in: 'body', field, message }]
    throw new Problem(422, 'INVALID', `${field ?? 'body'}: ${message}`, { fields: { errors } })
  }
  return value
}

function parse(bytes: Uint8Array): unknown {
  if (!isUtf8(bytes)) {
    const { path, message } = findUtf8Flaw(bytes)
    throw new Problem(400, 'BAD_REQUEST', `The request body is not UTF-8: ${path}, ${message}.`)
  }
  try {
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    throw new Problem(400, 'BAD_REQUEST', 'The request body is not JSON.')
  }
}

type Flaw = { field: string | null; message: string }
type JsonPath = { value: unknown; path: string[] }

/**
 * Finds the first part of a JSON value that no row can store. Null if the whole value can be
 * stored. Uses a loop instead of recursion, because it limits the depth.
 */
function flawIn(root: unknown): Flaw | null {
  const open: JsonPath[] = [{ value: root, path: [] }]
  for (let place = open.pop(); place; place = open.pop()) {
    const { value, path } = place
    const message = flawOf(value, path.length)
    if (message) return { field: fieldOf(path), message }
    if (value === null || typeof value !== 'object') continue
    for (const [key, entry] of Object.entries(value)) {
      const said = textFlaw(key)
      if (said) return { field: fieldOf(path), message: `a key ${said}` }
      open.push({ value: entry, path: [...path, key] })
    }
  }
  return null
}

function flawOf(value: unknown, depth: number): string | null {
  if (depth > maxJsonDepth) return `is nested deeper than ${maxJsonDepth} levels`
  if (typeof value === 'string') return textFlaw(value)
  if (typeof value === 'number' && !Number.isFinite(value)) return 'is a number beyond 1.8e308'
  return null
}

function textFlaw(text: string): string | null {
  if (text.includes('\0')) return 'contains the character NUL (U+0000): leave it out'
  if (!text.isWellFormed()) return 'contains half of a surrogate pair: send whole characters'
  return null
}

function fieldOf(path: readonly string[]): string | null {
  return path.length > 0 ? path.slice(0, 8).join('.').slice(0, 200) : null
}

/**
 * Refuses a body with another content type, with another character set than UTF-8, or with
 * compression (RFC 9110, 15.5.16).
 */
export function requireMediaType(c: Context, taken: readonly string[]): void {
  const header = c.req.header('content-type')
  const [type, ...parameters] = (header ?? '').split(';').map((part) => part.trim())
  const remedy = `Send Content-Type: ${taken.join(' or ')}.`
  if (!type) throw unsupported(`The request has no Content-Type. ${remedy}`)
  if (!taken.includes(type.toLowerCase()))
    throw unsupported(`Content-Type ${quoteHeader(type)} is not accepted here. ${remedy}`)
  for (const parameter of parameters) {
    const [, charset] = /^charset\s*=\s*"?([^"]*)"?$/i.exec(parameter) ?? []
    if (charset !== undefined && !/^utf-?8$/i.test(charset.trim())) {
      throw unsupported(`The character set ${quoteHeader(charset)} is not accepted here. Send UTF-8.`)
    }
  }
  const coding = c.req.header('content-encoding')
  if (coding !== undefined && !/^\s*(identity)?\s*$/i.test(coding)) {
    const detail = `Content-Encoding ${quoteHeader(coding)} is not accepted here. Send the body uncompressed.`
    throw new Problem(415, 'UNSUPPORTED_CONTENT_ENCODING', detail, { headers: { 'accept-encoding': 'identity' } })
  }
}

/** Quotes a part of a header that is enough to recognise it. */
function quoteHeader(value: string): string {
  return value.replace(/[^\x21-\x7e ]/g, '?').slice(0, 80)
}

function unsupported(detail: string): Problem {
  return new Problem(415, 'UNSUPPORTED_MEDIA_TYPE', detail)
}

/**
 * Makes a schema for a text that a person writes, without surrounding blanks and with at least
 * `min` characters. Uses a pattern, because the OpenAPI document of a trimming schema would promise
 * too much.
 */
export function writtenText(min: 1 | 3, max: number) {
  const form = min === 1 ? /\S/u : /\S[\s\S]+\S/u
  const tooShort = min === 1 ? 'has only blanks' : 'has fewer than 3 characters'
  return z.string().max(max).regex(form, tooShort).trim()
}

/** Reads a list of words of an enumeration, such as `open,investigating`. */
export function wordsOf<T extends z.ZodEnum>(word: T) {
  const any = word.options.join('|')
  return z
    .string()
    .regex(new RegExp(`^(?:${any})?(?:,(?:${any})?)*$`), `takes ${word.options.join(', ')}, separated by commas`)
    .transform((text) => text.split(',').filter(Boolean) as z.input<T>[])
    .pipe(z.array(word))
    .optional()
}
