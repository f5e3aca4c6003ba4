import type { Word, WordPart } from 'unbash'
import { type Constants, remember } from './words.ts'

/** What a shell makes of a parameter's value, where it says to change it. */

/** An unknown value: empty as a rule, since nothing sets it. No word can hold this character. */
export const unknown = '\u0000'

export type Parameter = Extract<WordPart, { type: 'ParameterExpansion' }>

/** The value of `${a:-x}`, `${a#x}`, `${a/x/y}` and the like; `operand` writes out words. */
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

/** `${a#x}`, `${a%x}`; of patterns only `*` with one literal beside it. */
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
 * Patterns over paths. A segment may hold `*`, `?` and `[…]`; `**` is any number of segments. Used
 * twice: our lists are such patterns, and so is an operand that the shell expands, which must not
 * become a listed path.
 */

/** True when some path matches both patterns. A literal path is a pattern too. */
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
  // A wildcard at the start of a name does not stand for a dot.
  if (/^[*?[]/.test(left) && right.startsWith('.')) return false
  if (/^[*?[]/.test(right) && left.startsWith('.')) return false
  return charactersMeet(anyForSets(left), 0, anyForSets(right), 0)
}

/** A set of characters may be any character: wider than the truth: nothing slips through. */
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
 * One regular expression for a list of patterns, for literal paths. `*` matches leading dots:
 * wider, and simpler.
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

/** Brace expansion on one word as written: it comes before all else that a shell does to a word. */

/** More words than these are not written out. */
const maxWords = 64

/** `{rm,-rf,/}` as `rm`, `-rf` and `/`. Past the limit a word stands as it is. */
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

/** The first pair of braces that expands, with what stands in its place each time. */
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

/** Behind the character, the escape or the quoted part that begins here. */
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

/** `1..5`, `a..e`. */
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
