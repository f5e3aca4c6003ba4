import { expect, test } from '@jest/globals'
import { figuresOfPoints } from '../../../sources/prometheus/figures.ts'
import type { Point } from '../../../sources/prometheus/query.ts'
import { type Described, findChange, saySeries, summarizeSeries } from '../../../sources/prometheus/summary.ts'

const grid = { end: 6_000, step: 60, count: 61 }
const points = (values: (number | null)[]): Point[] =>
  values.flatMap((value, at): Point[] => (value === null ? [] : [[6_000 - (values.length - 1 - at) * 60, value]]))

function told(values: (number | null)[], atEnd: number | undefined, figures: object = {}) {
  const found = figuresOfPoints(points(values), atEnd, grid)
  if (!found) throw new Error('nothing')
  const series: Described = {
    labels: { a: 'b' },
    points: points(values),
    figures: { ...found, ...figures },
    change: findChange(points(values)),
  }
  const asked = { promql: 'a / b', window: '1h', stepSeconds: 60, untilMs: 6_000_000, remarks: {} }
  return summarizeSeries([series], [series], asked, { day: true, week: true })
}
const first = (summary: Record<string, unknown>) => (summary.series as Record<string, unknown>[])[0]

test('figures of points are named as such, and each has its time', () => {
  const values = Array.from({ length: 61 }, (_, at) => (at === 20 ? 68 : 5 + (at % 2)))
  const summary = told(values, 9)
  expect(summary.ofPoints).toMatch(/points 60 s apart/)
  expect(first(summary)).toMatchObject({
    last: 9,
    lastAt: '1970-01-01T01:40:00Z',
    max: 68,
    maxAt: '1970-01-01T01:00:00Z',
    min: 5,
    minAt: '1970-01-01T00:40:00Z',
  })
  expect(first(summary)).not.toHaveProperty('endedAt')
})

test('a series without a value at the end has ended, and a gap in it has a beginning and an end', () => {
  const values = Array.from({ length: 61 }, (_, at) => ((at >= 10 && at < 20) || at > 40 ? null : 3))
  expect(first(told(values, undefined))).toMatchObject({
    endedAt: '1970-01-01T01:20:00Z',
    gaps: [['1970-01-01T00:49:00Z', '1970-01-01T01:00:00Z']],
  })
  expect(saySeries(told(values, undefined), { promql: 'a / b' })).toContain('was 3 until 1970-01-01T01:20:00Z')
})

test('rounding errors of floating-point sums are neither a change nor a slope', () => {
  // Before: changedAt from 0.099 to 0.099, and a slope of -3.9e-17.
  const values = Array.from({ length: 61 }, (_, at) => (at < 30 ? 0.099 : 0.099 + 2e-17 + 1.4e-17))
  const [series] = told(values, 0.099).series as Record<string, unknown>[]
  expect(series).toMatchObject({ perHour: 0 })
  expect(series).not.toHaveProperty('changedAt')
  expect(first(told(Array(61).fill(1), 1, { slope: -3.9e-17 }))).toMatchObject({ perHour: 0 })
})

test('an empty answer means no series only if nothing limited the query', () => {
  expect(saySeries({ seriesFound: 0, series: [] }, { promql: 'up' })).toBe('up: no series')
  expect(saySeries({ seriesFound: 0, series: [], partial: ['points'] }, { promql: 'up' })).toBe('up: nothing seen')
})
