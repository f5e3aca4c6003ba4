import { parseDuration } from '../../domain/source.ts'
import { findPatternProblem } from './pattern.ts'
import { judgePromql } from './promql.ts'

/**
 * Judges queries in an address, as `curl` sends them. PromQL is judged as for `query_metrics`, with
 * window and step; only plain LogQL is allowed. Anything else needs approval.
 */

const promqlPath =
  /^\/(?:prometheus\/|select\/[\d:]+\/prometheus\/)?api\/v1\/(query|query_range|series|labels|label\/\w+\/values)$/
const logqlPath = /^\/loki\/api\/v1\/(query|query_range)$/

/** Whether a request to this path may hold a query language. */
export const holdsLanguage = (path: string): boolean => promqlPath.test(path) || logqlPath.test(path)

/** Returns why a request asks for too much; null if it does not, or has no known query language. */
export function findQueryProblem(path: string, query: string): string | null {
  const [, metrics] = promqlPath.exec(path) ?? []
  const [, logs] = logqlPath.exec(path) ?? []
  if (metrics === undefined && logs === undefined) return null
  const given = readParameters(query)
  if (given === null) return 'has a query that cannot be read'
  return metrics === undefined ? findLogqlProblem(given, logs!) : findMetricsProblem(given, metrics)
}

type Parameters = ReadonlyMap<string, readonly string[]>

function readParameters(query: string): Parameters | null {
  const found = new Map<string, string[]>()
  try {
    for (const part of query.split('&').filter((each) => each !== '')) {
      const [name = '', ...rest] = part.split('=').map((text) => decodeURIComponent(text.replaceAll('+', ' ')))
      found.set(name, [...(found.get(name) ?? []), rest.join('=')])
    }
  } catch {
    return null
  }
  // Refuses repeated parameters, about which servers disagree.
  return [...found].every(([name, values]) => values.length === 1 || name === 'match[]') ? found : null
}

function findMetricsProblem(given: Parameters, path: string): string | null {
  const one = (name: string) => given.get(name)?.[0]
  if (path === 'query' || path === 'query_range') {
    const promql = one('query')
    // Accepts a request without a query, which gets no result.
    if (promql === undefined) return null
    const times =
      path === 'query' ? { windowSeconds: 0, stepSeconds: 60 } : readTimes(one('start'), one('end'), one('step'))
    if (times === null) return 'asks for a window that cannot be read: give start and end in seconds, and a step'
    const verdict = judgePromql({ promql, ...times })
    return verdict.ok ? null : `asks for metrics without a bound: ${verdict.reason}`
  }
  const matches = given.get('match[]') ?? []
  if (path === 'series' && matches.length === 0) return 'asks for all series: give match[]'
  for (const promql of matches) {
    const verdict = judgePromql({ promql, windowSeconds: 0, stepSeconds: 60 })
    if (!verdict.ok) return `asks for series without a bound: ${verdict.reason}`
  }
  return null
}

/** Reads seconds since 1970, or a time that all servers read alike. */
function readTime(text: string | undefined): number | null {
  if (text === undefined) return null
  if (/^\d{1,10}(?:\.\d{1,9})?$/.test(text)) return Number(text)
  const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/.test(text)
    ? Date.parse(text)
    : Number.NaN
  return Number.isNaN(at) ? null : at / 1_000
}

function readTimes(start?: string, end?: string, step?: string): { windowSeconds: number; stepSeconds: number } | null {
  const [from, until, apart] = [readTime(start), readTime(end), step === undefined ? null : parseDuration(step)]
  if (from === null || until === null || apart === null || until < from || apart < 1) return null
  return { windowSeconds: until - from, stepSeconds: apart }
}

const maxLines = 2_000
const maxSeconds = 86_400
const maxPoints = 240

const text = '"(?:[^"\\\\]|\\\\.)*"|`[^`]*`'
const stream = `\\{(\\s*\\w+\\s*(?:=~|!~|!=|=)\\s*(?:${text})(?:\\s*,\\s*\\w+\\s*(?:=~|!~|!=|=)\\s*(?:${text}))*\\s*)\\}`
const lines = `((?:\\s*(?:\\|=|!=|\\|~|!~)\\s*(?:${text}))*)((?:\\s*\\|\\s*(?:json|logfmt))*)`
const logs = new RegExp(`^\\s*${stream}${lines}\\s*$`)
const counted = new RegExp(
  `^\\s*(?:(?:sum|count|max|min|avg)\\s*(?:(?:by|without)\\s*\\([\\w\\s,]*\\)\\s*)?\\()?\\s*(?:rate|count_over_time|bytes_rate|bytes_over_time)\\s*\\(\\s*${stream}${lines}\\s*\\[([0-9smhd]+)\\]\\s*\\)\\s*\\)?\\s*(?:(?:by|without)\\s*\\([\\w\\s,]*\\)\\s*)?$`,
)

/**
 * Judges LogQL: a stream with an equality on a label, filters by words, and their counts. Without
 * limit and start Loki returns 100 lines of an hour.
 */
function findLogqlProblem(given: Parameters, path: string): string | null {
  const one = (name: string) => given.get(name)?.[0]
  const logql = one('query')
  if (logql === undefined) return null
  const [, labels = '', filters = '', , range] = logs.exec(logql) ?? counted.exec(logql) ?? []
  if (labels === '')
    return 'asks for logs in LogQL that is refused: give a stream, filters by words, or a count of these lines'
  if (!/(?:^|,)\s*\w+\s*=\s*["`](?!["`])/.test(labels))
    return 'asks for logs without a label of one value, as {app="api"}'
  for (const [, pattern = ''] of filters.matchAll(/\|~\s*["`]((?:[^"`\\]|\\.)*)["`]/g)) {
    const problem = findPatternProblem(pattern.replaceAll('\\\\', '\\'))
    if (problem) return `asks for logs by a refused pattern: ${problem}`
  }
  if (range !== undefined && (parseDuration(range) ?? Number.POSITIVE_INFINITY) > maxSeconds)
    return 'counts logs of more than a day'
  const limit = one('limit')
  if (limit !== undefined && !(/^\d{1,4}$/.test(limit) && Number(limit) <= maxLines && Number(limit) > 0))
    return `asks for more than ${maxLines} lines`
  return path === 'query' ? null : findWindowProblem(one, range !== undefined)
}

function findWindowProblem(one: (name: string) => string | undefined, isCount: boolean): string | null {
  const [start, end, since, step] = [one('start'), one('end'), one('since'), one('step')]
  const nanoseconds = (time: string | undefined) => (time && /^\d{19}$/.test(time) ? time.slice(0, 10) : time)
  const window =
    since !== undefined
      ? parseDuration(since)
      : start === undefined
        ? 3_600
        : toWindow(readTime(nanoseconds(start)), readTime(nanoseconds(end)))
  if (window === null || (start !== undefined && since !== undefined))
    return 'asks for a window of logs that cannot be read: give start and end'
  if (start === undefined && end !== undefined && since === undefined) return null
  if (window > maxSeconds) return 'asks for more than a day of logs'
  const apart = step === undefined ? null : parseDuration(step)
  return isCount && step !== undefined && (apart === null || window / apart > maxPoints)
    ? `asks for more than ${maxPoints} counts`
    : null
}

const toWindow = (from: number | null, until: number | null): number | null =>
  from === null || until === null || until < from ? null : until - from
