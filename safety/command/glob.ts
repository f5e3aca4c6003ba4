/**
 * Patterns over paths. A segment may hold `*`, `?` and `[…]`; a segment `**` stands for any number of segments. Used twice: our
 * own lists are such patterns, and so is an operand that the shell will expand, which must not be able to become a listed path.
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

/** A set of characters may be any character: wider than the truth, so that nothing slips through. */
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

/** One regular expression for a list of patterns, for literal paths. Leading dots are matched by `*`: wider, and simpler. */
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
