import { globExpression } from './patterns.ts'

/**
 * A list of path patterns that is asked about many paths. Compared as one regular expression, hundreds of patterns are tried in turn for
 * each path; here a path is held against those alone that share a word with it. Answers the same as `globExpression`.
 */
export type PathTest = { test(path: Path): boolean }

/** A path as it is, and its segments in lower case: taken apart once for all the lists that it is held against. */
export type Path = { text: string; lower: string; segments: readonly string[] }

export function pathOf(text: string): Path {
  const lower = text.toLowerCase()
  return { text, lower, segments: lower.split('/') }
}

const isLiteral = (segment: string | undefined): boolean =>
  segment !== undefined && segment !== '' && !/[*?[]/.test(segment)

/** Fewer patterns than this are one expression: it costs less than the look-ups. */
const fewPatterns = 6

export function pathIndex(patterns: readonly string[]): PathTest {
  if (patterns.length < fewPatterns) {
    const expression = globExpression(patterns)
    return { test: ({ text }) => expression.test(text) }
  }
  const lower = patterns.map((pattern) => pattern.toLowerCase())
  const hasName = nameIndex(lower.filter(isName).map((pattern) => pattern.slice(3)))
  const hasDirectory = nameIndex(lower.filter(isDirectory).map((pattern) => pattern.slice(3, -3)))
  const others = lower.filter((pattern) => !isName(pattern) && !isDirectory(pattern))
  const below = rootIndex(others.filter((pattern) => keyOf(pattern).startsWith('/')))
  const holding = grouped(others, keyOf)
  const anywhere = holding.get('')
  return {
    test({ lower: path, segments }) {
      if (hasName(segments[segments.length - 1]!) || anywhere?.test(path) === true) return true
      if (segments[0] === '' && below(segments, path)) return true
      for (const segment of segments) {
        if (segment !== '' && (hasDirectory(segment) || holding.get(segment)?.test(path) === true)) return true
      }
      return false
    },
  }
}

/** `**` and one name: a file of that name anywhere. */
const isName = (pattern: string): boolean => /^\*\*\/[^/]+$/.test(pattern) && !pattern.endsWith('/**')
/** The same of a directory with all that is in it. */
const isDirectory = (pattern: string): boolean => /^\*\*\/[^/]+\/\*\*$/.test(pattern)

/** A word that every path has which the pattern matches: where it begins, or a segment of it; empty where there is none. */
function keyOf(pattern: string): string {
  const segments = pattern.split('/')
  if (segments[0] === '') {
    if (!isLiteral(segments[1])) return ''
    return isLiteral(segments[2]) ? `/${segments[1]}/${segments[2]}` : `/${segments[1]}`
  }
  return segments[0] === '**' && isLiteral(segments[1]) ? (segments[1] ?? '') : ''
}

function grouped(patterns: readonly string[], keyOf: (pattern: string) => string): Map<string, RegExp> {
  return new Map([...Map.groupBy(patterns, keyOf)].map(([key, own]) => [key, globExpression(own)]))
}

/** Patterns from the root: by the first segment, and by the second one where it is known. */
function rootIndex(patterns: readonly string[]): (segments: readonly string[], path: string) => boolean {
  const byFirst = Map.groupBy(patterns, (pattern) => pattern.split('/')[1]!)
  const index = new Map(
    [...byFirst].map(([first, own]) => {
      const bySecond = grouped(own, (pattern) => keyOf(pattern).split('/')[2] ?? '')
      return [first, bySecond] as const
    }),
  )
  return (segments, path) => {
    const bySecond = index.get(segments[1] ?? '')
    if (!bySecond) return false
    const second = segments[2] ?? ''
    return bySecond.get('')?.test(path) === true || (second !== '' && bySecond.get(second)?.test(path) === true)
  }
}

const escaped = (text: string): string => text.replace(/[.+^$()|{}\]\\]/g, '\\$&')

/** Patterns of one segment: whole names, endings and parts are looked up, and the rest is tried by its first letter. */
function nameIndex(patterns: readonly string[]): (name: string) => boolean {
  const whole = new Set<string>()
  const endings = new Map<string, string[]>()
  const parts: string[] = []
  const byLetter = new Map<string, string[]>()
  const add = (index: Map<string, string[]>, key: string, text: string) =>
    index.set(key, [...(index.get(key) ?? []), text])
  for (const pattern of patterns) {
    if (isLiteral(pattern)) whole.add(pattern)
    else if (/^\*[^*?[]+$/.test(pattern)) add(endings, pattern.slice(-1), pattern.slice(1))
    else if (/^\*[^*?[]+\*$/.test(pattern)) parts.push(pattern.slice(1, -1))
    else add(byLetter, /^[*?[]/.test(pattern) ? '' : pattern.slice(0, 1), pattern)
  }
  const others = new Map([...byLetter].map(([letter, own]) => [letter, globExpression(own)]))
  const anyLetter = others.get('')
  const part = parts.length > 0 ? new RegExp(parts.map(escaped).join('|')) : null
  const hasEnding = (name: string): boolean => {
    for (const ending of endings.get(name.slice(-1)) ?? []) if (name.endsWith(ending)) return true
    return false
  }
  return (name) =>
    whole.has(name) ||
    hasEnding(name) ||
    part?.test(name) === true ||
    anyLetter?.test(name) === true ||
    others.get(name.slice(0, 1))?.test(name) === true
}
