import { sha256 } from '../domain/digest.ts'

/** Terminal sequences: CSI, then strings (OSC, DCS, SOS, PM, APC) up to their end or the next escape, then short ones. */
const sequences =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters this file is about
  /(?:\u001b\[|\u009b)[0-?]{0,64}[ -/]{0,16}[@-~]?|(?:\u001b[\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\u0007\u001b\u009c\u0018\u001a\n]{0,4096}(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]{0,4}[0-~]?/g

/** Controls but tab and newline; line separators; what Unicode says is not shown (bidi, zero-width, tags, fillers). */
const invisible =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: as above
  /[\u0001-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u2800\ufff9-\ufffb\u{13430}-\u{1343f}\p{Default_Ignorable_Code_Point}]/gu

/** One cheap look: plain printable text, which is nearly all, needs nothing. */
const odd = /[^\t\n\u0020-\u007e\u00a0-\u00ac\u00ae-\u034e]/

/**
 * Text that shows exactly what it holds, on a page, in a terminal and to a model: escape sequences, controls, bidi marks
 * and invisible characters are gone, U+0000 and lone surrogates are U+FFFD. Tabs stay; newlines too, unless one line is
 * asked for. Combining marks and every script stay as they are. (Unicode 17, UTS 55 and UTR 36.)
 */
export function stripText(text: string, options: { keepNewlines?: boolean } = {}): string {
  const plain = odd.test(text)
    ? text
        .replaceAll('\u0000', '\ufffd')
        .replaceAll('\r\n', '\n')
        .replace(sequences, '')
        .toWellFormed()
        .replace(invisible, '')
    : text
  return options.keepNewlines === false ? plain.replace(/[\n\t]+/g, ' ') : plain
}

/** The same for all texts in JSON data, keys too. */
export function stripJson<T>(value: T): T {
  return strip(value, 0) as T
}

function strip(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return stripText(value)
  if (value === null || typeof value !== 'object') return value
  if (depth > 400) return '[nested too deep]'
  if (Array.isArray(value)) return value.map((entry) => strip(entry, depth + 1))
  const clean: [string, unknown][] = []
  for (const [key, entry] of Object.entries(value)) {
    if (entry !== undefined) clean.push([stripText(key), strip(entry, depth + 1)])
  }
  // `fromEntries` defines, so that `__proto__` is a key like any other.
  return Object.fromEntries(clean)
}

export type TruncatedText = { head: string; tail: string; bytes: number; digest: string }

/**
 * Head and tail of a text too long to keep: two thirds and one third of the limit, cut between characters, with the size
 * and SHA-256 of the whole. Null where the text fits.
 */
export function cap(text: string, limitBytes: number): TruncatedText | null {
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length <= limitBytes) return null
  const inside = (at: number) => (bytes[at]! & 0xc0) === 0x80
  let headEnd = Math.floor((limitBytes * 2) / 3)
  while (headEnd > 0 && inside(headEnd)) headEnd--
  let tailStart = bytes.length - (limitBytes - Math.floor((limitBytes * 2) / 3))
  while (tailStart < bytes.length && inside(tailStart)) tailStart++
  return {
    head: bytes.toString('utf8', 0, headEnd),
    tail: bytes.toString('utf8', tailStart),
    bytes: bytes.length,
    digest: sha256(bytes),
  }
}
