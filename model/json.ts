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
export type Block = { value: Record<string, unknown> | null; problem: string | null; start: number; end: number }

/** More beginnings than this and the text is no answer; it also bounds the work. */
const maxBlocks = 16

/**
 * The JSON objects of a text, outermost only, in order. What looks like one and is broken is a block with a problem, and
 * nothing inside it is looked at, so that no call is ever dug out of a ruin.
 */
export function findBlocks(text: string, maxChars: number): Block[] {
  const blocks: Block[] = []
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

/** How models mark their reasoning where the server leaves it in the text: the templates' own tags, whole words only. */
const marks: [open: string, close: string][] = [
  ['<think>', '</think>'],
  ['<thinking>', '</thinking>'],
  ['<thought>', '</thought>'],
  ['<reasoning>', '</reasoning>'],
  ['<seed:think>', '</seed:think>'],
  ['[THINK]', '[/THINK]'],
  ['◁think▷', '◁/think▷'],
  ['<|START_THINKING|>', '<|END_THINKING|>'],
  ['<|channel|>analysis<|message|>', '<|end|>'],
]
/** What else stands around an answer that a server did not take apart. */
const frames =
  /<\|start\|>assistant|<\|channel\|>(?:final|commentary)<\|message\|>|<\|(?:START|END)_RESPONSE\|>|<\|return\|>/g

const escaped = (text: string) => text.replace(/[[\]|/]/g, '\\$&')
const anyMark = new RegExp(marks.flat().map(escaped).join('|'), 'gi')
const longestJson = 400_000

type Mark = { at: number; end: number; pair: number; isOpening: boolean }

/**
 * The text without the model's reasoning: what stands between two marks, behind one that is never closed, and before one that
 * was never opened, since templates open it for the model. A mark within a whole JSON object is what the model says about, not
 * how it says it.
 */
export function withoutThoughts(text: string): string {
  const found = marksIn(text)
  if (found.length === 0) return text
  const kept: string[] = []
  let open: Mark | null = null
  let at = 0
  for (const mark of found) {
    if (open === null && mark.isOpening) {
      kept.push(text.slice(at, mark.at))
      open = mark
    } else if (open === null) {
      // Closed without an opening: all before it was thought.
      kept.length = 0
      at = mark.end
    } else if (!mark.isOpening && mark.pair === open.pair) {
      open = null
      at = mark.end
    }
  }
  if (open === null) kept.push(text.slice(at))
  return kept.join('').replace(frames, '')
}

function marksIn(text: string): Mark[] {
  const objects = text.includes('{') ? findBlocks(text, longestJson).filter(({ value }) => value !== null) : []
  const result: Mark[] = []
  let open: number | null = null
  for (const match of text.matchAll(anyMark)) {
    const word = match[0].toLowerCase()
    const pair = marks.findIndex((each) => each.some((mark) => mark.toLowerCase() === word))
    const isOpening = marks[pair]![0].toLowerCase() === word
    // A thought holds drafts of JSON too: within it every mark of its kind counts.
    const isQuoted = open === null && objects.some(({ start, end }) => match.index >= start && match.index < end)
    // `<|end|>` ends any message of its template.
    if (isQuoted || (open === null && !isOpening && match[0] === '<|end|>')) continue
    if (isOpening) open ??= pair
    else if (open === pair) open = null
    result.push({ at: match.index, end: match.index + match[0].length, pair, isOpening })
  }
  return result
}
