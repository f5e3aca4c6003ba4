import type { SyntaxNode } from '@lezer/common'
import { parser } from '@prometheus-io/lezer-promql'
import { parseDuration, type QueryVerdict } from '../../domain/source.ts'

/** What a text of PromQL reads, told from its tree: which series, and how much of each. */

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
  'container',
  'datname',
  'service',
  'shard',
  'tenant',
  'target',
  'exported_instance',
])

/** A length of time that is too long, or the missing step of a subquery, and what stands there in the bounded form. */
type Duration = { from: number; to: number; reason: string; bounded: string }
/** `reads`: how many seconds of each series one point reads, range by range. */
type Found = { selectors: number; unnamed: string[]; durations: Duration[]; reads: number[] }

/** What a query reads, or why it cannot be told. */
function readQuery(promql: string): Found | string {
  const tree = parser.parse(promql)
  const found: Found = { selectors: 0, unnamed: [], durations: [], reads: [] }
  let problem: string | null = null
  tree.iterate({
    enter({ type, node, from, to }) {
      if (problem !== null) return false
      if (type.isError) problem = `it does not parse at character ${from + 1}`
      else if (type.name === 'LineComment') problem = 'it holds a comment: leave it out'
      else if (type.name === 'VectorSelector') readSelector(node, promql, found)
      else if (type.name === 'UnquotedLabelMatcher' || type.name === 'QuotedLabelMatcher')
        problem = readMatcher(promql.slice(from, to))
      else if (type.name === 'MatrixSelector') problem = readMatrix(node, promql, found)
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
  if (node.getChild('Identifier') || (matchers && hasQuotedName(matchers))) return
  const equal = matchers ? listEqual(matchers, promql) : []
  if (!equal.some((label) => label === '__name__' || resourceLabels.has(label))) found.unnamed.push(text.slice(0, 80))
}

/** `{"http_requests_total"}`: the tree says which text is a metric, since a value may hold anything. */
const hasQuotedName = (matchers: SyntaxNode): boolean =>
  matchers.getChildren('QuotedLabelName').some(({ from, to }) => to - from > 2)

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

/** The seconds of a range as they are within its bound, or why they cannot be told. */
function readRange(node: SyntaxNode, promql: string, max: number, found: Found): number | string {
  const duration = node.getChild('DurationExpr')
  const seconds = duration ? parseDuration(promql.slice(duration.from, duration.to)) : null
  if (!duration || seconds === null) return 'the length of a range cannot be read: write it as 5m'
  if (seconds > max) {
    const [text, bounded] = [promql.slice(duration.from, duration.to), formatSeconds(max)]
    const inside = findAround(node, 'SubqueryExpr') ? ' in each step of its subquery' : ''
    const reason = `a range of ${text} is longer than ${bounded}${inside}`
    found.durations.push({ from: duration.from, to: duration.to, reason, bounded })
  }
  return Math.min(seconds, max)
}

/** A range inside a subquery is read once for each of its steps. */
function readMatrix(node: SyntaxNode, promql: string, found: Found): string | null {
  const around = findAround(node, 'SubqueryExpr')
  const times = around ? countSteps(around, promql) : 1
  const max = Math.floor(bounds.readSeconds / 2 / times / 60) * 60
  const seconds = readRange(node, promql, Math.min(bounds.rangeSeconds, max), found)
  if (typeof seconds === 'string') return seconds
  found.reads.push(seconds * times)
  return null
}

/** How often a subquery asks what it is about, as far as it is within its bounds. */
function countSteps(subquery: SyntaxNode, promql: string): number {
  const [range, step] = subquery
    .getChildren('DurationExpr')
    .map(({ from, to }) => parseDuration(promql.slice(from, to)))
  const seconds = Math.min(range ?? 0, bounds.subquerySeconds)
  return Math.max(1, Math.ceil(seconds / Math.max(step ?? 0, bounds.subqueryStepSeconds)))
}

function readSubquery(node: SyntaxNode, promql: string, found: Found): string | null {
  const [range, step] = node.getChildren('DurationExpr')
  if (findAround(node, 'SubqueryExpr')) return 'a subquery inside a subquery is not read'
  const seconds = readRange(node, promql, bounds.subquerySeconds, found)
  if (typeof seconds === 'string') return seconds
  found.reads.push(seconds)
  const reason = 'a subquery takes a step of a minute at least, as [1h:1m]'
  const stepSeconds = step ? parseDuration(promql.slice(step.from, step.to)) : 0
  if (stepSeconds === null) return reason
  if (stepSeconds >= bounds.subqueryStepSeconds) return null
  // Without a step the place for it is behind the colon.
  const at = step ?? { from: promql.indexOf(':', range?.to) + 1, to: promql.indexOf(':', range?.to) + 1 }
  found.durations.push({ from: at.from, to: at.to, reason, bounded: formatSeconds(bounds.subqueryStepSeconds) })
  return null
}

function findAround(node: SyntaxNode, name: string): SyntaxNode | null {
  for (let parent = node.parent; parent; parent = parent.parent) if (parent.name === name) return parent
  return null
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

/**
 * Which PromQL reaches a server: what parses, says which series it wants, and is bounded in time and points. Pure. Where code knows the
 * bounded form of a query, the verdict holds it.
 */
type MetricQuery = { promql: string; windowSeconds: number; stepSeconds: number }

/**
 * Judges a query. An error node anywhere refuses it: what was not understood is not sent. The bounded form puts everything right that can be
 * put right at once.
 */
export function judgePromql(query: MetricQuery): QueryVerdict {
  const verdict = judgeOnce(query)
  if (verdict.ok || verdict.bounded === null) return verdict
  let form = verdict.bounded
  for (let round = 0; round < 3; round += 1) {
    const next = judgeOnce(applyForm(query, form))
    if (next.ok) return { ...verdict, bounded: form }
    if (next.bounded === null) return next
    form = { ...form, ...next.bounded }
  }
  return { ...verdict, bounded: null }
}

function applyForm(query: MetricQuery, { promql, window, step }: Record<string, string>): MetricQuery {
  return {
    promql: promql ?? query.promql,
    windowSeconds: (window && parseDuration(window)) || query.windowSeconds,
    stepSeconds: (step && parseDuration(step)) || query.stepSeconds,
  }
}

function judgeOnce({ promql, windowSeconds, stepSeconds }: MetricQuery): QueryVerdict {
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
  const [wrong] = found.durations
  if (wrong) return refuse(wrong.reason, { promql: replaceAll(promql, found.durations) })
  return judgePoints({ promql, windowSeconds, stepSeconds }, found.reads)
}

/** The text with each of these parts replaced, which come in their order. */
function replaceAll(text: string, parts: readonly Duration[]): string {
  return [...parts]
    .sort((left, right) => right.from - left.from)
    .reduce((whole, { from, to, bounded }) => `${whole.slice(0, from)}${bounded}${whole.slice(to)}`, text)
}

function judgePoints({ windowSeconds, stepSeconds }: MetricQuery, reads: readonly number[]): QueryVerdict {
  if (windowSeconds === 0) return { ok: true }
  const longest = Math.max(300, ...reads)
  const max = Math.max(2, Math.min(bounds.points, Math.floor(bounds.readSeconds / longest)))
  const points = Math.floor(windowSeconds / stepSeconds) + 1
  if (points <= max) return { ok: true }
  const step = formatSeconds(Math.ceil(windowSeconds / (max - 1)))
  return refuse(
    `${points} points of each series, where ${max} are read at most, since each reads ${formatSeconds(longest)}`,
    { step },
  )
}

/** The step that gives at most as many points as are read. */
export function chooseStep(promql: string, windowSeconds: number): number {
  const found = readQuery(promql)
  const longest = Math.max(300, ...(typeof found === 'string' ? [] : found.reads))
  const max = Math.max(2, Math.min(120, Math.floor(bounds.readSeconds / longest)))
  return Math.max(15, Math.ceil(windowSeconds / (max - 1)))
}

function refuse(reason: string, bounded: Record<string, string> | null = null): QueryVerdict {
  return { ok: false, reason, bounded }
}
