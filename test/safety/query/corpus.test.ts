import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { chooseStep, judgePromql } from '../../../safety/query/promql.ts'

/**
 * Written by us after public mixins, and held as a whole: `test/data/queries/promql.txt` says what
 * its signs mean.
 */
const rows = readFileSync('test/data/queries/promql.txt', 'utf8')
  .split('\n')
  .filter((line) => /^[+!] /.test(line))
  .map((line) => {
    const [head = '', text = ''] = line.split('\t')
    const promql = text.replace(/\\(\\|n|r)/g, (_, sign) => ({ n: '\n', r: '\r' })[sign as string] ?? '\\')
    return { isRead: head.startsWith('+'), kind: head.slice(2), promql }
  })
const at = (promql: string, windowSeconds: number) =>
  judgePromql({ promql, windowSeconds, stepSeconds: chooseStep(promql, windowSeconds) })

describe('the corpus of queries', () => {
  // Before: 64 of 76, refused for comments, 30d, vector(1), time(), families of a job and a ninth
  // selector.
  test.each(rows.filter(({ isRead }) => isRead))('reads at one moment: $promql', ({ promql }) => {
    expect(at(promql, 0)).toEqual({ ok: true })
  })

  test.each(rows.filter(({ isRead }) => isRead))('reads over an hour, or names the moment: $promql', ({ promql }) => {
    const verdict = at(promql, 3_600)
    expect(verdict.ok || verdict.bounded).toEqual(/\[(?:30|28)d\]/.test(promql) ? { window: 'now' } : true)
  })

  // Before: 40 of 53 were refused; all that lengthen labels were read.
  test.each(rows.filter(({ isRead }) => !isRead))('refuses $kind: $promql', ({ promql, kind }) => {
    for (const windowSeconds of [0, 3_600]) {
      const verdict = at(promql, windowSeconds)
      expect(verdict.ok).toBe(false)
      if (!verdict.ok && /MetricsQL|Grafana/.test(kind)) expect(verdict.reason).toContain(kind)
    }
  })
})

test.each([
  ['rate(x{a="b"}[5i])', 'rate(x{a="b"}[300s])'],
  ['rate(x{a="b"}[1.5h])', 'rate(x{a="b"}[5400s])'],
  ['a ifnot b', 'a unless b'],
  ['a{x="if"} if b', 'a{x="if"} and b'],
  ['a default -1', 'a or vector(-1)'],
  ['a default b', 'a or b'],
  ['a < 512Mi', 'a < 536870912'],
  ['a > 1.5K', 'a > 1500'],
  ['median_over_time(a[5m])', 'quantile_over_time(0.5, a[5m])'],
  ['sum(increase_pure(a[5m])) keep_metric_names', 'sum(increase(a[5m]))'],
  ['up{a="x" or b="y", c="z"}', '(up{a="x"} or up{b="y", c="z"})'],
  ['rate(a[$__rate_interval])', 'rate(a[5m])'],
  // What has no such form is said in words alone.
  ['WITH (x = a) x', null],
  ['rate(a{x="1" or y="2"}[5m])', null],
  ['topk_avg(5, a)', null],
  ['sum(a) by (b) limit 5', null],
])('of %s the form is %s', (promql, form) => {
  // Before: "it does not parse at character …", and no form.
  const verdict = judgePromql({ promql, windowSeconds: 3_600, stepSeconds: 60 })
  expect(verdict).toMatchObject({ ok: false, bounded: form === null ? null : { promql: form } })
})

test('many selectors are limited by what they read together', () => {
  const sum = (count: number, selector: string) => Array(count).fill(selector).join(' + ')
  const judge = (promql: string, windowSeconds = 3_600, stepSeconds = 60) =>
    judgePromql({ promql, windowSeconds, stepSeconds })
  expect(judge(sum(60, 'up'))).toEqual({ ok: true })
  expect(judge(sum(60, 'up'), 86_400, 362)).toEqual({ ok: true })
  expect(judge(sum(150, 'up'), 86_400, 362)).toMatchObject({ ok: false, bounded: { step: expect.any(String) } })
  expect(judge(sum(50, 'rate(a[1d])'))).toMatchObject({ ok: false, bounded: { window: 'now' } })
  expect(judge(sum(90, 'rate(a[1d])'), 0)).toMatchObject({ ok: false, bounded: null })
})
