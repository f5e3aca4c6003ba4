import type { SyntaxNode } from '@lezer/common'
import { parser } from '@prometheus-io/lezer-promql'
import { parseDuration, type QueryVerdict } from '../../domain/source.ts'
import { findLengthening } from './lengthening.ts'
import { describeForeign } from './metricsql.ts'
import { narrowsMetrics } from './pattern.ts'

/** Limits for a PromQL query, read from its syntax tree: its series, and the range of each. */

export const bounds = {
  characters: 2_000,
  points: 240,
  windowSeconds: 31 * 86_400,
  rangeSeconds: 86_400,
  /**
   * Longest range of a query for one moment, if the metric has an equality on a label: enough for
   * the objective of a month.
   */
  momentRangeSeconds: 31 * 86_400,
  subquerySeconds: 6 * 3_600,
  subqueryStepSeconds: 60,
  regexCharacters: 200,
  /**
   * Number of points times the longest range: the seconds of samples that a server reads for each
   * series.
   */
  readSeconds: 240 * 3_600,
  /** The most seconds of samples for all selectors of a query together. */
  sumSeconds: 8 * 240 * 3_600,
} as const

/**
 * Labels that name a resource if they must equal a value, which is selective even without a metric.
 */
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

/**
 * A duration that is too long, or a subquery without a step, with the form that is within limits.
 */
type Duration = { from: number; to: number; reason: string; bounded: string }
/** `reads`: seconds of each series that are read for one point, by selector. */
type Found = { isComputed: boolean; isOfMoment: boolean; unnamed: string[]; durations: Duration[]; reads: number[] }

/** Returns what a query reads, or why that is unknown. */
function readQuery(promql: string): Found | string {
  const tree = parser.parse(promql)
  const found: Found = { isComputed: false, isOfMoment: false, unnamed: [], durations: [], reads: [] }
  let problem: string | null = null
  tree.iterate({
    enter({ type, node, from, to }) {
      if (problem !== null) return false
      if (type.isError) problem = `the query has a syntax error at character ${from + 1}`
      // Refuses a carriage return in a comment, where a server ends the comment and reads the rest.
      else if (type.name === 'LineComment' && /\r./s.test(promql.slice(from, to)))
        problem = 'a comment has a carriage return'
      else if (type.name === 'VectorSelector') readSelector(node, promql, found)
      else if (type.name === 'UnquotedLabelMatcher' || type.name === 'QuotedLabelMatcher')
        problem = readMatcher(promql.slice(from, to))
      else if (type.name === 'MatrixSelector') problem = readMatrix(node, promql, found)
      else if (type.name === 'SubqueryExpr') problem = readSubquery(node, promql, found)
      else if (type.name === 'FunctionCall') {
        found.isComputed = true
        problem = findLengthening(node, promql)
      } else if (/(^|Duration)Arithmetic|DurationStep|DurationMin|DurationMax/.test(type.name))
        problem = 'a computed duration is refused: write the duration as a number with a unit'
      return undefined
    },
  })
  if (problem !== null) return problem
  return found.reads.length === 0 && !found.isComputed ? 'the query reads no metric' : found
}

function readSelector(node: SyntaxNode, promql: string, found: Found): void {
  // Counts a selector without a range; one under a range is counted with the range.
  if (node.parent?.name !== 'MatrixSelector') {
    const around = findAround(node, 'SubqueryExpr')
    found.reads.push(around ? Math.max(lookbackSeconds, secondsOf(around, promql)) : lookbackSeconds)
  }
  const text = promql.slice(node.from, node.to)
  const matchers = node.getChild('LabelMatchers')
  if (node.getChild('Identifier') || (matchers && hasQuotedName(matchers))) return
  const equal = matchers ? listEqual(matchers, promql) : []
  if (equal.some((label) => label === '__name__' || resourceLabels.has(label))) return
  // Accepts `{__name__=~"http_.*", job="api"}`: some metrics of one resource.
  const [, , family] = /(^|[{,])\s*__name__\s*=~\s*["'`]([^"'`\\]+)["'`]\s*[,}]/.exec(text) ?? []
  if (equal.length === 0 || family === undefined || !narrowsMetrics(family)) found.unnamed.push(text.slice(0, 80))
}

/** Seconds for which a server searches back for the newest value. */
const lookbackSeconds = 300

/** Whether a selector names a metric and also has an equality on a label. */
function isNarrow(node: SyntaxNode | null, promql: string): boolean {
  const matchers = node?.getChild('LabelMatchers')
  if (!node || !matchers) return false
  const equal = listEqual(matchers, promql)
  const hasName = node.getChild('Identifier') !== null || hasQuotedName(matchers) || equal.includes('__name__')
  return hasName && equal.some((label) => label !== '__name__')
}

/** Whether a metric is named in quotes, `{"http_requests_total"}`; values are other nodes. */
const hasQuotedName = (matchers: SyntaxNode): boolean =>
  matchers.getChildren('QuotedLabelName').some(({ from, to }) => to - from > 2)

/** Lists the labels that must equal a value other than the empty one. */
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

/** Lists the labels that every selector fixes to one value, which are the subject of the query. */
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
  if (/=.*(?:\$\{?[A-Za-z_]|\[\[\w+\]\])/s.test(text)) return 'a label has a Grafana variable: write its value'
  const isRegex = /^\s*"?[^=!~]+"?\s*[=!]~/.test(text)
  return isRegex && text.length > bounds.regexCharacters
    ? `a regular expression is longer than ${bounds.regexCharacters} characters`
    : null
}

/** Returns a range in seconds, or why it is over its limit or unknown. */
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

/** Reads a range with its limit. A range inside a subquery is read once per step. */
function readMatrix(node: SyntaxNode, promql: string, found: Found): string | null {
  const around = findAround(node, 'SubqueryExpr')
  const times = around ? countSteps(around, promql) : 1
  const max = Math.floor(bounds.readSeconds / 2 / times / 60) * 60
  const isOfMoment = !around && isNarrow(node.getChild('VectorSelector'), promql)
  const longest = isOfMoment ? bounds.momentRangeSeconds : Math.min(bounds.rangeSeconds, max)
  const seconds = readRange(node, promql, longest, found)
  if (typeof seconds === 'string') return seconds
  found.isOfMoment ||= seconds > bounds.rangeSeconds
  found.reads.push(Math.max(lookbackSeconds, seconds * times))
  return null
}

const durationsOf = (subquery: SyntaxNode, promql: string) =>
  subquery.getChildren('DurationExpr').map(({ from, to }) => parseDuration(promql.slice(from, to)))

/** Returns the range of a subquery in seconds, at most its limit. */
const secondsOf = (subquery: SyntaxNode, promql: string): number =>
  Math.min(durationsOf(subquery, promql)[0] ?? 0, bounds.subquerySeconds)

/** Counts the evaluations of a subquery. */
function countSteps(subquery: SyntaxNode, promql: string): number {
  const step = Math.max(durationsOf(subquery, promql)[1] ?? 0, bounds.subqueryStepSeconds)
  return Math.max(1, Math.ceil(secondsOf(subquery, promql) / step))
}

function readSubquery(node: SyntaxNode, promql: string, found: Found): string | null {
  const [range, step] = node.getChildren('DurationExpr')
  if (findAround(node, 'SubqueryExpr')) return 'a subquery inside a subquery is refused'
  const seconds = readRange(node, promql, bounds.subquerySeconds, found)
  if (typeof seconds === 'string') return seconds
  const reason = 'a subquery takes a step of a minute at least, as [1h:1m]'
  const stepSeconds = step ? parseDuration(promql.slice(step.from, step.to)) : 0
  if (stepSeconds === null) return reason
  if (stepSeconds >= bounds.subqueryStepSeconds) return null
  // Inserts a missing step after the colon.
  const at = step ?? { from: promql.indexOf(':', range?.to) + 1, to: promql.indexOf(':', range?.to) + 1 }
  found.durations.push({ from: at.from, to: at.to, reason, bounded: formatSeconds(bounds.subqueryStepSeconds) })
  return null
}

function findAround(node: SyntaxNode, name: string): SyntaxNode | null {
  for (let parent = node.parent; parent; parent = parent.parent) if (parent.name === name) return parent
  return null
}

/** Formats `90s`, `15m`, `1h`, `1d`: the largest unit without a remainder. */
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
 * Judges PromQL before it is sent: it must parse, name its series, and be bounded in time and
 * points. Pure. If code knows a bounded form, the verdict contains it.
 */
type MetricQuery = { promql: string; windowSeconds: number; stepSeconds: number }

/**
 * Judges a query. An error node anywhere refuses the query, because unknown syntax is not sent. The
 * bounded form corrects all parts of the query at once.
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
    windowSeconds: window === 'now' ? 0 : (window && parseDuration(window)) || query.windowSeconds,
    stepSeconds: (step && parseDuration(step)) || query.stepSeconds,
  }
}

function judgeOnce({ promql, windowSeconds, stepSeconds }: MetricQuery): QueryVerdict {
  if (promql.length > bounds.characters) return refuse(`the query is longer than ${bounds.characters} characters`)
  const found = readQuery(promql)
  if (typeof found === 'string') {
    const foreign = describeForeign(promql, stepSeconds)
    return foreign ? refuse(foreign.reason, foreign.form === null ? null : { promql: foreign.form }) : refuse(found)
  }
  if (windowSeconds > bounds.windowSeconds) {
    return refuse(`a window of ${formatSeconds(windowSeconds)} is longer than 31d`, { window: '31d' })
  }
  const [unnamed] = found.unnamed
  if (unnamed) {
    return refuse(`${unnamed} names no metric and no resource: add a metric's name, or a label such as instance="…"`)
  }
  const [wrong] = found.durations
  if (wrong) return refuse(wrong.reason, { promql: replaceAll(promql, found.durations) })
  if (found.isOfMoment && windowSeconds > 0)
    return refuse(`a range longer than ${formatSeconds(bounds.rangeSeconds)} needs an instant query`, {
      window: 'now',
    })
  const sum = sumOf(found.reads)
  if (sum > bounds.sumSeconds)
    return refuse(
      `the ${found.reads.length} selectors read more than ${formatSeconds(bounds.sumSeconds)} together: ask in two queries`,
    )
  return judgePoints({ promql, windowSeconds, stepSeconds }, found.reads)
}

/** Replaces each of these parts of the text. */
function replaceAll(text: string, parts: readonly Duration[]): string {
  return [...parts]
    .sort((left, right) => right.from - left.from)
    .reduce((whole, { from, to, bounded }) => `${whole.slice(0, from)}${bounded}${whole.slice(to)}`, text)
}

function judgePoints({ windowSeconds, stepSeconds }: MetricQuery, reads: readonly number[]): QueryVerdict {
  if (windowSeconds === 0) return { ok: true }
  const max = maxPoints(reads, bounds.points)
  const points = Math.floor(windowSeconds / stepSeconds) + 1
  if (points <= max) return { ok: true }
  // Refuses the query even for two points, if these exceed the limit for all selectors.
  if (2 * sumOf(reads) > bounds.sumSeconds)
    return refuse('the query reads too much for a range query', { window: 'now' })
  const longest = formatSeconds(Math.max(lookbackSeconds, ...reads))
  const reason = `${points} points a series, over the limit of ${max}: ${reads.length} selectors read up to ${longest} each`
  return refuse(reason, { step: formatSeconds(Math.ceil(windowSeconds / (max - 1))) })
}

const sumOf = (reads: readonly number[]): number => reads.reduce((sum, seconds) => sum + seconds, 0)

function maxPoints(reads: readonly number[], most: number): number {
  const longest = Math.max(lookbackSeconds, ...reads)
  const ofAll = Math.floor(bounds.sumSeconds / Math.max(longest, sumOf(reads)))
  return Math.max(2, Math.min(most, Math.floor(bounds.readSeconds / longest), ofAll))
}

/** Returns a step with which the number of points stays within the limit. */
export function chooseStep(promql: string, windowSeconds: number): number {
  const found = readQuery(promql)
  const max = maxPoints(typeof found === 'string' ? [] : found.reads, 120)
  return Math.max(15, Math.ceil(windowSeconds / (max - 1)))
}

function refuse(reason: string, bounded: Record<string, string> | null = null): QueryVerdict {
  return { ok: false, reason, bounded }
}
