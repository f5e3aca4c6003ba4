import { z } from 'zod'
import { type Ask, quoteRemarks, SourceError, type SourceKind } from '../kind.ts'
import { readLastLines } from '../logs/last.ts'
import {
  type LogAnswer,
  type LogQuery,
  type LogReader,
  mostLines,
  quoteText,
  type Range,
  searchLogs,
} from '../logs/logs.ts'

/** Loki's HTTP API (https://grafana.com/docs/loki/latest/reference/loki-http-api/) in LogQL. */

/** A question as LogQL. Each value and text is quoted, so that none is read as part of the query. */
export function toLogql({ labels, contains, excludes, pattern }: LogQuery): string {
  // Loki's labels have no dots: it writes them as `_` when it takes lines in.
  const matchers = Object.entries(labels).map(([name, value]) => `${name.replaceAll('.', '_')}=${quoteText(value)}`)
  return [
    `{${matchers.join(', ')}}`,
    ...contains.map((text) => `|= ${quoteText(text)}`),
    ...excludes.map((text) => `!= ${quoteText(text)}`),
    ...(pattern === undefined ? [] : [`|~ ${quoteText(pattern)}`]),
  ].join(' ')
}

const streams = z.looseObject({
  warnings: z.unknown().optional(),
  data: z.looseObject({
    resultType: z.literal('streams'),
    result: z.array(z.looseObject({ values: z.array(z.tuple([z.string(), z.string()]).rest(z.unknown())) })),
  }),
})
const counted = z.looseObject({
  warnings: z.unknown().optional(),
  data: z.looseObject({ result: z.array(z.looseObject({ value: z.tuple([z.number(), z.string()]) })) }),
})
const names = z.looseObject({ data: z.array(z.string()).default([]) })

const toNanoseconds = (ms: number): string => `${Math.round(ms)}000000`

async function readLines(ask: Ask, query: LogQuery, { fromMs, untilMs }: Range): Promise<LogAnswer> {
  const search = new URLSearchParams({
    query: toLogql(query),
    start: toNanoseconds(fromMs),
    end: toNanoseconds(untilMs),
    limit: String(mostLines),
    direction: 'backward',
  })
  const parsed = streams.safeParse(await ask({ path: `/loki/api/v1/query_range?${search}` }))
  if (!parsed.success) throw new SourceError('BAD_ANSWER', 'it answered lines in a shape that is not of the Loki API')
  const lines = parsed.data.data.result.flatMap(({ values }) =>
    values.map(([at, text]) => ({ atMs: /^\d{7,19}$/.test(at) ? Number(at.slice(0, -6)) : Number.NaN, text })),
  )
  return { lines, partial: quoteRemarks(parsed.data.warnings) }
}

const reader: LogReader = {
  readLines,
  async countLines(ask, query, { fromMs, untilMs }) {
    const seconds = Math.max(1, Math.round((untilMs - fromMs) / 1_000))
    const search = new URLSearchParams({
      query: `sum(count_over_time(${toLogql(query)} [${seconds}s]))`,
      time: toNanoseconds(untilMs),
    })
    const parsed = counted.safeParse(await ask({ path: `/loki/api/v1/query?${search}` }))
    if (!parsed.success || quoteRemarks(parsed.data.warnings).length > 0) return null
    return Number(parsed.data.data.result[0]?.value[1] ?? 0)
  },
  async listLabels(ask, { fromMs, untilMs }) {
    const search = new URLSearchParams({ start: toNanoseconds(fromMs), end: toNanoseconds(untilMs) })
    return names.parse(await ask({ path: `/loki/api/v1/labels?${search}` })).data
  },
}

export const loki: SourceKind = {
  kind: 'loki',
  title: 'Loki',
  options: z.strictObject({}),
  async probe(ask) {
    const { data } = names.parse(await ask({ path: '/loki/api/v1/labels' }))
    return `it answers queries; ${data.length} labels`
  },
  lastLines: (ask, subject, nowMs) => readLastLines(reader, ask, subject, nowMs),
  tools: [searchLogs(reader)],
}
