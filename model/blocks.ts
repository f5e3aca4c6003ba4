import { endOfString, isObject, readJson } from './json.ts'

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
