import type { QueryVerdict } from '../../domain/source.ts'
import { parseDuration } from '../../domain/source.ts'
import { bounds, type Duration, formatSeconds, readQuery } from './promql.ts'

/**
 * Which PromQL reaches a server: what parses, says which series it wants, and is bounded in time and points. Pure. Where code knows the
 * bounded form of a query, the verdict holds it.
 */
export type MetricQuery = { promql: string; windowSeconds: number; stepSeconds: number }

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
  const most = Math.max(2, Math.min(bounds.points, Math.floor(bounds.readSeconds / longest)))
  const points = Math.floor(windowSeconds / stepSeconds) + 1
  if (points <= most) return { ok: true }
  const step = formatSeconds(Math.ceil(windowSeconds / (most - 1)))
  return refuse(
    `${points} points of each series, where ${most} are read at most, since each reads ${formatSeconds(longest)}`,
    { step },
  )
}

/** The step that gives at most as many points as are read. */
export function chooseStep(promql: string, windowSeconds: number): number {
  const found = readQuery(promql)
  const longest = Math.max(300, ...(typeof found === 'string' ? [] : found.reads))
  const most = Math.max(2, Math.min(120, Math.floor(bounds.readSeconds / longest)))
  return Math.max(15, Math.ceil(windowSeconds / (most - 1)))
}

function refuse(reason: string, bounded: Record<string, string> | null = null): QueryVerdict {
  return { ok: false, reason, bounded }
}
