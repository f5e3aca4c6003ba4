import { cleanJson } from '../domain/digest.ts'

type ReadJson = { ok: true; value: unknown } | { ok: false; problem: string }

const maxDepth = 20
const notJson = 'it is not valid JSON'

/**
 * Reads a model's JSON. Returns plain data, or what is wrong with the text. Stricter than
 * JSON.parse where parsers differ: refuses repeated keys, the key `__proto__`, and nesting over 20.
 * U+0000 and lone surrogates become U+FFFD. Linear; never throws.
 */
function readJson(text: string, maxChars: number): ReadJson {
  if (text.length > maxChars) return { ok: false, problem: `it is longer than ${maxChars} characters` }
  if (isDeeperThan(text, maxDepth)) return { ok: false, problem: `it is nested deeper than ${maxDepth}` }
  try {
    const value: unknown = JSON.parse(text)
    const key = ambiguousKey(text)
    return key === null ? { ok: true, value: cleanJson(value) } : { ok: false, problem: key }
  } catch {
    return { ok: false, problem: notJson }
  }
}

/**
 * Reads JSON, or a text that is clearly meant as JSON: single or typographic quotes, `None`, a
 * trailing comma, comments, a line break in a text. `isLoose`: the text was corrected. Never
 * completes a text that was cut off.
 */
export function readLooseJson(text: string, maxChars: number): ReadJson & { isLoose?: true } {
  const read = readJson(text, maxChars)
  if (read.ok || read.problem !== notJson) return read
  const strict = toStrictJson(text)
  const again = strict === null ? read : readJson(strict, maxChars)
  return again.ok ? { ...again, isLoose: true } : again.problem === notJson ? read : again
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

/**
 * Signs that open a text, with the signs that close it: JSON's own, and variants that models write.
 */
const closing: Readonly<Record<string, string>> = { '"': '"', "'": "'", '“': '”“', '”': '”', '„': '”“', '‘': '’' }

/** Returns the index behind the string that opens at `start`, or the text's length. */
function endOfString(text: string, start: number): number {
  const close = closing[text[start]!]!
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at += 1
    else if (close.includes(text[at]!)) return at + 1
  }
  return text.length
}

/** Tokens of loose JSON, each with the function that returns its strict form. */
const tokens: [RegExp, (found: string) => string][] = [
  [/\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\//y, () => ' '],
  // Drops a trailing comma.
  [/,(?=\s*[}\]])/y, () => ''],
  [/[{}[\]:,]/y, (found) => found],
  [/(?:True|False|None)\b/y, (found) => ({ T: 'true', F: 'false', N: 'null' })[found[0] as 'T' | 'F' | 'N']],
  [/-?[0-9][0-9.eE+-]*|(?:true|false|null)\b/y, (found) => found],
]

/** Writes the text as strict JSON; null if that is impossible. Linear in the text. */
function toStrictJson(text: string): string | null {
  const written: string[] = []
  for (let at = 0; at < text.length; ) {
    if (text[at]! in closing) {
      const end = endOfString(text, at)
      const isClosed = end - at > 1 && closing[text[at]!]!.includes(text[end - 1]!)
      if (!isClosed) return null
      written.push(strictText(text.slice(at + 1, end - 1)))
      at = end
      continue
    }
    const token = tokens.find(([pattern]) => {
      pattern.lastIndex = at
      return pattern.test(text)
    })
    if (!token) return null
    const [pattern, write] = token
    written.push(write(text.slice(at, pattern.lastIndex)))
    at = pattern.lastIndex
  }
  return written.join('')
}

/** Keeps JSON's escapes, escapes bare quotes and line breaks, and drops needless escapes. */
function strictText(inner: string): string {
  const plain = inner.replace(
    /\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])|\\([\s\S])|"|[\n\r\t]/g,
    (found, escaped: string | undefined) => {
      if (escaped !== undefined) return escaped === '"' ? '\\"' : escaped
      return { '"': '\\"', '\n': '\\n', '\r': '\\r', '\t': '\\t' }[found] ?? found
    },
  )
  return `"${plain}"`
}

/** Shortens a text and replaces characters that a store may refuse: U+0000 and lone surrogates. */
export function boundText(text: string, maxChars: number): string {
  const whole = text.length <= maxChars ? text : `${text.slice(0, maxChars - 1)}…`
  return whole.replaceAll('\u0000', '\uFFFD').toWellFormed()
}

function isDeeperThan(text: string, limit: number): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (char === '"') at = endOfString(text, at) - 1
    else if (char === '{' || char === '[') {
      depth += 1
      if (depth > limit) return true
    } else if (char === '}' || char === ']') depth -= 1
  }
  return false
}

/** Returns the fault of a key in a text that JSON.parse accepted, or null. */
function ambiguousKey(text: string): string | null {
  // Keeps one set of keys per open object, and null for an open array.
  const open: (Set<string> | null)[] = []
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (char === '{') open.push(new Set())
    else if (char === '[') open.push(null)
    else if (char === '}' || char === ']') open.pop()
    else if (char === '"') {
      const end = endOfString(text, at)
      const keys = open.at(-1)
      let next = end
      while (next < text.length && ' \t\r\n'.includes(text[next]!)) next += 1
      if (keys && text[next] === ':') {
        const key = JSON.parse(text.slice(at, end)) as string
        if (key === '__proto__') return 'the key "__proto__" is not allowed'
        if (keys.has(key)) return 'a key is given twice'
        keys.add(key)
      }
      at = end - 1
    }
  }
  return null
}

/** A JSON object in a text. `problem`: why it cannot be read; `value` is then null. */
export type JsonBlock = {
  value: Record<string, unknown> | null
  problem: string | null
  start: number
  end: number
  isLoose?: true
}

/** Most JSON objects that are searched for in a text, which also limits the work. */
const maxBlocks = 16

/**
 * Finds the outermost JSON objects of a text, in order. A broken object is a block with a problem,
 * and nothing inside it is read.
 */
export function findBlocks(text: string, maxChars: number): JsonBlock[] {
  const blocks: JsonBlock[] = []
  let at = 0
  while (blocks.length < maxBlocks) {
    const start = nextOpening(text, at)
    if (start === -1) return blocks
    const end = endOfValue(text, start, '{}')
    if (end === -1) {
      blocks.push({ value: null, problem: 'it never ends', start, end: text.length })
      return blocks
    }
    const read = readLooseJson(text.slice(start, end), maxChars)
    const loose = read.isLoose && { isLoose: read.isLoose }
    if (read.ok && isObject(read.value)) blocks.push({ value: read.value, problem: null, start, end, ...loose })
    else blocks.push({ value: null, problem: read.ok ? 'it is not an object' : read.problem, start, end })
    at = end
  }
  return blocks
}

/** Finds the next `{` that a quote follows, because prose has braces too. */
function nextOpening(text: string, from: number): number {
  for (let at = text.indexOf('{', from); at !== -1; at = text.indexOf('{', at + 1)) {
    let next = at + 1
    while (next < text.length && ' \t\r\n'.includes(text[next]!)) next += 1
    if (text[next] !== undefined && text[next]! in closing) return at
    // Skips the blanks that were already read.
    at = next - 1
  }
  return -1
}

/**
 * Returns the index after the object or list at `start`, or -1 if none begins or ends. `brackets`:
 * with `{}`, brackets of lists are ignored, so that a broken object is skipped completely.
 */
export function endOfValue(text: string, start: number, brackets: '{}' | '{}[]' = '{}[]'): number {
  let depth = 0
  for (let at = start; at < text.length; at++) {
    const char = text[at]!
    const side = brackets.indexOf(char)
    if (depth > 0 && char in closing) at = endOfString(text, at) - 1
    else if (side >= 0) depth += side % 2 === 0 ? 1 : -1
    if (depth <= 0) return side >= 0 && depth === 0 ? at + 1 : -1
  }
  return -1
}
