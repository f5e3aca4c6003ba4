import type { RelationKind } from '../../domain/kinds.ts'
import type { ShownResource } from '../../domain/listed-resource.ts'
import { Inert, inertText } from '../inert.tsx'
import { Mark } from '../marks.tsx'
import { Section } from '../page-frame.tsx'
import { Link } from '../router.tsx'

/** Pixels of a box with its gap, as for `.topology li` in style/table.css. */
const pitch = 48
const gapWidth = 72

type Near = NonNullable<ShownResource['around']>['needs']

/**
 * Draws three columns: what the resource depends on, the resource, and what depends on it. The
 * columns are lists of links and can be read without the picture, which draws only the curves in
 * between. On a phone they are below each other.
 */
export function TopologyPicture({ resource }: { resource: ShownResource }) {
  const { around, alerts, kind, id } = resource
  if (!around || around.needs.total + around.neededBy.total === 0) return null
  const key = `${kind}:${id}`
  const rows = Math.max(countRows(around.needs), 1, countRows(around.neededBy))
  const firing = alerts.filter(({ status }) => status === 'firing').length
  return (
    <Section className="stack tight" id="topology" title="What this resource needs, and what needs it">
      <div className="topology">
        <Side title="It runs on or needs" near={around.needs} all={`/resources?needed_by=${encodeURIComponent(key)}`} />
        <Curves from={countRows(around.needs)} rows={rows} isLeft />
        <div>
          <h3>This resource</h3>
          <ul>
            <li className="own">
              <Inert as="strong" className="mono" text={key} />
              <Fires count={firing} />
            </li>
          </ul>
        </div>
        <Curves from={countRows(around.neededBy)} rows={rows} isLeft={false} />
        <Side
          title="Runs on it or needs it"
          near={around.neededBy}
          all={`/resources?needs=${encodeURIComponent(key)}`}
        />
      </div>
    </Section>
  )
}

/** Counts the boxes of a column, and one more for the link to the hidden ones. */
function countRows({ items, total }: Near): number {
  return items.length + (total > items.length ? 1 : 0)
}

function Side({ title, near: { items, total }, all }: { title: string; near: Near; all: string }) {
  const rest = total - items.length
  return (
    <div>
      <h3>
        {title} <span className="soft">{total}</span>
      </h3>
      {total === 0 && <p className="soft small">Nothing known.</p>}
      <ul>
        {items.map(({ key, relation, firing }) => (
          <li key={key} className={firing > 0 ? 'fires' : undefined}>
            <Link className="mono" title={inertText(key)} href={`/resources/${encodeURIComponent(key)}`}>
              <Inert text={key} />
            </Link>
            <span className="small">
              <span className="soft">{words[relation] ?? relation}</span> <Fires count={firing} />
            </span>
          </li>
        ))}
        {rest > 0 && (
          <li className="more">
            <Link href={all}>and {rest.toLocaleString('en')} more</Link>
          </li>
        )}
      </ul>
    </div>
  )
}

const words: Partial<Record<RelationKind, string>> = {
  runs_on: 'runs on',
  belongs_to: 'belongs to',
  depends_on: 'depends on',
}

function Fires({ count }: { count: number }) {
  if (count === 0) return null
  return <Mark shape="triangle" tone="broken" word={count === 1 ? '1 alert fires' : `${count} alerts fire`} />
}

/** Draws a curve from each box of a side to the resource in the middle. */
function Curves({ from, rows, isLeft }: { from: number; rows: number; isLeft: boolean }) {
  const height = rows * pitch
  const middle = height / 2
  const ends = Array.from({ length: from }, (_, at) => middle + (at - (from - 1) / 2) * pitch)
  const [side, own] = isLeft ? [0, gapWidth] : [gapWidth, 0]
  const half = gapWidth / 2
  return (
    <svg viewBox={`0 0 ${gapWidth} ${height}`} width={gapWidth} height={height} aria-hidden="true">
      {ends.map((y) => (
        <path key={y} d={`M${side} ${y}C${half} ${y} ${half} ${middle} ${own} ${middle}`} />
      ))}
    </svg>
  )
}
