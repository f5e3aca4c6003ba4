import { formatNumber } from '../../domain/format.ts'
import { Inert } from '../inert.tsx'
import { formatMoment } from '../time.ts'

/** A series as it was read: seconds since 1970 and a value. */
export type ChartSeries = { labels: Record<string, string>; points: [number, number][] }

const size = { width: 640, height: 176, left: 58, right: 8, top: 10, bottom: 8 }
/** More lines than this tell nothing apart. */
const maxLines = 6

/**
 * What series did, as lines over time, with the beginning of the incident marked where it falls into the window. A table says the same to
 * those who do not see it.
 */
export function Chart({
  series,
  unit,
  beganMs,
}: {
  series: readonly ChartSeries[]
  unit: string | null
  beganMs: number
}) {
  const drawn = series.filter(({ points }) => points.length > 1).slice(0, maxLines)
  const all = drawn.flatMap(({ points }) => points)
  if (all.length === 0) return <p className="soft">There is nothing to draw: fewer than two points.</p>
  const [from, until] = getRange(all.map(([at]) => at))
  const [low, high] = widen(getRange(all.map(([, value]) => value)))
  const x = (at: number) => size.left + ((at - from) / (until - from || 1)) * (size.width - size.left - size.right)
  const y = (value: number) =>
    size.height - size.bottom - ((value - low) / (high - low)) * (size.height - size.top - size.bottom)
  const began = beganMs / 1_000
  return (
    <figure className="chart">
      <svg className="picture" viewBox={`0 0 ${size.width} ${size.height}`} aria-hidden="true">
        {[low, (low + high) / 2, high].map((value) => (
          <g key={value}>
            <line className="grid" x1={size.left} x2={size.width - size.right} y1={y(value)} y2={y(value)} />
            <text x={size.left - 6} y={y(value) + 4} textAnchor="end">
              {formatValue(value)}
            </text>
          </g>
        ))}
        {began > from && began < until && (
          <line className="began" x1={x(began)} x2={x(began)} y1={size.top} y2={size.height - size.bottom} />
        )}
        {drawn.map(({ labels, points }, at) => (
          <polyline
            key={JSON.stringify(labels)}
            className={`series series-${at}`}
            points={points.map(([seconds, value]) => `${x(seconds).toFixed(1)},${y(value).toFixed(1)}`).join(' ')}
          />
        ))}
      </svg>
      <div className="ends soft small">
        <span>{formatMoment(new Date(from * 1_000).toISOString())}</span>
        <span>{formatMoment(new Date(until * 1_000).toISOString())}</span>
      </div>
      <figcaption className="soft small">
        {series.length > drawn.length && `${drawn.length} of ${series.length} series. `}
        {began > from && began < until && 'The dashed line is the beginning of the incident.'}
      </figcaption>
      <Values series={drawn} unit={unit} />
    </figure>
  )
}

function Values({ series, unit }: { series: readonly ChartSeries[]; unit: string | null }) {
  return (
    <div className="scrolls">
      <table className="small">
        <caption className="visually-hidden">Last, smallest and largest value of each series</caption>
        <thead>
          <tr>
            <th scope="col">Series</th>
            <th scope="col">Last{unit && `, ${unit}`}</th>
            <th scope="col">Smallest</th>
            <th scope="col">Largest</th>
          </tr>
        </thead>
        <tbody>
          {series.map(({ labels, points }, at) => {
            const [low, high] = getRange(points.map(([, value]) => value))
            return (
              <tr key={JSON.stringify(labels)}>
                <th scope="row" className="wraps">
                  <svg className="key" viewBox="0 0 20 8" width="20" height="8" aria-hidden="true">
                    <polyline className={`series series-${at}`} points="0,4 20,4" />
                  </svg>{' '}
                  <Inert text={describeLabels(labels)} />
                </th>
                <td>{formatValue(points.at(-1)?.[1] ?? 0)}</td>
                <td>{formatValue(low)}</td>
                <td>{formatValue(high)}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

function describeLabels({ __name__: name = '', ...labels }: Record<string, string>): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}=${value}`)
  return [name, ...pairs].filter(Boolean).join(' ') || 'all'
}

function getRange(values: readonly number[]): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const value of values) {
    low = Math.min(low, value)
    high = Math.max(high, value)
  }
  return [low, high]
}

/** A level line stands in the middle. */
const widen = ([low, high]: [number, number]): [number, number] =>
  low === high ? [low - Math.max(1, Math.abs(low) / 2), high + Math.max(1, Math.abs(high) / 2)] : [low, high]

const prefixes: [number, string][] = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e4, 'k'],
]

/** Three figures, with the prefix of thousands. */
function formatValue(value: number): string {
  const [factor, prefix] = prefixes.find(([each]) => Math.abs(value) >= each) ?? [1, '']
  const scaled = value / (prefix === 'k' ? 1e3 : factor)
  return `${formatNumber(Number(scaled.toPrecision(3)))}${prefix && ` ${prefix}`}`
}
