import type { SyntaxNode } from '@lezer/common'
import { parser } from '@prometheus-io/lezer-promql'
import type { QueryVerdict } from '../../domain/source.ts'
import { parseDuration } from '../../domain/source.ts'

/**
 * Which PromQL reaches a server: what parses, says which series it wants, and is bounded in time and points. Pure. Where code knows the
 * bounded form of a query, the verdict holds it.
 */
export type MetricQuery = { promql: string; windowSeconds: number; stepSeconds: number }

export const bounds = {
  characters: 2_000,
  selectors: 8,
  points: 240,
  windowSeconds: 31 * 86_400,
  rangeSeconds: 86_400,
  subquerySeconds: 6 * 3_600,
  subqueryStepSeconds: 60,
  regexCharacters: 200,
  /** Points times the longest range: what a server has to read for each series. */
  readSeconds: 240 * 3_600,
} as const

/** Labels of which one value names a resource: enough to say what is wanted where no metric is named. */
const resourceLabels = new Set([
  ...[
    'instance',
    'node',
    'nodename',
    'host',
    'hostname',
    'vm',
    'pod',
    'namespace',
    'deployment',
    'statefulset',
    'daemonset',
  ],
  ...['container', 'datname', 'service', 'shard', 'tenant', 'target', 'exported_instance'],
])

/** Judges a query. An error node anywhere refuses it: what was not understood is not sent. */
export function judgePromql({ promql, windowSeconds, stepSeconds }: MetricQuery): QueryVerdict {
  if (promql.length > bounds.characters) return refuse(`it is longer than ${bounds.characters} characters`)
  const found = readQuery(promql)
  if (typeof found === 'string') return refuse(found)
  if (windowSeconds > bounds.windowSeconds) {
    return refuse(`a window of ${formatSeconds(windowSeconds)} is longer than 31d`, { window: '31d' })
  }
  const [unnamed] = found.unnamed
  if (unnamed) {
    return refuse(`${unnamed} names no metric and no resource: add a metric's name, or a label such as instance="…"`)
  }
  if (found.selectors > bounds.selectors)
    return refuse(`it has more than ${bounds.selectors} selectors: ask in two queries`)
  const [long] = found.ranges.filter(({ seconds, most }) => seconds > most)
  if (long) {
    const most = formatSeconds(long.most)
    const bounded = `${promql.slice(0, long.from)}${most}${promql.slice(long.to)}`
    return refuse(`a range of ${promql.slice(long.from, long.to)} is longer than ${most}`, { promql: bounded })
  }
  return judgePoints({ promql, windowSeconds, stepSeconds }, found.ranges)
}

function judgePoints({ windowSeconds, stepSeconds }: MetricQuery, ranges: readonly Range[]): QueryVerdict {
  if (windowSeconds === 0) return { ok: true }
  const longest = Math.max(300, ...ranges.map(({ seconds }) => seconds))
  const most = Math.max(2, Math.min(bounds.points, Math.floor(bounds.readSeconds / longest)))
  const points = Math.floor(windowSeconds / stepSeconds) + 1
  if (points <= most) return { ok: true }
  const step = formatSeconds(Math.ceil(windowSeconds / (most - 1)))
  return refuse(
    `${points} points of each series, where ${most} are read at most with a range of ${formatSeconds(longest)}`,
    { step },
  )
}

/** The step that gives at most as many points as are read. */
export function chooseStep(promql: string, windowSeconds: number): number {
  const found = readQuery(promql)
  const longest = Math.max(300, ...(typeof found === 'string' ? [] : found.ranges.map(({ seconds }) => seconds)))
  const most = Math.max(2, Math.min(120, Math.floor(bounds.readSeconds / longest)))
  return Math.max(15, Math.ceil(windowSeconds / (most - 1)))
}

type Range = { from: number; to: number; seconds: number; most: number }
type Found = { selectors: number; unnamed: string[]; ranges: Range[] }

/** What a query reads, or why it cannot be told. */
function readQuery(promql: string): Found | string {
  const tree = parser.parse(promql)
  const found: Found = { selectors: 0, unnamed: [], ranges: [] }
  let problem: string | null = null
  tree.iterate({
    enter({ type, node, from, to }) {
      if (problem !== null) return false
      if (type.isError) problem = `it does not parse at character ${from + 1}`
      else if (type.name === 'LineComment') problem = 'it holds a comment: leave it out'
      else if (type.name === 'VectorSelector') readSelector(node, promql, found)
      else if (type.name === 'UnquotedLabelMatcher' || type.name === 'QuotedLabelMatcher')
        problem = readMatcher(promql.slice(from, to))
      else if (type.name === 'MatrixSelector') problem = readRange(node, promql, bounds.rangeSeconds, found)
      else if (type.name === 'SubqueryExpr') problem = readSubquery(node, promql, found)
      else if (/(^|Duration)Arithmetic|DurationStep|DurationMin|DurationMax/.test(type.name))
        problem = 'a computed duration is not read: write it out'
      return undefined
    },
  })
  if (problem !== null) return problem
  return found.selectors === 0 ? 'it reads no metric' : found
}

function readSelector(node: SyntaxNode, promql: string, found: Found): void {
  found.selectors += 1
  const text = promql.slice(node.from, node.to)
  const matchers = node.getChild('LabelMatchers')
  const body = matchers ? promql.slice(matchers.from, matchers.to) : ''
  if (node.getChild('Identifier') || /[{,]\s*("[^"\\]+"|'[^'\\]+')\s*[,}]/.test(body)) return
  const equal = matchers ? listEqual(matchers, promql) : []
  if (!equal.some((label) => label === '__name__' || resourceLabels.has(label))) found.unnamed.push(text.slice(0, 80))
}

/** Labels that have to have one value, which is not the empty one. */
const listEqual = (matchers: SyntaxNode, promql: string): string[] =>
  listMatchers(matchers, promql).map(([label]) => label)

function listMatchers(matchers: SyntaxNode, promql: string): [label: string, value: string][] {
  const found: [string, string][] = []
  for (let child = matchers.firstChild; child; child = child.nextSibling) {
    const text = promql.slice(child.from, child.to)
    const [, label = '', value = ''] = /^\s*"?([\w.:]+)"?\s*=\s*["'`](.+)["'`]$/s.exec(text) ?? []
    if (label !== '' && value !== '') found.push([label, value])
  }
  return found
}

/** Labels that every selector of a query fixes to one value: what the query is about. */
export function listFixedLabels(promql: string): Record<string, string> {
  const fixed: Record<string, string>[] = []
  parser.parse(promql).iterate({
    enter({ type, node }) {
      if (type.name !== 'VectorSelector') return
      const matchers = node.getChild('LabelMatchers')
      fixed.push(matchers ? Object.fromEntries(listMatchers(matchers, promql)) : {})
    },
  })
  const [first = {}, ...rest] = fixed
  return Object.fromEntries(
    Object.entries(first).filter(([label, value]) => rest.every((each) => each[label] === value)),
  )
}

function readMatcher(text: string): string | null {
  const isRegex = /^\s*"?[^=!~]+"?\s*[=!]~/.test(text)
  return isRegex && text.length > bounds.regexCharacters
    ? `a regular expression is longer than ${bounds.regexCharacters} characters`
    : null
}

function readRange(node: SyntaxNode, promql: string, most: number, found: Found): string | null {
  const duration = node.getChild('DurationExpr')
  const seconds = duration ? parseDuration(promql.slice(duration.from, duration.to)) : null
  if (!duration || seconds === null) return 'the length of a range cannot be read: write it as 5m'
  found.ranges.push({ from: duration.from, to: duration.to, seconds, most })
  return null
}

function readSubquery(node: SyntaxNode, promql: string, found: Found): string | null {
  const [, step] = node.getChildren('DurationExpr')
  if (isInside(node, 'SubqueryExpr')) return 'a subquery inside a subquery is not read'
  const stepSeconds = step ? parseDuration(promql.slice(step.from, step.to)) : null
  if (stepSeconds === null || stepSeconds < bounds.subqueryStepSeconds)
    return 'a subquery takes a step of a minute at least, as [1h:1m]'
  return readRange(node, promql, bounds.subquerySeconds, found)
}

function isInside(node: SyntaxNode, name: string): boolean {
  for (let parent = node.parent; parent; parent = parent.parent) if (parent.name === name) return true
  return false
}

function refuse(reason: string, bounded: Record<string, string> | null = null): QueryVerdict {
  return { ok: false, reason, bounded }
}

/** `90s`, `15m`, `1h`, `1d`: the longest unit that leaves no rest. */
function formatSeconds(seconds: number): string {
  for (const [unit, length] of [
    ['d', 86_400],
    ['h', 3_600],
    ['m', 60],
  ] as const)
    if (seconds >= length && seconds % length === 0) return `${seconds / length}${unit}`
  return `${seconds}s`
}
