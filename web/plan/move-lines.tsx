import type { PictureHost } from './layout.ts'
import type { Frame } from './picture.tsx'

/** A line with its ends and its path. `count` is how many VMs move along it. */
type Line = { path: string; runs: boolean; from: Point; to: Point; count: number }
type Point = [x: number, y: number]
type Moved = { fromRow: number; toRow: number; start: number; end: number; runs: boolean }

/**
 * The most separate lines. If there are more, all moves from one host to another share a line,
 * which is thicker for more moves.
 */
const maxLines = 12

export function MoveLine({ path, runs, from, to, count }: Line) {
  const tip = count > 0 ? `M${to[0] - 7} ${to[1] - 4}v8l7-4z` : `M${to[0] - 3.5} ${to[1] - 5}h7l-3.5 6z`
  return (
    <g>
      <path d={path} className={runs ? 'move runs' : 'move'} strokeWidth={Math.min(3, 1 + count / 8)} />
      <circle cx={from[0]} cy={from[1]} r={count > 0 ? 1.5 : 2.5} className="end-of-move from" />
      <path d={tip} className="end-of-move to" />
    </g>
  )
}

/** Lists the lines of VMs that have moved at this position, and of those that move now. */
export function listLines(rows: PictureHost[], frame: Frame): Line[] {
  const moved = listMoved(rows, frame)
  if (moved.length <= maxLines) return moved.map(lineOfVm(frame))
  const bundles = [...Map.groupBy(moved, ({ fromRow, toRow, runs }) => `${fromRow} ${toRow} ${runs}`).values()]
  return bundles.map(lineOfHosts(frame))
}

function listMoved(rows: PictureHost[], { bar, nowAt }: Frame): Moved[] {
  return rows.flatMap((row, toRow) =>
    row.now.blocks.flatMap(({ vm, look, x, width }) => {
      if (look !== 'moved' && look !== 'comes') return []
      const fromRow = rows.findIndex(({ before }) => before.blocks.some((block) => block.vm === vm))
      const block = rows[fromRow]?.before.blocks.find((each) => each.vm === vm)
      if (!block || fromRow === toRow) return []
      const start = (block.x + block.width / 2) * bar
      return [{ fromRow, toRow, start, end: nowAt + (x + width / 2) * bar, runs: look === 'comes' }]
    }),
  )
}

/**
 * Keeps lines that share a bar apart. Returns a function for the next free place at a side of a
 * row.
 */
function takeTracks(): (side: 'from' | 'to', row: number) => number {
  const taken = { from: new Map<number, number>(), to: new Map<number, number>() }
  return (side, row) => {
    const track = taken[side].get(row) ?? 0
    taken[side].set(row, track + 1)
    return track
  }
}

/**
 * Draws a line from the lower edge of a left block, below its bar to the gap, across the gap, and
 * down into the right block.
 */
function lineOfVm({ bar, barHeight, nowAt, tops }: Frame): (moved: Moved) => Line {
  const take = takeTracks()
  return ({ fromRow, toRow, start, end, runs }) => {
    const [fromTop, toTop] = [tops[fromRow] ?? 0, tops[toRow] ?? 0]
    const from: Point = [start, fromTop + barHeight - 3]
    const to: Point = [end, toTop + 2]
    const low = fromTop + barHeight + 2 + (take('from', fromRow) % 3) * 2
    const high = toTop - 3 - (take('to', toRow) % 3) * 2
    const [left, right] = [bar + 4, nowAt - 4]
    const middle = (left + right) / 2
    const across = `C${middle} ${low} ${middle} ${high} ${right} ${high}`
    const path = `M${from[0]} ${from[1]}V${low}H${left}${across}H${to[0]}V${to[1] - 4}`
    return { path, runs, from, to, count: 0 }
  }
}

/** Draws a line from the end of one bar to the beginning of the other. */
function lineOfHosts({ bar, barHeight, nowAt, tops }: Frame): (moved: Moved[]) => Line {
  const take = takeTracks()
  const inBar = (side: 'from' | 'to', row: number) => (tops[row] ?? 0) + 5 + ((take(side, row) * 7) % (barHeight - 8))
  return (moved) => {
    const [{ fromRow, toRow, runs }] = moved as [Moved]
    const from: Point = [bar + 4, inBar('from', fromRow)]
    const to: Point = [nowAt - 3, inBar('to', toRow)]
    const middle = (from[0] + to[0]) / 2
    const path = `M${from[0]} ${from[1]}C${middle} ${from[1]} ${middle} ${to[1]} ${to[0] - 7} ${to[1]}`
    return { path, runs, from, to, count: moved.length }
  }
}
