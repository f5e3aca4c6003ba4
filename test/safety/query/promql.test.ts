import { expect, test } from '@jest/globals'
import { parseDuration } from '../../../domain/source.ts'
import { bounds, chooseStep, judgePromql } from '../../../safety/query/promql.ts'
import { findThreshold } from '../../../sources/prometheus/rule.ts'
import { findUnit } from '../../../sources/prometheus/summary.ts'

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
  ['', 'syntax error|reads no metric'],
  ['sum(', 'syntax error'],
  ['up; drop', 'syntax error'],
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
  [`up{x="${'a'.repeat(2000)}"}`, 'longer than 2000'],
  ['rate(up[5m', 'syntax error'],
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
])('%s over %s s by %s s is too much, and the bounded form is read', (promql, windowSeconds, stepSeconds, bounded) => {
  const verdict = judge(promql, windowSeconds, stepSeconds)
  expect(verdict).toMatchObject({ ok: false, bounded })
  if (verdict.ok || !verdict.bounded) throw new Error('it has no bounded form')
  const { promql: text = promql, window, step } = verdict.bounded
  const [long, apart] = [window ? parseDuration(window) : windowSeconds, step ? parseDuration(step) : stepSeconds]
  expect(judge(text, long as number, apart as number)).toEqual({ ok: true })
})

test('the step that code chooses is always within the limit', () => {
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
