/**
 * Parses regular expressions as servers of metrics and logs read them
 * (https://github.com/google/re2/wiki/Syntax), to decide whether an expression is bounded and
 * selective. Compares with all places of a text at once, so that repetition costs no more time.
 */

type PatternNode =
  | { kind: 'one'; holds: (character: string) => boolean }
  | { kind: 'edge'; holds: (text: string, at: number) => boolean }
  | { kind: 'all' | 'any'; parts: PatternNode[] }
  | { kind: 'repeat'; part: PatternNode; min: number; max: number }

/**
 * Thrown for an invalid expression. A pattern problem is not an Error, because it is always caught.
 */
class PatternProblem {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

/** `isGuessed`: a part was read as matching more than it does on a server. */
type Reader = { text: string; at: number; folds: boolean; dotAll: boolean; depth: number; isGuessed: boolean }

const readerOf = (text: string): Reader => ({ text, at: 0, folds: false, dotAll: false, depth: 0, isGuessed: false })

/** Most repetitions in nested repeats, which is RE2's limit. */
const maxRepeats = 1_000
const deepest = 50

/** Returns the parsed expression, or why it cannot be sent. */
function parsePattern(text: string, reader = readerOf(text)): PatternNode | string {
  try {
    const node = readChoice(reader)
    if (reader.at < text.length) throw new PatternProblem('the pattern is not a regular expression')
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
  // Refuses a repeat of a repeat, as RE2 does.
  if (take(reader, /[*+]|\?|\{\d/y)) throw new PatternProblem('the pattern repeats a repeat')
  if (!sign.startsWith('{'))
    return { kind: 'repeat', part, min: sign === '+' ? 1 : 0, max: sign === '?' ? 1 : Number.POSITIVE_INFINITY }
  const min = Number(least)
  const max = comma === undefined ? min : most ? Number(most) : Number.POSITIVE_INFINITY
  if (max < min) throw new PatternProblem('the pattern is not a regular expression')
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
  if (take(reader, /\\[1-9]|\\k/y)) throw new PatternProblem('the pattern has a backreference, which RE2 lacks')
  throw new PatternProblem('the pattern is not a regular expression')
}

function readGroup(reader: Reader): PatternNode {
  const outer = { folds: reader.folds, dotAll: reader.dotAll }
  if (take(reader, /\(\?(?:<?[=!])/y))
    throw new PatternProblem('the pattern has a lookahead or lookbehind, which RE2 lacks')
  const flags = take(reader, /\(\?([imsU]*)(?:-([imsU]+))?([:)])/y)
  if (flags) {
    const [, on = '', off = '', end] = flags
    reader.folds = (reader.folds || on.includes('i')) && !off.includes('i')
    reader.dotAll = (reader.dotAll || on.includes('s')) && !off.includes('s')
    // Reads `(?i)`, which is valid until the end of its group.
    if (end === ')') return { kind: 'all', parts: [] }
  } else if (!take(reader, /\(\?P?<\w+>/y) && !take(reader, /\((?!\?)/y))
    throw new PatternProblem('the pattern uses syntax that RE2 lacks')
  const node = readChoice(reader)
  if (!take(reader, /\)/y)) throw new PatternProblem('the pattern is not a regular expression')
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
 * Converts one character of RE2 to a test. A class that only RE2 knows matches everything, so that
 * it does not count as selective.
 */
function toTest(atom: string, reader: Reader): (character: string) => boolean {
  const { folds, dotAll } = reader
  // Marks the pattern as guessed, because these classes mean something else in JavaScript.
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

/**
 * Matches the pieces of a class or an escape, each as a whole: a piece never begins within another.
 */
const pieces =
  /\[:(?<not>\^?)(?<name>[a-z]+):\]|\\x\{(?<code>[0-9a-fA-F]+)\}|\\x(?<two>[0-9a-fA-F]{2})|\\(?<property>[pP])(?<letter>\w)|\\(?<sign>[^A-Za-z0-9])|\[/gu

const escapeCharacter = (character: string) => `\\u{${character.codePointAt(0)!.toString(16)}}`

/** Converts one character of RE2 to JavaScript. */
function toJavaScript(atom: string): string {
  const [open = ''] = /^\[\^?/.exec(atom) ?? []
  if (open === '' && !atom.startsWith('\\')) return escapeCharacter(atom)
  const inside = (open === '' ? atom : atom.slice(open.length, -1)).replace(/^\]/, escapeCharacter)
  const said = inside.replace(pieces, (piece: string, ...found: unknown[]) => {
    const { not, name, code, two, property, letter, sign } = found.at(-1) as Record<string, string | undefined>
    if (name) return not || !named[name] ? '\\s\\S' : named[name]
    if (property) return `\\${property}{${letter}}`
    return code || two ? `\\u{${code ?? two}}` : escapeCharacter(sign ?? piece)
  })
  return open === '' ? said : `${open}${said}]`
}

/** Checks nested repeats, because a server unrolls each. */
function findRepeatProblem(node: PatternNode): string | null {
  let problem: string | null = null
  const visit = (each: PatternNode, times: number, isInside: boolean) => {
    if (each.kind === 'all' || each.kind === 'any') for (const part of each.parts) visit(part, times, isInside)
    if (each.kind !== 'repeat') return
    const isOpen = each.max === Number.POSITIVE_INFINITY
    const counted = times * Math.max(1, isOpen ? each.min : each.max)
    if (isOpen && isInside) problem = 'the pattern repeats a repeat'
    else if (counted > maxRepeats) problem ??= `the pattern has more than ${maxRepeats} repetitions`
    visit(each.part, counted, isInside || each.max > 1)
  }
  visit(node, 1, false)
  return problem
}

/** Number of places that may still be tried, over all comparisons. */
export type PatternBudget = { left: number }
const unbounded: PatternBudget = { left: Number.POSITIVE_INFINITY }

/** Returns the places where a match may end that begins at one of `starts`. */
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
    // Drops positions that are already known: further rounds from them find nothing new.
    ends = round < min ? next : new Set([...next].filter((at) => !found.has(at)))
    if (round >= min) for (const at of next) found.add(at)
  }
  return found
}

/** Returns the minimum length of a match. */
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

/** Typical log lines, including one without a digit and one without a letter. */
const lines = [
  '2026-11-25 10:42:07.113 200 0.013 10.0.0.7:443 - -',
  'worker pool: connection reset by peer',
  '{"level":"info","msg":"request done","ms":12}',
  'Nov 25 10:42:07 web-1 app[712]: started in 34 ms',
].map((line) => [...line])

/** Returns why a pattern is not sent to log servers; null if it is bounded and excludes lines. */
export function findPatternProblem(pattern: string): string | null {
  const node = parsePattern(pattern)
  if (typeof node === 'string') return node
  if (shortest(node) <= 1)
    return 'the pattern matches nearly every line, since one character is enough: write a word, or leave the pattern out'
  const all = lines.every((line) => endsOf(node, line, new Set(line.keys())).size > 0)
  return all ? 'the pattern matches every line: write a word that not all lines have, or leave it out' : null
}

/** Metric names that have nothing in common. */
const metrics = ['up', 'node_load1', 'http_requests_total', 'kube_pod_info', 'go_goroutines', 'ALERTS'].map((name) => [
  ...name,
])

/** Whether a regular expression over metric names selects few enough metrics. */
export function narrowsMetrics(pattern: string): boolean {
  const node = parsePattern(pattern)
  if (typeof node === 'string') return false
  return metrics.filter((name) => endsOf(node, name, new Set([0])).has(name.length)).length <= 1
}

/** Returns why an expression for the whole value of a label is not sent; null if it is bounded. */
export function findLabelPatternProblem(pattern: string): string | null {
  const node = parsePattern(pattern)
  return typeof node === 'string' ? node : null
}

/** Label values that have nothing in common, and that no list would contain. */
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
 * Whether a pattern is selective among the values of a label: it excludes the empty value and most
 * others, unlike `[^x]+` or `\w+`.
 */
export function narrowsLabels(pattern: string): boolean {
  const node = parsePattern(pattern)
  if (typeof node === 'string') return false
  const matched = values.filter((value) => endsOf(node, value, new Set([0])).has(value.length))
  return matched.length <= (values.length - 1) / 3 && !matched.some(({ length }) => length === 0)
}

/**
 * Compares the whole value of a label with a pattern. Null if the result is unknown, or the value
 * is too long.
 */
export type LabelPattern = (value: string, budget: PatternBudget) => boolean | null

/** Steps per character for parsing a pattern, which costs more than a comparison. */
const stepsToRead = 50
const longestCompared = 4_000
/** Matches values for which JavaScript and RE2 agree, whatever classes and flags a pattern has. */
const plainValue = /^[\n -~]*$/

/**
 * Compiles a pattern as Alertmanager reads it, anchored at both ends. The result is unknown where
 * it may differ from RE2.
 */
export function compileLabelPattern(pattern: string, budget: PatternBudget): LabelPattern {
  const unknown: LabelPattern = () => null
  budget.left -= pattern.length * stepsToRead
  // Returns unknown for flags that change the ends of a line, or the precedence.
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
