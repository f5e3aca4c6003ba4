import { type Flaw, InvalidProblemError } from './check.ts'

const flawsTold = 10

/** The text of a document. Throws InvalidProblemError for bytes that are not UTF-8: replaced by a sign they could name another VM. */
export function textOf(bytes: Uint8Array): string {
  if (isUtf8(bytes)) return new TextDecoder().decode(bytes)
  // The longest part that is sound, where a character may be cut at the end.
  let [sound, broken] = [0, bytes.length]
  while (broken - sound > 1) {
    const middle = (sound + broken) >> 1
    if (isUtf8(bytes.subarray(0, middle), true)) sound = middle
    else broken = middle
  }
  const line = 1 + bytes.subarray(0, sound).reduce((count, byte) => count + (byte === 0x0a ? 1 : 0), 0)
  throw new InvalidProblemError([{ path: `line ${line}`, message: `byte ${broken} is not UTF-8` }])
}

function isUtf8(bytes: Uint8Array, isPart = false): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: isPart })
    return true
  } catch {
    return false
  }
}

/**
 * Text that `JSON.parse` takes, without the keys that are given twice: it would silently keep the last. Throws SyntaxError for text that is
 * no JSON, InvalidProblemError with the path of each key that is given twice in one object.
 */
export function jsonOf(text: string): unknown {
  const value: unknown = JSON.parse(text)
  const flaws = keysTwice(text)
  if (flaws.length > 0) throw new InvalidProblemError(flaws.slice(0, flawsTold))
  return value
}

type Level = { keys: Set<string> | null; at: string | number }

/** Reads sound JSON by its strings, brackets and commas; nothing else matters for keys. */
function keysTwice(text: string): Flaw[] {
  const flaws: Flaw[] = []
  const levels: Level[] = []
  const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}[\],]/g
  for (let token = tokens.exec(text); token !== null; token = tokens.exec(text)) {
    const level = levels.at(-1)
    const [found, colon] = token
    if (found === '{') levels.push({ keys: new Set(), at: '' })
    else if (found === '[') levels.push({ keys: null, at: 0 })
    else if (found === '}' || found === ']') levels.pop()
    else if (found === ',' && typeof level?.at === 'number') level.at += 1
    else if (colon !== undefined && level?.keys) {
      // As it is meant: the same key may be written in two ways.
      level.at = JSON.parse(found.slice(0, -colon.length)) as string
      if (level.keys.has(level.at)) {
        const line = text.slice(0, token.index).split('\n').length
        flaws.push({
          path: levels.map(({ at }) => at).join('.'),
          message: `the key is given twice, again in line ${line}`,
        })
      }
      level.keys.add(level.at)
    }
  }
  return flaws
}
