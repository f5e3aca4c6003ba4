import { cleanJson } from '../domain/digest.ts'

type ReadJson = { ok: true; value: unknown } | { ok: false; problem: string }

const maxDepth = 20

/**
 * JSON that a model wrote, as plain data or what is wrong with it. Stricter than JSON.parse where two readers could differ:
 * a key given twice and the key `__proto__` are refused, as is nesting deeper than 20. U+0000 and lone surrogates become
 * U+FFFD. Linear in the text; never throws.
 */
export function readJson(text: string, maxChars: number): ReadJson {
  if (text.length > maxChars) return { ok: false, problem: `it is longer than ${maxChars} characters` }
  if (isDeeperThan(text, maxDepth)) return { ok: false, problem: `it is nested deeper than ${maxDepth}` }
  try {
    const value: unknown = JSON.parse(text)
    const key = ambiguousKey(text)
    return key === null ? { ok: true, value: cleanJson(value) } : { ok: false, problem: key }
  } catch {
    return { ok: false, problem: 'it is not valid JSON' }
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

/** The index behind the string that opens at `start`, or the text's length when it never closes. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at += 1
    else if (text[at] === '"') return at + 1
  }
  return text.length
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

/** Only for text that JSON.parse took: what is wrong with one of its keys, or null. */
function ambiguousKey(text: string): string | null {
  // One set of keys per open object, null for an open array.
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

/** A JSON object found in text. `problem` is what is wrong with it, and then `value` is null. */
export type JsonBlock = { value: Record<string, unknown> | null; problem: string | null; start: number; end: number }

/** More beginnings than this and the text is no answer; it also bounds the work. */
const maxBlocks = 16

/**
 * The JSON objects of a text, outermost only, in order. What looks like one and is broken is a block with a problem, and
 * nothing inside it is looked at, so that no call is ever dug out of a ruin.
 */
export function findBlocks(text: string, maxChars: number): JsonBlock[] {
  const blocks: JsonBlock[] = []
  let at = 0
  while (blocks.length < maxBlocks) {
    const start = nextOpening(text, at)
    if (start === -1) return blocks
    const end = endOfObject(text, start)
    if (end === -1) {
      blocks.push({ value: null, problem: 'it never ends', start, end: text.length })
      return blocks
    }
    const read = readJson(text.slice(start, end), maxChars)
    if (read.ok && isObject(read.value)) blocks.push({ value: read.value, problem: null, start, end })
    else blocks.push({ value: null, problem: read.ok ? 'it is not an object' : read.problem, start, end })
    at = end
  }
  return blocks
}

/** Prose has braces too: only `{` with a quote behind it begins JSON. */
function nextOpening(text: string, from: number): number {
  for (let at = text.indexOf('{', from); at !== -1; at = text.indexOf('{', at + 1)) {
    let next = at + 1
    while (next < text.length && ' \t\r\n'.includes(text[next]!)) next += 1
    if (text[next] === '"') return at
    // The blanks were looked at once; do not look again.
    at = next - 1
  }
  return -1
}

function endOfObject(text: string, start: number): number {
  let depth = 0
  for (let at = start; at < text.length; at++) {
    const char = text[at]
    if (char === '"') at = endOfString(text, at) - 1
    else if (char === '{') depth += 1
    else if (char === '}') {
      depth -= 1
      if (depth === 0) return at + 1
    }
  }
  return -1
}
