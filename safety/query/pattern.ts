/**
 * Regular expressions of metrics and log servers (https://github.com/google/re2/wiki/Syntax), taken
 * apart so that code knows if one is bounded and narrows anything. Tried by sets of places:
 * repetition costs no more time.
 */

type PatternNode =
  | { kind: 'one'; holds: (character: string) => boolean }
  | { kind: 'edge'; holds: (text: string, at: number) => boolean }
  | { kind: 'all' | 'any'; parts: PatternNode[] }
  | { kind: 'repeat'; part: PatternNode; min: number; max: number }

/** Thrown where a text is no such expression. No Error: it is always caught. */
class PatternProblem {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

/** `isGuessed`: a part of it is read more broadly than a server reads it. */
type Reader = { text: string; at: number; folds: boolean; dotAll: boolean; depth: number; isGuessed: boolean }

const readerOf = (text: string): Reader => ({ text, at: 0, folds: false, dotAll: false, depth: 0, isGuessed: false })

/** More repeats in one another than RE2 takes. */
const maxRepeats = 1_000
const deepest = 50

/** Answers the expression, or in words why it cannot be asked. */
function parsePattern(text: string, reader = readerOf(text)): PatternNode | string {
  try {
    const node = readChoice(reader)
    if (reader.at < text.length) throw new PatternProblem('the pattern is no regular expression')
    const problem = findRepeatProblem(node)
    return problem ?? node
  } catch (error) {
    if (error instanceof PatternProblem) return error.message
    throw error
  }
}

function readChoice(reader: Reader): PatternNode {
  if (++reader.depth > deepest) throw new PatternProblem('the pattern is nested too deep')
  const parts = [readSequence(reader)]
  while (reader.text[reader.at] === '|') {
    reader.at += 1
    parts.push(readSequence(reader))
  }
  reader.depth -= 1
  return { kind: 'any', parts }
}

function readSequence(reader: Reader): PatternNode {
  const parts: PatternNode[] = []
  while (reader.at < reader.text.length && !/[|)]/.test(reader.text[reader.at]!)) parts.push(readRepeat(reader))
  return { kind: 'all', parts }
}

function readRepeat(reader: Reader): PatternNode {
  const part = readAtom(reader)
  const found = take(reader, /([*+?]|\{(\d{1,5})(,(\d{0,5}))?\})\??/y)
  if (!found) return part
  const [, sign = '', least = '0', comma, most] = found
  // What follows would repeat a repeat, which RE2 refuses.
  if (take(reader, /[*+]|\?|\{\d/y)) throw new PatternProblem('the pattern repeats a repeat')
  if (!sign.startsWith('{'))
    return { kind: 'repeat', part, min: sign === '+' ? 1 : 0, max: sign === '?' ? 1 : Number.POSITIVE_INFINITY }
  const min = Number(least)
  const max = comma === undefined ? min : most ? Number(most) : Number.POSITIVE_INFINITY
  if (max < min) throw new PatternProblem('the pattern is no regular expression')
  return { kind: 'repeat', part, min, max }
}

function readAtom(reader: Reader): PatternNode {
  const { text } = reader
  if (text[reader.at] === '(') return readGroup(reader)
  if (take(reader, /\^|\\A/y)) return { kind: 'edge', holds: (_, at) => at === 0 }
  if (take(reader, /\$|\\z/y)) return { kind: 'edge', holds: (line, at) => at === line.length }
  const edge = take(reader, /\\[bB]/y)?.[0]
  if (edge) {
    const isWord = (character = '') => /\w/.test(character)
    return {
      kind: 'edge',
      holds: (line, at) => (isWord(line[at - 1]) !== isWord(line[at])) === (edge === '\\b'),
    }
  }
  const one = take(
    reader,
    /\[\^?\]?(?:\\[\s\S]|\[:\^?[a-z]+:\]|[^\]\\])*\]|\\[pP](?:\{\^?\w+\}|\w)|\\x\{[0-9a-fA-F]{1,6}\}|\\x[0-9a-fA-F]{2}|\\[dDwWsSftnrv]|\\[^\w\s]|[^\\*+?[{]|\{(?!\d)/y,
  )
  if (one) return { kind: 'one', holds: toTest(one[0], reader) }
  if (take(reader, /\\[1-9]|\\k/y)) throw new PatternProblem('the pattern refers to a group, which RE2 does not have')
  throw new PatternProblem('the pattern is no regular expression')
}

function readGroup(reader: Reader): PatternNode {
  const outer = { folds: reader.folds, dotAll: reader.dotAll }
  if (take(reader, /\(\?(?:<?[=!])/y))
    throw new PatternProblem('the pattern looks ahead or behind, which RE2 does not do')
  const flags = take(reader, /\(\?([imsU]*)(?:-([imsU]+))?([:)])/y)
  if (flags) {
    const [, on = '', off = '', end] = flags
    reader.folds = (reader.folds || on.includes('i')) && !off.includes('i')
    reader.dotAll = (reader.dotAll || on.includes('s')) && !off.includes('s')
    // `(?i)` holds until the group around it ends.
    if (end === ')') return { kind: 'all', parts: [] }
  } else if (!take(reader, /\(\?P?<\w+>/y) && !take(reader, /\((?!\?)/y))
    throw new PatternProblem('the pattern uses what RE2 does not have')
  const node = readChoice(reader)
  if (!take(reader, /\)/y)) throw new PatternProblem('the pattern is no regular expression')
  Object.assign(reader, outer)
  return node
}

function take(reader: Reader, what: RegExp): RegExpExecArray | null {
  what.lastIndex = reader.at
  const found = what.exec(reader.text)
  if (found) reader.at += found[0].length
  return found
}

const named: Readonly<Record<string, string>> = {
  alpha: 'A-Za-z',
  digit: '0-9',
  alnum: '0-9A-Za-z',
  upper: 'A-Z',
  lower: 'a-z',
  space: '\\s',
  punct: '!-\\/:-@\\[-`{-~',
  xdigit: '0-9A-Fa-f',
  word: '\\w',
  print: ' -~',
  graph: '!-~',
}

/**
 * One character of RE2 as a test; a class that only RE2 knows holds all, so that it proves nothing
 * narrow.
 */
function toTest(atom: string, reader: Reader): (character: string) => boolean {
  const { folds, dotAll } = reader
  // JavaScript has other classes by these names.
  if (/\[:|\\[pP]/.test(atom)) reader.isGuessed = true
  if (atom === '.') return dotAll ? () => true : (character) => character !== '\n'
  const escaped = toJavaScript(atom)
  try {
    const expression = new RegExp(`^${escaped}$`, folds ? 'iu' : 'u')
    return (character) => expression.test(character)
  } catch {
    reader.isGuessed = true
    return () => true
  }
}

/** What a class or an escape is made of, each piece whole: a piece never begins within another. */
const pieces = /\[:(\^?)([a-z]+):\]|\\x\{([0-9a-fA-F]+)\}|\\x([0-9a-fA-F]{2})|\\([pP])(\w)|\\([^A-Za-z0-9])|\[/gu

const escapeCharacter = (character: string) => `\\u{${character.codePointAt(0)!.toString(16)}}`

/** One character of RE2 in JavaScript's words. */
function toJavaScript(atom: string): string {
  const [open = ''] = /^\[\^?/.exec(atom) ?? []
  if (open === '' && !atom.startsWith('\\')) return escapeCharacter(atom)
  const inside = (open === '' ? atom : atom.slice(open.length, -1)).replace(/^\]/, escapeCharacter)
  const said = inside.replace(pieces, (piece, not, name, code, two, property, letter, sign) => {
    if (name) return not || !named[name] ? '\\s\\S' : named[name]
    if (property) return `\\${property}{${letter}}`
    return code || two ? `\\u{${code ?? two}}` : escapeCharacter(sign ?? piece)
  })
  return open === '' ? said : `${open}${said}]`
}

/** Repeats that stand in one another: a server unrolls each. */
function findRepeatProblem(node: PatternNode): string | null {
  let problem: string | null = null
  const visit = (each: PatternNode, times: number, isInside: boolean) => {
    if (each.kind === 'all' || each.kind === 'any') for (const part of each.parts) visit(part, times, isInside)
    if (each.kind !== 'repeat') return
    const isOpen = each.max === Number.POSITIVE_INFINITY
    const counted = times * Math.max(1, isOpen ? each.min : each.max)
    if (isOpen && isInside) problem = 'the pattern repeats a repeat'
    else if (counted > maxRepeats) problem ??= `the pattern counts more than ${maxRepeats} repeats`
    visit(each.part, counted, isInside || each.max > 1)
  }
  visit(node, 1, false)
  return problem
}

/** Places that may still be tried, over all that is compared with it. */
export type PatternBudget = { left: number }
const unbounded: PatternBudget = { left: Number.POSITIVE_INFINITY }

/** Places where a match may end that begins at one of these. */
function endsOf(
  node: PatternNode,
  text: readonly string[],
  starts: ReadonlySet<number>,
  budget = unbounded,
): Set<number> {
  budget.left -= starts.size + 1
  if (budget.left < 0) throw new PatternProblem('the pattern takes too long')
  switch (node.kind) {
    case 'one':
      return new Set([...starts].filter((at) => at < text.length && node.holds(text[at]!)).map((at) => at + 1))
    case 'edge': {
      const line = text.join('')
      return new Set([...starts].filter((at) => node.holds(line, at)))
    }
    case 'any':
      return new Set(node.parts.flatMap((part) => [...endsOf(part, text, starts, budget)]))
    case 'all':
      return node.parts.reduce((ends, part) => endsOf(part, text, ends, budget), new Set(starts))
    case 'repeat':
      return repeatedEnds(node, text, starts, budget)
  }
}

function repeatedEnds(
  { part, min, max }: PatternNode & { kind: 'repeat' },
  text: readonly string[],
  starts: ReadonlySet<number>,
  budget: PatternBudget,
): Set<number> {
  let ends = new Set(starts)
  const found = new Set(min === 0 ? starts : [])
  for (let round = 1; round <= max && ends.size > 0; round += 1) {
    const next = endsOf(part, text, ends, budget)
    // After the required rounds a place that was there before brings nothing.
    ends = round < min ? next : new Set([...next].filter((at) => !found.has(at)))
    if (round >= min) for (const at of next) found.add(at)
  }
  return found
}

/** The fewest characters that a match has. */
function shortest(node: PatternNode): number {
  switch (node.kind) {
    case 'one':
      return 1
    case 'edge':
      return 0
    case 'any':
      return Math.min(...node.parts.map(shortest))
    case 'all':
      return node.parts.reduce((sum, part) => sum + shortest(part), 0)
    case 'repeat':
      return node.min * shortest(node.part)
  }
}

/** Lines as logs have them: one without a figure, one without a letter. */
const lines = [
  '2026-11-25 10:42:07.113 200 0.013 10.0.0.7:443 - -',
  'worker pool: connection reset by peer',
  '{"level":"info","msg":"request done","ms":12}',
  'Nov 25 10:42:07 web-1 app[712]: started in 34 ms',
].map((line) => [...line])

/** Why a pattern is not asked of logs; null where it is bounded and leaves lines out. */
export function findPatternProblem(pattern: string): string | null {
  const node = parsePattern(pattern)
  if (typeof node === 'string') return node
  if (shortest(node) <= 1)
    return 'the pattern matches every line, or nearly: it is content with one character. Write a word, or leave it out'
  const all = lines.every((line) => endsOf(node, line, new Set(line.keys())).size > 0)
  return all ? 'the pattern matches every line: write a word that not all lines hold, or leave it out' : null
}

/** Names that have nothing in common. */
const metrics = ['up', 'node_load1', 'http_requests_total', 'kube_pod_info', 'go_goroutines', 'ALERTS'].map((name) => [
  ...name,
])

/** Whether an expression for a metric's whole name chooses among metrics. */
export function narrowsMetrics(pattern: string): boolean {
  const node = parsePattern(pattern)
  if (typeof node === 'string') return false
  return metrics.filter((name) => endsOf(node, name, new Set([0])).has(name.length)).length <= 1
}

/** Why an expression for the whole value of a label is not asked; null where it is bounded. */
export function findLabelPatternProblem(pattern: string): string | null {
  const node = parsePattern(pattern)
  return typeof node === 'string' ? node : null
}

/** Values of labels that have nothing in common, in words that nobody lists. */
const values = [
  'zephyr',
  'volta',
  'quince',
  'okapi-1',
  'brimstone-4',
  '10.0.0.7:9100',
  'TUNDRA',
  '/var/log/x.log',
  '',
].map((value) => [...value])

/**
 * Whether it chooses among a label's values: it leaves out the empty one and most others, unlike
 * `[^x]+` or `\w+`.
 */
export function narrowsLabels(pattern: string): boolean {
  const node = parsePattern(pattern)
  if (typeof node === 'string') return false
  const matched = values.filter((value) => endsOf(node, value, new Set([0])).has(value.length))
  return matched.length <= (values.length - 1) / 3 && !matched.some(({ length }) => length === 0)
}

/** Compares a label's whole value with a pattern. Null: unknown, or too long. */
export type LabelPattern = (value: string, budget: PatternBudget) => boolean | null

/** Reading costs more than trying. */
const stepsToRead = 50
const longestCompared = 4_000
/** A value of which JavaScript and RE2 think alike, whatever classes and flags a pattern has. */
const plainValue = /^[\n -~]*$/

/**
 * A pattern as Alertmanager reads it, anchored at both ends. Unknown where code would read it
 * otherwise than RE2.
 */
export function compileLabelPattern(pattern: string, budget: PatternBudget): LabelPattern {
  const unknown: LabelPattern = () => null
  budget.left -= pattern.length * stepsToRead
  // Flags that change what the ends of a line are, or what comes first.
  if (budget.left < 0 || pattern.length > longestCompared || /\(\?[a-zA-Z-]*[mU]/.test(pattern)) return unknown
  if (/[\ud800-\udfff]/.test(pattern)) return unknown
  const reader = readerOf(pattern)
  const node = parsePattern(pattern, reader)
  if (typeof node === 'string' || reader.isGuessed) return unknown
  const hasClasses = /[\\[]|\(\?/.test(pattern)
  return (value, left) => {
    if (hasClasses ? !plainValue.test(value) : /[\ud800-\udfff]/.test(value)) return null
    try {
      return endsOf(node, [...value], new Set([0]), left).has(value.length)
    } catch (error) {
      if (error instanceof PatternProblem) return null
      throw error
    }
  }
}
