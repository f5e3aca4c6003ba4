import type { Word, WordPart } from 'unbash'
import { type Constants, remember } from './words.ts'

/** Applies a shell's operations to the value of a parameter. */

/**
 * Represents an unknown value, which is usually empty, because nothing sets it. No word can contain
 * this character.
 */
export const unknown = '\u0000'

export type Parameter = Extract<WordPart, { type: 'ParameterExpansion' }>

/** Returns the value of `${a:-x}`, `${a#x}`, `${a/x/y}` and the like; `operand` expands words. */
export function changed(
  values: readonly string[] | null,
  part: Parameter,
  operation: NonNullable<Parameter['operation']>,
  operand: (word: Word | undefined) => string,
  constants: Constants,
): readonly string[] {
  if (operation.type === 'Default') {
    const isSet = values !== null && values.join('') !== ''
    const other = () => operand(operation.operand)
    if (operation.operator.endsWith('+')) return isSet ? [other()] : []
    if (isSet || operation.operator.endsWith('?')) return values ?? [unknown]
    const otherwise = other()
    if (operation.operator.endsWith('=')) remember(constants, part.parameter, [otherwise])
    return [otherwise]
  }
  if (values === null) return [unknown]
  switch (operation.type) {
    case 'Slice': {
      const from = Number(operand(operation.offset))
      const length = operation.length ? Number(operand(operation.length)) : Number.POSITIVE_INFINITY
      if (!Number.isFinite(from)) return [unknown]
      if (part.index || part.parameter === '@' || part.parameter === '*') return values.slice(from, from + length)
      const text = values.join(' ')
      const start = from < 0 ? Math.max(0, text.length + from) : from
      return [length < 0 ? text.slice(start, length) : text.slice(start, start + length)]
    }
    case 'Remove': {
      const what = operand(operation.operand)
      return values.map((value) => removed(value, what, operation.operator))
    }
    case 'Replace': {
      const [from, to] = [operand(operation.pattern), operand(operation.replacement)]
      if (from === '' || /[*?[]/.test(from)) return values
      return values.map((value) =>
        operation.operator === '//' ? value.replaceAll(from, to) : value.replace(from, () => to),
      )
    }
    case 'CaseModification': {
      const all = operation.operator.length === 2
      const turn = (text: string) => (operation.operator[0] === '^' ? text.toUpperCase() : text.toLowerCase())
      return values.map((value) => (all ? turn(value) : turn(value.slice(0, 1)) + value.slice(1)))
    }
    case 'Transform':
      return values
    default:
      return [unknown]
  }
}

/**
 * Applies `${a#x}` and `${a%x}`. The only pattern that is read is `*` with one literal next to it.
 */
function removed(value: string, what: string, operator: string): string {
  const long = operator.length === 2
  const literal = what.replace(/^\*|\*$/g, '')
  if (literal === '' || /[*?[]/.test(literal)) return value
  if (operator.startsWith('#')) {
    if (!what.startsWith('*')) return value.startsWith(literal) ? value.slice(literal.length) : value
    const at = long ? value.lastIndexOf(literal) : value.indexOf(literal)
    return at < 0 ? value : value.slice(at + literal.length)
  }
  if (!what.endsWith('*')) return value.endsWith(literal) ? value.slice(0, -literal.length) : value
  const at = long ? value.indexOf(literal) : value.lastIndexOf(literal)
  return at < 0 ? value : value.slice(0, at)
}

/**
 * Patterns over paths. A segment may contain `*`, `?` and `[…]`; `**` is any number of segments.
 * The lists consist of such patterns. An operand that the shell expands is a pattern too, and must
 * not match a listed path.
 */

/** Whether some path matches both patterns. A literal path is a pattern too. */
export function globsMeet(left: string, right: string): boolean {
  return segmentsMeet(left.toLowerCase().split('/'), 0, right.toLowerCase().split('/'), 0)
}

function segmentsMeet(left: readonly string[], i: number, right: readonly string[], j: number): boolean {
  if (left[i] === '**')
    return segmentsMeet(left, i + 1, right, j) || (j < right.length && segmentsMeet(left, i, right, j + 1))
  if (right[j] === '**')
    return segmentsMeet(left, i, right, j + 1) || (i < left.length && segmentsMeet(left, i + 1, right, j))
  if (i === left.length || j === right.length) return i === left.length && j === right.length
  return segmentMeets(left[i]!, right[j]!) && segmentsMeet(left, i + 1, right, j + 1)
}

function segmentMeets(left: string, right: string): boolean {
  // Refuses a match of a wildcard at the start of a name with a dot.
  if (/^[*?[]/.test(left) && right.startsWith('.')) return false
  if (/^[*?[]/.test(right) && left.startsWith('.')) return false
  return charactersMeet(anyForSets(left), 0, anyForSets(right), 0)
}

/** Treats a set of characters as any character, because it is safe here to match more. */
const anyForSets = (segment: string) => segment.replace(/\[[^\]]*\]/g, '?')

function charactersMeet(left: string, i: number, right: string, j: number): boolean {
  if (left[i] === '*')
    return charactersMeet(left, i + 1, right, j) || (j < right.length && charactersMeet(left, i, right, j + 1))
  if (right[j] === '*')
    return charactersMeet(left, i, right, j + 1) || (i < left.length && charactersMeet(left, i + 1, right, j))
  if (i === left.length || j === right.length) return i === left.length && j === right.length
  const same = left[i] === right[j] || left[i] === '?' || right[j] === '?'
  return same && charactersMeet(left, i + 1, right, j + 1)
}

/**
 * Builds one regular expression for a list of patterns, to test literal paths. `*` matches leading
 * dots too, which is wider and simpler.
 */
export function globExpression(patterns: readonly string[]): RegExp {
  return new RegExp(`^(?:${patterns.map(source).join('|')})$`, 'i')
}

const tokens = /^\*\*\/|\/\*\*\/|\/\*\*$|\*|\?|\[[^\]]*\]|[^*?[/]+|./g

function source(pattern: string): string {
  return pattern.replace(tokens, (token) => {
    if (token === '**/') return '(?:.*/)?'
    if (token === '/**/') return '/(?:.*/)?'
    if (token === '/**') return '(?:/.*)?'
    if (token === '*') return '[^/]*'
    if (token === '?') return '[^/]'
    if (token.startsWith('[') && token.length > 1) return token
    return token.replace(/[.+^$()|{}[\]\\]/g, '\\$&')
  })
}

/** Expands braces in one written word, before everything else that a shell does. */

/** Most words to which braces are expanded. */
const maxWords = 64

/**
 * Expands `{rm,-rf,/}` to `rm`, `-rf` and `/`. A word that would become too many words stays as it
 * is.
 */
export function expandBraces(text: string): string[] {
  const done: string[] = []
  const open = [text]
  while (open.length > 0) {
    const next = open.pop()!
    const found = findBraces(next)
    if (!found || done.length + open.length >= maxWords) done.push(next)
    else for (const middle of found.middles) open.push(next.slice(0, found.from) + middle + next.slice(found.to))
  }
  return done.reverse()
}

type Braces = { from: number; to: number; middles: string[] }

/** Finds the first pair of braces that expands, with its replacements. */
function findBraces(text: string): Braces | null {
  for (let from = nextOpen(text, 0); from >= 0; from = nextOpen(text, from + 1)) {
    const found = readBraces(text, from)
    if (found) return found
  }
  return null
}

function nextOpen(text: string, from: number): number {
  for (let at = from; at < text.length; at = behind(text, at)) {
    if (text[at] === '{' && text[at - 1] !== '$') return at
  }
  return -1
}

/** Returns the index after the character, escape or quoted part that begins here. */
function behind(text: string, at: number): number {
  const character = text[at]
  if (character === '\\') return at + 2
  if (character !== "'" && character !== '"') return at + 1
  const end = text.indexOf(character, at + 1)
  return end < 0 ? text.length : end + 1
}

function readBraces(text: string, from: number): Braces | null {
  const middles: string[] = []
  let depth = 0
  let start = from + 1
  for (let at = from; at < text.length; at = behind(text, at)) {
    const character = text[at]
    if (character === '{') depth += 1
    else if (character === ',' && depth === 1) {
      middles.push(text.slice(start, at))
      start = at + 1
    } else if (character === '}') {
      depth -= 1
      if (depth > 0) continue
      if (middles.length > 0) return { from, to: at + 1, middles: [...middles, text.slice(start, at)] }
      const sequence = sequenceOf(text.slice(start, at))
      return sequence && { from, to: at + 1, middles: sequence }
    }
  }
  return null
}

/** Reads `1..5`, `a..e`. */
function sequenceOf(text: string): string[] | null {
  const found = /^(?:(-?\d{1,4})\.\.(-?\d{1,4})|([A-Za-z])\.\.([A-Za-z]))$/.exec(text)
  if (!found) return null
  const numbers = found[1] !== undefined
  const first = numbers ? Number(found[1]) : found[3]!.charCodeAt(0)
  const last = numbers ? Number(found[2]) : found[4]!.charCodeAt(0)
  const step = first <= last ? 1 : -1
  const sequence: string[] = []
  for (let value = first; sequence.length < maxWords; value += step) {
    sequence.push(numbers ? String(value) : String.fromCharCode(value))
    if (value === last) break
  }
  return sequence
}
