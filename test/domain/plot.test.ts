import { expect, test } from '@jest/globals'
import { type ChartSeries, findLimit, formatValue, layOut, readSummary, shareOf, valueAt } from '../../domain/plot.ts'

const began = Date.parse('2026-11-25T05:00:00Z') / 1_000
const iso = (minute: number) => new Date((began + minute * 60) * 1_000).toISOString()
/** A sample a minute, but for the minutes that are left out. */
const every = (minutes: number, without: (minute: number) => boolean = () => false, labels = {}): ChartSeries => ({
  labels,
  points: Array.from({ length: minutes + 1 }, (_, at): [number, number] => [began + at * 60, at]).filter(
    ([, at]) => !without(at),
  ),
})
const summary = (more: object = {}, series: object[] = [{ labels: {} }]) =>
  readSummary({ promql: 'load', window: '30m', until: iso(30), stepSeconds: 60, series, ...more })
const inMinutes = (ranges: [number, number][]) => ranges.map((range) => range.map((at) => (at - began) / 60))

test('a line has a gap where samples are missing, also at both ends of the requested window', () => {
  const { drawn, empty, range } = layOut([every(30, (at) => at < 4 || (at > 9 && at < 15) || at > 26)], summary())
  expect(inMinutes([range])).toEqual([[0, 30]])
  expect(inMinutes(empty)).toEqual([
    [0, 4],
    [9, 15],
    [26, 30],
  ])
  expect(drawn[0]?.pieces.map((piece) => piece.length)).toEqual([6, 12])
})

test('values that a server repeats at the beginning of a gap are no samples, if the figures show the gap', () => {
  const told = [{ labels: {}, gaps: [[iso(10), iso(20)]] }]
  const { drawn, empty } = layOut([every(30, (at) => at > 14 && at < 20)], summary({}, told))
  expect(inMinutes(empty)).toEqual([[10, 20]])
  expect(drawn[0]?.pieces.map((piece) => piece.at(-1)?.[1])).toEqual([10, 30])
  const line = drawn[0] as NonNullable<(typeof drawn)[0]>
  expect([5, 12, 25].map((minute) => valueAt(line, began + minute * 60))).toEqual([5, null, 25])
})

test('a series without samples has a gap, and a period in which another series has samples is not called empty', () => {
  const two = [every(30, (at) => at > 9 && at < 15, { on: 'a', job: 'x' }), every(30, undefined, { on: 'b', job: 'x' })]
  const { drawn, empty } = layOut(two, summary())
  expect(empty).toEqual([])
  expect(drawn.map(({ pieces, name }) => [pieces.length, name])).toEqual([
    [2, 'on=a'],
    [1, 'on=b'],
  ])
})

test('a single sample is drawn, and of more than six series six are drawn', () => {
  const lonely = layOut([every(30, (at) => at !== 3 && at < 20)], summary())
  expect(lonely.drawn[0]?.pieces[0]).toHaveLength(1)
  const many = Array.from({ length: 9 }, (_, at) => every(30, undefined, { on: String(at) }))
  expect(layOut(many, summary()).left).toBe(3)
  expect(layOut([{ labels: {}, points: [[began, 1]] }], summary()).drawn).toEqual([])
})

test.each([
  ['the same', 'disk_used_percent', 'disk_used_percent > 90', '> 90', { sign: '>', value: 90 }],
  ['the same of one machine', 'disk_used_percent{on="a"}', 'disk_used_percent > 90', '> 90', { sign: '>', value: 90 }],
  ['what the rule leaves out', 'load{env="dev"}', 'load{env="prod"} > 4', '> 4', null],
  ['a part of what it takes in', 'load{on="a", env="prod"}', 'load{env="prod"} > 4', '> 4', { sign: '>', value: 4 }],
  ['another thing', 'disk_free_percent', 'disk_used_percent > 90', '> 90', null],
  ['a part of it', 'errors', 'errors / requests > 0.1', '> 0.1', null],
  ['one of two conditions', 'load', 'load > 4 and cores < 8', '> 4', null],
  ['what is held against nothing', 'up', 'absent(up)', null, null],
])('a threshold is drawn if the chart shows what the alert computes: %s', (_, promql, expression, threshold, limit) => {
  expect(findLimit({ expression, threshold }, promql)).toEqual(limit)
  expect(findLimit(null, promql)).toBeNull()
})

test.each([
  [0.97, '0.97'],
  [99.5, '99.5'],
  [0, '0'],
  [1_234, '1,230'],
  [-12_345, '-12.3 k'],
  [1.5e9, '1.5 G'],
  [-1e308, '-1.00e+308'],
  [5e-324, '4.94e-324'],
])('of %d three figures are shown, also of a ratio', (value, text) => {
  expect(formatValue(value)).toBe(text)
})

test('a value between the largest numbers has its place', () => {
  expect(shareOf([-1e308, 1e308], -1e308)).toBe(0)
  expect(shareOf([-1e308, 1e308], 0)).toBe(0.5)
  expect(shareOf([0, 100], 90)).toBe(0.9)
})
