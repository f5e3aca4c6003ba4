/**
 * Finds a credential in the response of a server that repeats the credential: in plain text,
 * escaped for JSON, an address, HTML or a header, in base64 within a longer text, or in
 * hexadecimal.
 */

const credentialMark = '[credential]'

/**
 * Minimum length of a credential in characters. A shorter credential resembles ordinary words and
 * is refused.
 */
export const minCredentialCharacters = 4
/**
 * Length from which a credential is hidden even within a word. A shorter credential is hidden only
 * as a whole word, because its letters may occur in a longer word by chance.
 */
const minHiddenWithin = 8
/** Minimum length of the base64 text to search for. A shorter text matches by chance. */
const minBase64 = 8

export type CredentialHider = {
  text(text: string): string
  /** Hides credentials in every string and key of a decoded response. */
  value<T>(value: T): T
}

/** Returns a hider of these credentials, and of the password in `user:password`. */
export function hideCredentials(secrets: readonly string[]): CredentialHider {
  const all = secrets.flatMap((secret) => [secret, ...secret.split('\n'), ...passwordOf(secret)])
  const parts = [...new Set(all.map((each) => each.trim()))]
    .filter((each) => each.length >= minCredentialCharacters)
    .sort((a, b) => b.length - a.length)
  if (parts.length === 0) return { text: (text) => text, value: (value) => value }
  const known = new RegExp(parts.map(formsOf).join('|'), 'g')
  const numbers = new Set(parts.filter((each) => /^[1-9]\d{7,14}$/.test(each)).map(Number))
  const text = (given: string) => given.replace(known, credentialMark)
  const value = (given: unknown): unknown => {
    if (typeof given === 'string') return text(given)
    if (typeof given === 'number') return numbers.has(given) ? credentialMark : given
    if (Array.isArray(given)) return given.map(value)
    if (given === null || typeof given !== 'object') return given
    return Object.fromEntries(Object.entries(given).map(([key, each]) => [text(key), value(each)]))
  }
  return { text, value: <T>(given: T) => value(given) as T }
}

/**
 * Returns a hider of the key of a model server. A short key is not hidden, because it is a
 * placeholder (`EMPTY`, `ollama`) that a model may write.
 */
export const hideKey = (key: string): CredentialHider => hideCredentials(key.length >= minHiddenWithin ? [key] : [])

/** Whether the credential is `user:password`, which is sent as Basic authentication. */
export const isBasicPair = (secret: string): boolean => /^[^\s:]+:\S+$/.test(secret) && !secret.startsWith('eyJ')

const passwordOf = (secret: string): string[] => (isBasicPair(secret) ? [secret.slice(secret.indexOf(':') + 1)] : [])

/** Builds a pattern that matches all forms of a credential. */
function formsOf(secret: string): string {
  const bytes = Buffer.from(secret)
  const plain = toPieces(secret).map(writtenAs).join('')
  if (secret.length < minHiddenWithin) {
    const whole = toBase64Pattern(bytes.toString('base64').replace(/=+$/, ''))
    return `(?<![A-Za-z0-9])(?:${plain}|${whole}=*)(?![A-Za-z0-9])`
  }
  const cores = [0, 1, 2].map((offset) => base64Core(bytes, offset)).filter((core) => core.length >= minBase64)
  // Matches the characters at the edges too, because they also contain bits of the credential.
  const encoded = `[A-Za-z0-9+/_-]{0,3}(?:${cores.map(toBase64Pattern).join('|')})[A-Za-z0-9+/_-]{0,3}(?:=|%3[dD]){0,2}`
  const hex = [...bytes].map(toHexPattern).join('[ :-]?')
  return `${plain}|${encoded}|${hex}`
}

/**
 * Splits a text into characters. Consecutive backslashes are one piece, because JSON doubles
 * backslashes.
 */
const toPieces = (text: string): string[] => text.match(/\\+|[\s\S]/gu) ?? []

const named: Record<string, string> = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": 'apos', '\u00a0': 'nbsp' }
const shortEscapes: Record<string, string> = { '\n': 'n', '\t': 't', '\r': 'r' }

/** Builds a pattern for one character as JSON (also nested), addresses and HTML write it. */
function writtenAs(piece: string): string {
  if (piece.startsWith('\\')) {
    const each = `(?:%(?:25){0,3}5[cC]|\\\\{1,8}u005[cC]|&(?:amp;){0,2}#(?:0{0,4}92|[xX]0{0,4}5[cC]);)`
    const runs = [8, 4, 2, 1].map((times) => `\\\\{${piece.length * times}}`)
    return `(?:${each}{${piece.length}}|${runs.join('|')})`
  }
  const code = piece.codePointAt(0) as number
  const isLetter = /[A-Za-z0-9]/.test(piece)
  const percent = [...Buffer.from(piece)].map((byte) => `%(?:25){0,3}${toHexPattern(byte)}`).join('')
  const units = Array.from({ length: piece.length }, (_, at) => piece.charCodeAt(at))
  const escaped = units.map((unit) => `\\\\{1,8}u${hexDigits(unit.toString(16).padStart(4, '0'))}`).join('')
  const hex = hexDigits(code.toString(16))
  const names = [`#0{0,4}${code}`, `#[xX]0{0,4}${hex}`, ...(named[piece] ? [named[piece]] : [])]
  const short = shortEscapes[piece]
  return `(?:${[
    `${isLetter ? '' : '\\\\{0,7}'}${literal(piece)}`,
    percent,
    escaped,
    `\\\\{1,8}(?:x${hex.length > 1 ? hex : `0${hex}`}|u\\{0{0,4}${hex}\\})`,
    `&(?:amp;){0,2}(?:${names.join('|')});`,
    ...(piece === ' ' ? ['\\+'] : []),
    ...(short ? [`\\\\{1,8}${short}`] : []),
  ].join('|')})`
}

/**
 * Returns the part of a credential's base64 that does not depend on neighbouring bytes, if the
 * credential begins at this offset within a group of three bytes.
 */
function base64Core(bytes: Buffer, offset: number): string {
  const shifted = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
  return shifted.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6))
}

const base64Signs: Record<string, string> = {
  '+': '(?:[+-]|%2[bB]|\\\\{1,4}u002[bB])',
  '/': '(?:\\\\{0,4}/|_|%2[fF]|\\\\{1,4}u002[fF])',
}

const toBase64Pattern = (text: string): string => text.replace(/[+/]/g, (sign) => base64Signs[sign] as string)

const toHexPattern = (byte: number): string => hexDigits(byte.toString(16).padStart(2, '0'))

const hexDigits = (digits: string): string => digits.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`)

const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
