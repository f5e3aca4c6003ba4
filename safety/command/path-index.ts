import { globExpression } from './glob.ts'

/**
 * A list of path patterns that is asked about many paths. Compared as one regular expression, hundreds of patterns are tried in turn for
 * each path; here a path is held against those alone that share a word with it. Answers the same as `globExpression`.
 */
export type PathTest = { test(path: string): boolean }

const isLiteral = (segment: string | undefined): boolean =>
  segment !== undefined && segment !== '' && !/[*?[]/.test(segment)

export function pathIndex(patterns: readonly string[]): PathTest {
  const lower = patterns.map((pattern) => pattern.toLowerCase())
  const names = nameIndex(lower.filter(isName).map((pattern) => pattern.slice(3)))
  const directories = nameIndex(lower.filter(isDirectory).map((pattern) => pattern.slice(3, -3)))
  const keyed = new Map<string, string[]>()
  for (const pattern of lower) {
    if (isName(pattern) || isDirectory(pattern)) continue
    const key = keyOf(pattern)
    keyed.set(key, [...(keyed.get(key) ?? []), pattern])
  }
  const placed = new Map([...keyed].map(([key, own]) => [key, globExpression(own)]))
  const matches = (key: string, path: string) => placed.get(key)?.test(path) === true
  return {
    test(given) {
      const path = given.toLowerCase()
      const segments = path.split('/')
      if (names(segments.at(-1) ?? '') || matches('', path)) return true
      if (segments[0] === '' && (matches(`/${segments[1]}`, path) || matches(`/${segments[1]}/${segments[2]}`, path)))
        return true
      return segments.some((segment) => segment !== '' && (directories(segment) || matches(segment, path)))
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

/** Patterns of one segment: whole names and endings are looked up, and the rest is tried by its first letter. */
function nameIndex(patterns: readonly string[]): (name: string) => boolean {
  const whole = new Set<string>()
  const endings = new Set<string>()
  const byLetter = new Map<string, string[]>()
  for (const pattern of patterns) {
    if (isLiteral(pattern)) whole.add(pattern)
    else if (/^\*\.[^*?[]+$/.test(pattern)) endings.add(pattern.slice(1))
    else {
      const letter = /^[*?[]/.test(pattern) ? '' : pattern.slice(0, 1)
      byLetter.set(letter, [...(byLetter.get(letter) ?? []), pattern])
    }
  }
  const others = new Map([...byLetter].map(([letter, own]) => [letter, globExpression(own)]))
  const hasEnding = (name: string): boolean => {
    for (let at = name.indexOf('.'); at >= 0; at = name.indexOf('.', at + 1))
      if (endings.has(name.slice(at))) return true
    return false
  }
  return (name) =>
    whole.has(name) ||
    hasEnding(name) ||
    others.get('')?.test(name) === true ||
    others.get(name.slice(0, 1))?.test(name) === true
}
