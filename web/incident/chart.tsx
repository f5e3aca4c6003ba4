import { type CSSProperties, type PointerEvent, useMemo } from 'react'
import {
  type ChartMark,
  type ChartSeries,
  formatValue,
  getRange,
  layOut,
  type PlottedSeries,
  type Reading,
  shareOf,
  valueAt,
  widen,
} from '../../domain/plot.ts'
import { type Column, Table } from '../data-table.tsx'
import { Inert } from '../inert.tsx'
import { placeIn } from '../lane.tsx'
import { formatMoment, formatTimeOfDay } from '../time.ts'
import { createWatchedValue } from '../watched-value.ts'

/** `word` is the name of the limit, if it is not an alert's. */
type Limit = { sign: string; value: number; word?: string }
type Props = {
  /** The claim that the chart supports. */
  title: string
  source: string
  series: readonly ChartSeries[]
  reading: Reading
  limit: Limit | null
  marks: readonly ChartMark[]
  /** True if values above the limit fire now. */
  fires: boolean
}

/**
 * Draws series as lines over time, interrupted where nothing was read. The stretched picture
 * contains only lines, and words are text beside it. Every chart of the page shows the moment under
 * the pointer, or the one chosen with arrow keys.
 */
export function Chart({ title, source, series, reading, limit, marks, fires }: Props) {
  const { drawn, range, empty, left } = useMemo(() => layOut(series, reading), [series, reading])
  const at = useMoment()
  // Draws the lines once, and not at each move of the pointer.
  const lines = useMemo(() => {
    const values = drawn.flatMap(({ points }) => points.map(([, value]) => value))
    const scale = widen(getRange(limit ? [...values, limit.value] : values))
    const within = marks.filter((mark) => mark.at >= range[0] && mark.at <= range[1]).sort((a, b) => a.at - b.at)
    const shared = { range, scale, limit }
    return {
      within,
      picture: [
        <Lines key="lines" drawn={drawn} {...shared} />,
        <Words key="words" {...shared} empty={empty} marks={within} />,
      ],
    }
  }, [drawn, range, empty, limit, marks])
  if (drawn.length === 0) return <p className="soft">Nothing to draw: the series has fewer than two points.</p>
  const { within, picture } = lines
  const shown = at === null ? null : Math.min(range[1], Math.max(range[0], at))
  return (
    <figure className={fires ? 'chart fires' : 'chart'}>
      <figcaption className="wraps">
        <Inert as="strong" text={title} />{' '}
        <span className="soft small">
          {reading.unit && `${reading.unit} · `}
          {reading.stepSeconds !== null && `a point every ${reading.stepSeconds} s · `}
          <Inert text={source} />
          {left > 0 && ` · ${drawn.length} of ${drawn.length + left} series`}
        </span>
      </figcaption>
      <div className="plot small" style={{ '--levels': countLevels(within, range) } as CSSProperties}>
        {picture}
        {shown !== null && <span className="cursor" style={place(range, shown)} />}
        <Scrub title={title} drawn={drawn} range={range} step={reading.stepSeconds ?? 1} shown={shown} />
      </div>
      <Legend drawn={drawn} shown={shown} />
      <details className="small">
        <summary>As a table</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable by keyboard */}
        <section className="scrolls" aria-label="Values" tabIndex={0}>
          <Table
            caption="Each series, and where it has no samples"
            items={drawn}
            columns={listColumns(reading.unit)}
            toKey={({ name }) => name}
          />
        </section>
        {within.map(({ at: when, word, detail }) => (
          <p key={`${when} ${word} ${detail}`} className="wraps">
            {toTime(when)} {word}: <Inert text={detail} />
          </p>
        ))}
      </details>
    </figure>
  )
}

const place = (range: [number, number], from: number, to = from) =>
  ({ '--a': placeIn(range, from), '--b': placeIn(range, to) }) as CSSProperties
/** Measures from above, so that the largest value is at the top. */
const placeDown = (scale: [number, number], value: number) => 100 - 100 * shareOf(scale, value)
const toTime = (seconds: number) => formatTimeOfDay(new Date(seconds * 1_000).toISOString())

type PlotProps = { drawn: PlottedSeries[]; range: [number, number]; scale: [number, number]; limit: Limit | null }

function Lines({ drawn, range: [from, to], scale, limit }: PlotProps) {
  const x = (at: number) => ((1_000 * (at - from)) / (to - from || 1)).toFixed(1)
  const y = (value: number) => (2 * placeDown(scale, value)).toFixed(1)
  return (
    <svg viewBox="0 0 1000 200" preserveAspectRatio="none" aria-hidden="true">
      <path className="grid" d="M0 0H1000M0 100H1000M0 200H1000" />
      {limit && <path className="limit" d={`M0 ${y(limit.value)}H1000`} />}
      {drawn.map(({ name, pieces }, at) => (
        <path
          key={name}
          className={`series series-${at}`}
          d={pieces.map((piece) => `M${piece.map(([when, value]) => `${x(when)} ${y(value)}`).join('L')}h0`).join('')}
        />
      ))}
    </svg>
  )
}

const day = 86_400

function Words({
  range,
  scale,
  limit,
  empty,
  marks,
}: Omit<PlotProps, 'drawn'> & { empty: [number, number][]; marks: ChartMark[] }) {
  const levels = listLevels(marks, range)
  const ticks = [0, 1 / 3, 2 / 3, 1].map((share) => range[0] + share * (range[1] - range[0]))
  const isLong = range[1] - range[0] > 1.5 * day
  return (
    <>
      {[scale[1], scale[0] / 2 + scale[1] / 2, scale[0]].map((value) => (
        <span key={value} className="y" style={{ '--y': `${placeDown(scale, value)}%` } as CSSProperties}>
          {formatValue(value)}
        </span>
      ))}
      {ticks.map((at) => (
        <span key={at} className="x" style={place(range, at)}>
          {isLong ? formatMoment(new Date(at * 1_000).toISOString()).slice(5, 10) : toTime(at).slice(0, 5)}
        </span>
      ))}
      {limit && (
        <span className="limit-word" style={{ '--y': `${placeDown(scale, limit.value)}%` } as CSSProperties}>
          {limit.word ?? `alert ${limit.sign}`} {formatValue(limit.value)}
        </span>
      )}
      {empty.map(([from, to]) => (
        <span
          key={from}
          className="empty"
          style={place(range, from, to)}
          title={`no samples, ${toTime(from)} to ${toTime(to)}`}
        >
          <span>no samples</span>
        </span>
      ))}
      {marks.map(({ at, word, detail, isAlert }, index) => (
        <span
          key={`${at} ${word} ${detail}`}
          className={`event ${isAlert ? 'alert' : ''} ${isRight(range, at) ? 'left' : ''}`}
          style={{ ...place(range, at), '--level': Math.max(0, levels[index] ?? 0) } as CSSProperties}
          title={`${toTime(at)} ${detail}`}
        >
          {levels[index] !== -1 && word}
        </span>
      ))}
    </>
  )
}

const isRight = ([from, to]: [number, number], at: number) => (at - from) / (to - from) > 0.8
/**
 * Share of the time range. Two labels that are nearer to each other than this are stacked on a
 * phone. A level of -1 means that there is no room, and the table shows the label.
 */
const nearShare = 0.2
const maxLevels = 3

function listLevels(marks: readonly ChartMark[], [from, to]: [number, number]): number[] {
  const ends = Array.from({ length: maxLevels }, () => Number.NEGATIVE_INFINITY)
  return marks.map(({ at }) => {
    const share = (at - from) / (to - from)
    const level = ends.findIndex((end) => share - end > nearShare)
    if (level >= 0) ends[level] = share
    return level
  })
}

const countLevels = (marks: readonly ChartMark[], range: [number, number]) =>
  Math.max(0, ...listLevels(marks, range)) + 1

type ScrubProps = { title: string; drawn: PlottedSeries[]; range: [number, number]; step: number; shown: number | null }

/**
 * Shows a hidden slider above the picture, for the browser's keys, with words for a screen reader.
 */
function Scrub({ title, drawn, range: [from, to], step, shown }: ScrubProps) {
  const point = (event: PointerEvent<HTMLInputElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect()
    setMoment(from + ((to - from) * (event.clientX - left)) / width)
  }
  const at = shown ?? to
  const values = drawn.map((each) => `${each.name} ${formatSample(each, at)}`).join(', ')
  return (
    <input
      type="range"
      aria-label={`Moment of: ${title}`}
      aria-valuetext={`${toTime(at)}: ${values}`}
      min={from}
      max={to}
      step={step}
      value={at}
      onChange={({ target }) => setMoment(Number(target.value))}
      onPointerMove={point}
      onPointerLeave={() => setMoment(null)}
      onBlur={() => setMoment(null)}
    />
  )
}

function formatSample(series: PlottedSeries, at: number): string {
  const value = valueAt(series, at)
  return value === null ? 'no sample' : formatValue(value)
}

/** Shows the name of each line, with its value at the chosen moment, or the last value. */
function Legend({ drawn, shown }: { drawn: PlottedSeries[]; shown: number | null }) {
  return (
    <ul className="legend small">
      <li className="soft">{shown === null ? 'last' : toTime(shown)}</li>
      {drawn.map((each, at) => (
        <li key={each.name} className="wraps">
          <svg viewBox="0 0 20 8" width="20" height="8" aria-hidden="true">
            <path className={`series series-${at}`} d="M0 4H20" />
          </svg>{' '}
          <Inert text={each.name} />{' '}
          <b>{shown === null ? formatValue(each.points.at(-1)?.[1] ?? 0) : formatSample(each, shown)}</b>
        </li>
      ))}
    </ul>
  )
}

const toPoint = ([at, value]: [number, number] = [0, 0]) => `${formatValue(value)} at ${toTime(at)}`

function listColumns(unit: string | null): Column<PlottedSeries>[] {
  const bySize = ({ points }: PlottedSeries) => points.toSorted((a, b) => a[1] - b[1])
  return [
    { head: unit ? `Series, ${unit}` : 'Series', cell: ({ name }) => <Inert text={name} /> },
    { head: 'First', cell: ({ points }) => toPoint(points[0]) },
    { head: 'Smallest', cell: (each) => toPoint(bySize(each)[0]) },
    { head: 'Largest', cell: (each) => toPoint(bySize(each).at(-1)) },
    { head: 'Last', cell: ({ points }) => toPoint(points.at(-1)) },
    {
      head: 'No samples',
      cell: ({ gaps }) => gaps.map(([from, to]) => `${toTime(from)} to ${toTime(to)}`).join(', ') || 'none',
    },
  ]
}

/** The moment that all charts of the page show. */
const { set: setMoment, use: useMoment } = createWatchedValue<number | null>(null)
