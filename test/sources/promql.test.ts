import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parseDuration } from '../../domain/source.ts'
import { planRead } from '../../sources/kinds.ts'
import type { LogQuery } from '../../sources/logs/logs.ts'
import { toLogql, toLogsql } from '../../sources/logs/stores.ts'
import { bounds, chooseStep, judgePromql } from '../../sources/prometheus/promql.ts'
import { findThreshold } from '../../sources/prometheus/rule.ts'
import { findUnit } from '../../sources/prometheus/summary.ts'

describe('fuzz', () => {
  const source = {
    ...{ name: 'main', kind: 'prometheus', url: 'http://127.0.0.1:1', credential: null, caFile: null, options: {} },
    ...{ timeoutSeconds: 1, createdBy: 'x', createdAt: '2026-11-21T01:46:02.000000Z' },
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
  function breaks(promql: string): string | null {
    const ranges = [...promql.matchAll(/\[([^\]:]*)(?::([^\]]*))?\]/g)]
    for (const [text, range = '', step] of ranges) {
      const seconds = parseDuration(range)
      if (seconds === null || seconds > bounds.rangeSeconds) return `range ${text}`
      if (step !== undefined && (parseDuration(step) ?? 0) < 60) return `step ${text}`
    }
    const bare = promql.replace(/"[^"]*"|'[^']*'|`[^`]*`/g, (text) => text[0] + 'v'.repeat(text.length - 2) + text[0])
    for (const [text, metric = ''] of bare.matchAll(/([A-Za-z_:][\w:]*)?\{[^}]*\}/g))
      if (metric === '' && !/(__name__|instance|pod)=["'`]v/.test(text)) return `selector ${text}`
    return promql.length > bounds.characters ? 'length' : null
  }

  test('of 10,000 queries that nobody would write none over its bound would be sent', () => {
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
          expect(breaks(promql)).toBeNull()
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

  test('a judge that meets any text answers, and never throws', () => {
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

  test('of 10,000 questions to logs none over its bound would be sent, and no text leaves its quotes', () => {
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
        const said = Object.values(query.labels).map((text) => text.toWellFormed())
        expect(logql.texts.slice(0, said.length)).toEqual(said)
        expect(logql.texts).toHaveLength(
          said.length + query.contains.length + query.excludes.length + (query.pattern === undefined ? 0 : 1),
        )
      }),
      { numRuns: 10_000, seed: 20_261_124 },
    )
    expect(sent).toBeGreaterThan(500)
  })
})

describe('promql', () => {
  const judge = (promql: string, windowSeconds = 3_600, stepSeconds = 60) =>
    judgePromql({ promql, windowSeconds, stepSeconds })

  test.each([
    'up',
    'up{instance="web-1:9100"}',
    '{instance="web-1:9100"}',
    '{"http.requests", job="api"}',
    '{__name__="up"}',
    'sum by (code) (rate(http_requests_total{job="api",code=~"5.."}[5m]))',
    'histogram_quantile(0.99, sum by (le) (rate(http_request_duration_seconds_bucket[5m])))',
    'node_filesystem_avail_bytes / node_filesystem_size_bytes offset 1w < 0.1',
    'max_over_time(node_load1[1h:5m])',
    'absent(up{job="api"})',
    'topk(5, rate(process_cpu_seconds_total[5m]))',
  ])('%s is read', (promql) => {
    expect(judge(promql)).toEqual({ ok: true })
  })

  test.each([
    ['', 'does not parse|reads no metric'],
    ['sum(', 'does not parse'],
    ['up; drop', 'does not parse'],
    ['1 + 1', 'reads no metric'],
    ['{job="api"}', 'names no metric'],
    ['{__name__=~".+"}', 'names no metric'],
    ['{instance=""}', 'names no metric'],
    ['{instance=~"web.*"}', 'names no metric'],
    ['{instance!="web"}', 'names no metric'],
    ['count({job=~".*"}) + up', 'names no metric'],
    [`up{instance=~"${'a|'.repeat(120)}b"}`, 'regular expression'],
    ['max_over_time(rate(up[5m])[1d:5m])', 'longer than 6h'],
    ['max_over_time(up[1h:1s])', 'a step of a minute'],
    ['max_over_time(up[1h:])', 'a step of a minute'],
    ['max_over_time(max_over_time(up[1h:5m])[1h:5m])', 'inside a subquery'],
    [Array(9).fill('up').join(' + '), 'more than 8 selectors'],
    [`up{x="${'a'.repeat(2000)}"}`, 'longer than 2000'],
    ['rate(up[5m', 'does not parse'],
    // A value that looks like the quoted name of a metric is a value.
    [`{job!=',"up",'}`, 'names no metric'],
    [`{job=~'x,"up"}'}`, 'names no metric'],
    [`{a=~".*", b!='{"up"}'}`, 'names no metric'],
    ['{""}', 'names no metric'],
    // A range inside a subquery is read again at each of its steps.
    ['max_over_time(rate(up[1d])[6h:1m])', 'longer than 20m in each step of its subquery'],
  ])('%s is refused: %s', (promql, reason) => {
    const verdict = judge(promql)
    expect(verdict).toMatchObject({ ok: false })
    if (!verdict.ok) expect(verdict.reason).toMatch(new RegExp(reason))
  })

  test.each([
    ['rate(up[90d])', 3_600, 300, { promql: 'rate(up[1d])' }],
    ['up', 90 * 86_400, 3_600, { window: '31d' }],
    ['up', 86_400, 15, { step: '362s' }],
    ['rate(up[90d]) / rate(x[2d])', 0, 60, { promql: 'rate(up[1d]) / rate(x[1d])' }],
    ['max_over_time(up[1h:])', 0, 60, { promql: 'max_over_time(up[1h:1m])' }],
    ['max_over_time(up[1h:1s])', 0, 60, { promql: 'max_over_time(up[1h:1m])' }],
    ['max_over_time(rate(up[1d])[6h:1m])', 0, 60, { promql: 'max_over_time(rate(up[20m])[6h:1m])' }],
    ['max_over_time(rate(up[5m])[1h:1m])', 3_600, 60, { step: '77s' }],
    [
      'rate(up[5m:]) + rate(x[90d:1s])',
      90 * 86_400,
      60,
      { window: '31d', promql: 'rate(up[5m:1m]) + rate(x[6h:1m])', step: '68677s' },
    ],
  ])(
    '%s over %s s by %s s is too much, and the bounded form is read',
    (promql, windowSeconds, stepSeconds, bounded) => {
      const verdict = judge(promql, windowSeconds, stepSeconds)
      expect(verdict).toMatchObject({ ok: false, bounded })
      if (verdict.ok || !verdict.bounded) throw new Error('it has no bounded form')
      const { promql: text = promql, window, step } = verdict.bounded
      const [long, apart] = [window ? parseDuration(window) : windowSeconds, step ? parseDuration(step) : stepSeconds]
      expect(judge(text, long as number, apart as number)).toEqual({ ok: true })
    },
  )

  test('the step that code chooses is always within the bound', () => {
    for (const promql of ['up', 'rate(up[5m])', 'rate(up[1d])', 'max_over_time(up[6h:5m])'])
      for (const windowSeconds of [60, 3_600, 86_400, 7 * 86_400, bounds.windowSeconds])
        expect(judge(promql, windowSeconds, chooseStep(promql, windowSeconds))).toEqual({ ok: true })
  })

  test.each([
    ['disk_used > 90', '> 90'],
    ['(disk_used / disk_size) * 100 >= 90.5', '>= 90.5'],
    ['(disk_used > 90) and on (instance) up == 1', '> 90'],
    ['up == 0', '== 0'],
    ['rate(x[5m]) < 1e-3 unless y', '< 1e-3'],
    ['predict_linear(x[1h], 4 * 3600) < -5', '< -5'],
    ['absent(up)', null],
    ['a > b', null],
  ])('the threshold of %s is %s', (expression, threshold) => {
    expect(findThreshold(expression)).toBe(threshold)
  })

  test.each([
    ['process_resident_memory_bytes{instance="a"}', 'bytes'],
    ['sum by (pod) (container_memory_working_set_bytes{pod="a"})', 'bytes'],
    ['max_over_time(replication_lag_seconds[1h] offset 1d)', 'seconds'],
    ['increase(node_network_receive_bytes_total[5m])', 'bytes'],
    ['certificate_not_after_seconds - time()', 'seconds'],
    ['rate(node_network_receive_bytes_total[5m])', null],
    ['used_bytes / size_bytes', null],
    ['avg_over_time(deriv(used_bytes[1m])[5m:])', null],
    ['histogram_quantile(0.9, duration_seconds_bucket)', null],
    ['up', null],
  ])('the unit of %s is %s', (promql, unit) => {
    expect(findUnit(promql)).toBe(unit)
  })
})
