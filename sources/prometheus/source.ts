import { z } from 'zod'
import { describeItems, toWords } from '../../domain/say.ts'
import { parseDuration } from '../../domain/source.ts'
import { chooseStep, judgePromql, listFixedLabels } from '../../safety/query/promql.ts'
import { connectHttp } from '../connect-http.ts'
import { type AskSource, defineSourceTool, fitSummary, maxSummaryBytes, SourceError, type SourceKind } from '../kind.ts'
import { quotePattern, quoteText } from '../logs/logs.ts'
import { findDoubt } from './absence.ts'
import { groupNames } from './name-groups.ts'
import { queryInstant } from './query.ts'
import { findRule, listResources, readData } from './rule.ts'
import { saySeries } from './summary.ts'
import { readMoment, readWindow } from './window.ts'

/**
 * Reads servers with Prometheus' HTTP API
 * (https://prometheus.io/docs/prometheus/latest/querying/api/): Prometheus, VictoriaMetrics,
 * Thanos, Mimir. The source's address includes a path before the API's own path.
 */

const duration = z.string().max(20)
const queryInput = z.strictObject({
  source: z.string().max(40).optional().describe('where there are several'),
  promql: z.string().min(1).max(2_000).describe('each selector names a metric, or a resource as instance="web-1:9100"'),
  window: duration.default('1h').describe('as 30m, 6h, 2d; "now": one value each'),
  step: duration.optional().describe('as 1m'),
  until: z.iso.datetime().optional().describe('RFC 3339; default now'),
})
type QueryInput = z.output<typeof queryInput>

function readTimes({ promql, window, step }: QueryInput): { windowSeconds: number; stepSeconds: number } | string {
  const windowSeconds = window === 'now' ? 0 : parseDuration(window)
  if (windowSeconds === null) return `the window ${JSON.stringify(window)} cannot be read: write 30m, 6h or now`
  const stepSeconds = step === undefined ? chooseStep(promql, windowSeconds) : parseDuration(step)
  if (stepSeconds === null || stepSeconds < 1)
    return `the step ${JSON.stringify(step)} cannot be read: write 1m, or leave it out`
  return { windowSeconds, stepSeconds }
}

const queryMetrics = defineSourceTool({
  name: 'query_metrics',
  description:
    'Query metrics with PromQL: what each series did, when its level changed, how it was a day and a week before.',
  input: queryInput,
  judge(args) {
    const times = readTimes(args)
    return typeof times === 'string' ? { ok: false, reason: times, bounded: null } : judgePromql({ ...args, ...times })
  },
  labels: ({ promql }) => listFixedLabels(promql),
  say: saySeries,
  async read(ask, args, { nowMs }) {
    const times = readTimes(args)
    if (typeof times === 'string') throw new SourceError('REJECTED', times)
    const untilMs = args.until ? Math.min(Date.parse(args.until), nowMs) : nowMs
    const { windowSeconds, stepSeconds } = times
    return windowSeconds === 0
      ? await readMoment(ask, args.promql, untilMs)
      : await readWindow(ask, { promql: args.promql, window: args.window, windowSeconds, stepSeconds, untilMs })
  },
})

const describeInput = z.strictObject({
  source: z.string().max(40).optional().describe('where there are several'),
  labels: z
    .record(z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]*$/), z.string().min(1).max(200))
    .refine((labels) => Object.keys(labels).length > 0 && Object.keys(labels).length <= 5, 'takes one to five labels')
    .describe('as { "instance": "web-1:9100" }'),
  text: z.string().max(60).optional().describe('part of the name'),
})

function toMatchers(labels: Record<string, string>, text?: string): string {
  const matchers = Object.entries(labels).map(([name, value]) => `${name}=${quoteText(value)}`)
  const named = text ? [`__name__=~${quoteText(`.*${quotePattern(text)}.*`)}`] : []
  return `{${[...matchers, ...named].join(',')}}`
}

/** Writes a query that counts the series of each metric with these labels. */
const toCountQuery = (labels: Record<string, string>): string => `count by (__name__) (${toMatchers(labels)})`

const describeMetrics = defineSourceTool({
  name: 'describe_metrics',
  isSituational: true,
  description: 'Names and types of the metrics about a resource, for query_metrics.',
  input: describeInput,
  judge: ({ labels }) => judgePromql({ promql: toCountQuery(labels), windowSeconds: 0, stepSeconds: 1 }),
  labels: ({ labels }) => labels,
  say: ({ metricsFound, metrics }, { labels }) =>
    `${describeItems(toWords(metrics), 'metric', Number(metricsFound))} of ${Object.values(labels).join(', ')}`,
  async read(ask, { labels, text }, { nowMs }) {
    const { series, remarks } = await queryInstant(ask, toCountQuery(labels), nowMs / 1_000)
    const names = series
      .map(({ labels: { __name__: name = '' } }) => name)
      .filter((name) => !text || name.includes(text))
    const help = await readHelp(ask)
    const metrics = names.sort().map((name) => ({ name, ...help(name) }))
    const at = { untilSeconds: nowMs / 1_000, windowSeconds: 0 }
    const doubt = metrics.length === 0 && !remarks.partial ? await findDoubt(ask, toMatchers(labels, text), at) : null
    const partial = [...(remarks.partial ?? []), ...(doubt ? [doubt] : [])]
    return {
      summary: summarizeNames(metrics, {
        ...remarks,
        ...(partial.length > 0 && { partial }),
        labels,
        metricsFound: metrics.length,
      }),
      whole: metrics.map(({ name, type = '', help: words = '' }) => `${name} ${type} ${words}`.trim()).join('\n'),
      isEmpty: metrics.length === 0 && doubt === null,
      isPartial: partial.length > 0,
    }
  },
})

type Named = { name: string; type?: string }

/** Lists all metric names if they fit, and otherwise groups of names by their beginning. */
function summarizeNames(metrics: readonly Named[], head: Record<string, unknown>): Record<string, unknown> {
  const typed = ({ name, type }: Named) => `${name}${type ? ` (${type})` : ''}`
  const all = { ...head, metrics: metrics.map(typed) }
  if (Buffer.byteLength(JSON.stringify(all)) <= maxSummaryBytes) return all
  const types = new Map(metrics.map((each) => [each.name, typed(each)]))
  const groups = groupNames(metrics.map(({ name }) => name))
  return fitSummary(groups, (kept, omitted) => {
    const single = kept.filter(({ count }) => count === 1)
    return {
      ...head,
      metrics: single.map(({ prefix }) => types.get(prefix) ?? prefix),
      groups: kept
        .filter(({ count }) => count > 1)
        .map(({ prefix, count, endings }) => `${prefix}* ${count}: ${endings.join(', ')}, …`),
      ...(omitted > 0 && { groupsNotShown: omitted }),
      notShown: metrics.length - single.length,
      narrow: 'with text',
    }
  })
}

const metadata = z.record(z.string(), z.array(z.looseObject({ type: z.string(), help: z.string() })))

/** Reads the type and help of metrics. Empty if the server has no metadata. */
async function readHelp(ask: AskSource): Promise<(name: string) => { type?: string; help?: string }> {
  try {
    const known = metadata.parse(readData(await ask({ path: '/api/v1/metadata?limit_per_metric=1' })))
    return (name) => {
      const [entry] = known[name] ?? known[name.replace(/_(total|bucket|sum|count)$/, '')] ?? []
      return entry ? { type: entry.type, help: entry.help.slice(0, 200) } : {}
    }
  } catch {
    return () => ({})
  }
}

export const prometheus: SourceKind = {
  kind: 'prometheus',
  title: 'Prometheus, VictoriaMetrics, Thanos or Mimir',
  options: z.strictObject({}),
  connect: connectHttp,
  async probe(ask) {
    const [up] = (await queryInstant(ask, 'count(up)', Date.now() / 1_000)).series
    return `the source answers queries; ${up?.points[0]?.[1] ?? 0} targets`
  },
  contextOf: { rule: findRule },
  listResources,
  tools: [queryMetrics, describeMetrics],
}
