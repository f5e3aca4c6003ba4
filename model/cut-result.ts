/** Cuts a long text so that it stays plain data, and says what a beginning of JSON holds. */

const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

const sizeOf = (value: unknown): number => JSON.stringify(value)?.length ?? 0

/** Leaves out a long command line's middle: its program and last words tell the process. */
const maxCommandCharacters = 140
const commandHead = 90
const commandTail = 40

/** With long command lines cut: which process it is, its other fields say as well. */
export function cutCommands(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.map((each) => cutCommands(each))
  if (isObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, cutCommands(inner, name)]))
  if (key !== 'cmdline' || typeof value !== 'string' || value.length <= maxCommandCharacters) return value
  return `${value.slice(0, commandHead).toWellFormed()} … ${value.slice(-commandTail).toWellFormed()}`
}

/** Longest texts and lists that are kept, tried in this order. */
const cuts = [
  [8_000, 120],
  [4_000, 60],
  [2_000, 30],
  [800, 15],
  [300, 8],
  [100, 4],
] as const

/**
 * A fitting answer: its longest texts lose their middle and its longest lists their end, and each
 * says so. Stays plain data. Null where even that is too long.
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
 * The beginning of a JSON text, as far as it goes; undefined where that is nothing. Linear but for
 * the last few pieces.
 */
export function parsePrefix(text: string): unknown {
  const ends = [...text.matchAll(/[,}\]]/g)].slice(-40).map(({ index }) => index)
  for (const end of [text.length, ...ends.reverse()]) {
    const piece = text.slice(0, end).replace(/,\s*$/, '')
    try {
      return JSON.parse(piece + closingOf(piece))
    } catch {
      // Cut within a text or behind a key: a little less of it is whole.
    }
  }
  return undefined
}

/** The brackets that a beginning leaves open, closed. */
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
