import { isObject } from './json.ts'

/** Returns the number of characters of a value as JSON. */
export const sizeOf = (value: unknown): number => JSON.stringify(value)?.length ?? 0

/**
 * Limits for a long command line, whose middle is cut, because its program and last arguments
 * identify the process.
 */
const maxCommandCharacters = 110
const commandHead = 70
const commandTail = 35

/** Cuts long command lines (`cmdline`) in an answer; other fields identify the process too. */
export function cutCommands(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.map((each) => cutCommands(each))
  if (isObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, cutCommands(inner, name)]))
  if (key !== 'cmdline' || typeof value !== 'string' || value.length <= maxCommandCharacters) return value
  return `${value.slice(0, commandHead).toWellFormed()} … ${value.slice(-commandTail).toWellFormed()}`
}

/** Greatest lengths of texts and of lists that are kept, tried in this order. */
const cuts = [
  [8_000, 120],
  [4_000, 60],
  [2_000, 30],
  [800, 15],
  [300, 8],
  [100, 4],
  [100, 2],
  [60, 1],
] as const

/**
 * Shortens an answer: its longest texts lose their middle and its longest lists their end, each
 * with a mark. The result is plain data. Null if even the shortest form is over `maxCharacters`.
 */
export function cutToFit(data: unknown, maxCharacters: number): unknown {
  if (sizeOf(data) <= maxCharacters) return data
  for (const [characters, items] of cuts) {
    const cut = cutWithin(data, characters, items)
    if (sizeOf(cut) <= maxCharacters) return cut
  }
  return null
}

function cutWithin(value: unknown, characters: number, items: number): unknown {
  if (typeof value === 'string' && value.length > characters) {
    const head = value.slice(0, Math.floor(characters / 2)).toWellFormed()
    const tail = value.slice(-Math.floor(characters / 2)).toWellFormed()
    return `${head}\n[… ${value.length - head.length - tail.length} characters are left out …]\n${tail}`
  }
  if (Array.isArray(value)) {
    const kept = value.slice(0, items).map((each) => cutWithin(each, characters, items))
    const left = value.length - kept.length
    return left > 0 ? [...kept, `[… ${left} more of ${value.length} are left out …]`] : kept
  }
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, cutWithin(inner, characters, items)]))
}

/**
 * Parses the beginning of a JSON text as far as possible; undefined if no part can be parsed. Tries
 * at most forty ends, so that the time stays linear.
 */
export function parsePrefix(text: string): unknown {
  const ends = [...text.matchAll(/[,}\]]/g)].slice(-40).map(({ index }) => index)
  for (const end of [text.length, ...ends.reverse()]) {
    const piece = text.slice(0, end).replace(/,\s*$/, '')
    try {
      return JSON.parse(piece + closingOf(piece))
    } catch {
      // Tries a shorter piece, because this piece was cut within a text or behind a key.
    }
  }
  return undefined
}

/** Returns the brackets that close an unfinished JSON text. */
function closingOf(piece: string): string {
  const open: string[] = []
  let isText = false
  for (let at = 0; at < piece.length; at++) {
    const char = piece[at]
    if (char === '\\' && isText) at += 1
    else if (char === '"') isText = !isText
    else if (!isText && char === '{') open.push('}')
    else if (!isText && char === '[') open.push(']')
    else if (!isText && (char === '}' || char === ']')) open.pop()
  }
  return `${isText ? '"' : ''}${open.reverse().join('')}`
}
