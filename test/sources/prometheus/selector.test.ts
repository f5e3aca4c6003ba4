import { expect, test } from '@jest/globals'
import { findPlain, listLeaves, toSelector } from '../../../sources/prometheus/selector.ts'

test.each([
  ['up', 'up'],
  ['(up{job="a"})', 'up'],
  ['# why\n{__name__="up", job="a"}', 'up'],
  ['rate(up[5m])', null],
  ['up offset 5m', null],
  ['up > 0', null],
  // Several metrics: a function would drop what tells them apart.
  ['{instance="web-1"}', null],
  ['{__name__=~"http_.*", job="a"}', null],
])('%s is a selector of one metric: %s', (promql, name) => {
  expect(findPlain(promql)?.name ?? null).toBe(name)
})

test.each([
  ['up == 0', ['up']],
  ['sum(rate(x{a="b"}[5m])) by (c) > 5 and on (c) y', ['sum(rate(x{a="b"}[5m])) by (c)', 'y']],
  ['count(up == 0)', ['up']],
  ['a / b', ['a / b']],
  ['a unless b', ['a', 'b']],
  ['absent(x)', ['(x)']],
  ['time() - x > 5', ['time() - x']],
])('%s has the leaves %j', (promql, leaves) => {
  expect(listLeaves(promql)?.map((leaf) => leaf.promql)).toEqual(leaves)
})

test.each(['x offset 1d', 'x @ 100 > 5', 'max_over_time(x[1h:1m])'])(
  '%s reads other times, and has no leaves',
  (promql) => {
    expect(listLeaves(promql)).toBeNull()
  },
)

test('a series is selected by all its labels, quoted', () => {
  expect(toSelector({ __name__: 'up', path: 'a"} or {b="\\' })).toBe('{__name__="up",path="a\\"} or {b=\\"\\\\"}')
})
