import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parseDuration } from '../../domain/source.ts'
import { bounds, judgePromql } from '../../safety/query/promql.ts'
import { planRead } from '../../sources/kinds.ts'
import { toLogql } from '../../sources/logs/logql.ts'
import type { LogQuery } from '../../sources/logs/logs.ts'
import { toLogsql } from '../../sources/logs/victorialogs.ts'

const source = {
  name: 'main',
  kind: 'prometheus',
  url: 'http://127.0.0.1:1',
  credential: null,
  writeCredential: null,
  caFile: null,
  scheme: null,
  headers: {},
  certFile: null,
  keyFile: null,
  options: {},
  timeoutSeconds: 1,
  createdBy: 'x',
  createdAt: '2026-11-21T01:46:02.000000Z',
}

const name = fc.constantFrom('up', 'node_load1', 'http_requests_total', '__name__', 'job', 'instance', 'pod', 'x')
const value = fc.constantFrom(
  '"web-1"',
  '""',
  '".*"',
  '".+"',
  '"a|b"',
  `"${'a|'.repeat(150)}"`,
  "'web-1'",
  '`x`',
  `',"up",'`,
  `'x,"up"}'`,
)
const op = fc.constantFrom('=', '!=', '=~', '!~')
const matcher = fc.tuple(name, op, value).map((parts) => parts.join(''))
const time = fc.constantFrom('5m', '1h', '1d', '90d', '1y', '30s', '1ms', '5m+1h', 'step()', '')
const selector = fc
  .tuple(fc.oneof(name, fc.constant('')), fc.array(matcher, { maxLength: 3 }))
  .map(([metric, matchers]) => `${metric}{${matchers.join(',')}}`)
const ranged = fc
  .tuple(
    selector,
    time,
    fc.oneof(
      fc.constant(''),
      time.map((step) => `:${step}`),
    ),
  )
  .map(([of, range, step]) => `${of}[${range}${step}]`)
const { query } = fc.letrec<{ query: string }>((tie) => ({
  query: fc.oneof(
    { maxDepth: 4 },
    selector,
    ranged.map((each) => `rate(${each})`),
    fc
      .tuple(fc.constantFrom('sum', 'count', 'max_over_time', 'absent', 'topk(3,', 'by'), tie('query'))
      .map(([f, q]) => (f.endsWith(',') ? `${f}${q})` : `${f}(${q})`)),
    fc
      .tuple(tie('query'), fc.constantFrom('+', '/', 'or', 'and on(x)', '> bool'), tie('query'))
      .map((parts) => parts.join(' ')),
    fc.tuple(tie('query'), fc.constantFrom('offset', '@'), time).map((parts) => parts.join(' ')),
    fc.tuple(tie('query'), fc.integer({ min: 0, max: 60 })).map(([q, at]) => q.slice(0, at)),
    fc.string({ maxLength: 40 }),
  ),
}))

/** Read apart from the judge: what no text that is sent may hold. */
function breaks(promql: string, window: string): string | null {
  const ranges = [...promql.matchAll(/\[([^\]:]*)(?::([^\]]*))?\]/g)]
  for (const [text, range = '', step] of ranges) {
    const seconds = parseDuration(range)
    if (seconds === null || seconds > (window === 'now' ? bounds.momentRangeSeconds : bounds.rangeSeconds))
      return `range ${text}`
    if (step !== undefined && (parseDuration(step) ?? 0) < 60) return `step ${text}`
  }
  const bare = promql.replace(/"[^"]*"|'[^']*'|`[^`]*`/g, (text) => text[0] + 'v'.repeat(text.length - 2) + text[0])
  for (const [text, metric = ''] of bare.matchAll(/([A-Za-z_:][\w:]*)?\{[^}]*\}/g))
    if (
      metric === '' &&
      !/(__name__|instance|pod)=["'`]v|__name__=~["'`]v.*[=](["'`])v|\w=["'`]v.*__name__=~["'`]v/.test(text)
    )
      return `selector ${text}`
  return promql.length > bounds.characters ? 'length' : null
}

test('of 10,000 random queries none over its limit would be sent', () => {
  let sent = 0
  fc.assert(
    fc.property(
      query,
      fc.constantFrom('now', '1h', '1d', '31d', '90d', '1y'),
      fc.option(time, { nil: undefined }),
      (promql, window, step) => {
        const planned = planRead([source], 'query_metrics', { promql, window, ...(step !== undefined && { step }) })
        if (!planned.ok) return
        sent += 1
        expect(breaks(promql, window)).toBeNull()
        const windowSeconds = window === 'now' ? 0 : (parseDuration(window) as number)
        expect(windowSeconds).toBeLessThanOrEqual(bounds.windowSeconds)
        if (step !== undefined && windowSeconds > 0)
          expect(windowSeconds / (parseDuration(step) as number)).toBeLessThanOrEqual(bounds.points)
      },
    ),
    { numRuns: 10_000, seed: 20_261_123 },
  )
  // It is no test where nothing gets through.
  expect(sent).toBeGreaterThan(500)
})

test('the judge answers for any text, and never throws', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 200 }),
      fc.double(),
      fc.double(),
      (promql, windowSeconds, stepSeconds) => {
        expect(judgePromql({ promql, windowSeconds, stepSeconds })).toHaveProperty('ok')
      },
    ),
    { numRuns: 2_000 },
  )
})

/** The quoted texts of a query and what stands between them, read by the escapes of Go. */
function takeApart(query: string): { texts: string[]; rest: string } {
  const texts: string[] = []
  const rest = query.replace(/"(?:[^"\\\n]|\\(?:["\\bfnrt]|u[0-9a-f]{4}))*"/g, (quoted) => {
    if (/\\ud[89a-f]/i.test(quoted)) throw new Error(`half of a pair: ${quoted}`)
    texts.push(JSON.parse(quoted) as string)
    return 'Q'
  })
  return { texts, rest }
}

const nasty = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }),
  fc.string({
    unit: fc.constantFrom('"', '\\', '`', '{', '}', '|', ' ', '\n', '\u{d800}', 'a', '=', '~'),
    minLength: 1,
    maxLength: 12,
  }),
  fc.constantFrom('" | delete', '\u{d800} | limit 9', '"} or {a=~".+"', '` |= `', '* | union (*)', '_time:9y'),
)
const label = fc.constantFrom('instance', 'a.b', '_time', '_stream', '_msg', 'job')
const asked = fc.record({
  labels: fc.dictionary(label, nasty, { maxKeys: 8 }),
  contains: fc.array(nasty, { maxLength: 6 }),
  excludes: fc.array(nasty, { maxLength: 3 }),
  pattern: fc.option(nasty, { nil: undefined }),
  window: fc.oneof(fc.constantFrom('1h', '24h', '25h', '-1h', '1y', '1e9', 'now', '0', '86401'), nasty),
})

test('of 10,000 questions to logs none over its limit would be sent, and no text leaves its quotes', () => {
  let sent = 0
  fc.assert(
    fc.property(asked, ({ pattern, ...given }) => {
      const loki = { ...source, kind: 'loki' }
      const planned = planRead([loki], 'search_logs', { ...given, ...(pattern !== undefined && { pattern }) })
      if (!planned.ok) return
      sent += 1
      const seconds = parseDuration(given.window) ?? 0
      expect(seconds > 0 && seconds <= 86_400).toBe(true)
      const query = planned.args as LogQuery
      const logql = takeApart(toLogql(query))
      expect(logql.rest).toMatch(/^\{\w+=Q(, \w+=Q)*\}( (\|=|!=|\|~) Q)*$/)
      const logsql = takeApart(toLogsql(query))
      expect(logsql.rest).toMatch(/^Q:=Q( AND (Q:=Q|!?_msg:~Q))*$/)
      const said = Object.values(query.labels).map((text) => String(text).toWellFormed())
      expect(logql.texts.slice(0, said.length)).toEqual(said)
      expect(logql.texts).toHaveLength(
        said.length + query.contains.length + query.excludes.length + (query.pattern === undefined ? 0 : 1),
      )
    }),
    { numRuns: 10_000, seed: 20_261_124 },
  )
  expect(sent).toBeGreaterThan(500)
})
