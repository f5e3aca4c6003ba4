import type { PlacementProblem } from '../../domain/placement.ts'
import { inertText } from '../markdown.tsx'
import { type Block, formatFree, type HostRow, layout, listTouched, type PlanToDraw } from './layout.ts'
import { NarrowPicture } from './narrow-picture.tsx'

const nameWidth = 132
const barWidth = 250
const gap = 84
const rowHeight = 46
const barHeight = 22
const top = 22
const nowAt = nameWidth + barWidth + gap
const width = nowAt + barWidth + 4

type Props = {
  proposal: PlanToDraw
  problem: PlacementProblem
  /** See `lastPosition`. */
  position: number
  /** What the position is called: `after`, or what goes on. */
  title: string
}

/** A plan as a picture: every host a bar of its memory, before on the left, at a position on the right, what moved drawn across. */
export function PlacementPicture({ proposal, problem, position, title }: Props) {
  const rows = layout(problem, proposal, barWidth, position)
  const largest = Math.max(1, ...problem.hosts.map(({ ramMib }) => ramMib))
  const height = top + rows.length * rowHeight
  const isCut = listTouched(problem, proposal).size > rows.filter(({ isTouched }) => isTouched).length
  return (
    <div>
      <NarrowPicture rows={rows} largest={largest} label={describePlan(proposal)} title={title} />
      <svg className="wide" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={describePlan(proposal)}>
        <text x={nameWidth} y={12} className="head">
          before
        </text>
        <text x={nowAt} y={12} className="head">
          {title}
        </text>
        {rows.map((row, index) => (
          <Host key={row.name} row={row} y={top + index * rowHeight} capacity={(row.ramMib / largest) * barWidth} />
        ))}
        {moves(rows).map(({ vm, path, runs }) => (
          <path key={vm} d={path} className={runs ? 'move runs' : 'move'} />
        ))}
      </svg>
      {rows.length < problem.hosts.length && (
        <p className="soft small">
          {isCut
            ? 'There are more hosts in this plan than are drawn: those that a step uses are there while it runs.'
            : 'Of the hosts that nothing happens to not all are drawn.'}
        </p>
      )}
    </div>
  )
}

function Host({ row, y, capacity }: { row: HostRow; y: number; capacity: number }) {
  const lost = row.state === 'dead' ? ' dead' : ''
  return (
    <g>
      <text x={0} y={y + 12} className="host">
        {inertText(row.name)}
      </text>
      <text x={0} y={y + 25} className={`soft${lost}`}>
        {[row.state === 'live' ? null : row.state, row.rack && inertText(row.rack)].filter(Boolean).join(', ')}
      </text>
      {[row.before, row.now].map((bar, half) => {
        const x = half === 0 ? nameWidth : nowAt
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: the first is before, the second now
          <g key={half}>
            <rect x={x} y={y} width={capacity} height={barHeight} rx={2} className={`bar${lost}`} />
            {bar.blocks.map((block) => (
              <Vm key={block.vm} block={block} x={x} y={y} />
            ))}
            <text x={x} y={y + barHeight + 11} className="soft free">
              {formatFree(row, bar)}
            </text>
          </g>
        )
      })}
    </g>
  )
}

function Vm({ block, x, y }: { block: Block; x: number; y: number }) {
  return (
    <g>
      <title>{`${inertText(block.vm)}, ${block.ramMib} MiB${block.running ? '' : ', stopped'}`}</title>
      <rect
        x={x + block.x + 1}
        y={y + 2}
        width={Math.max(1, block.width - 2)}
        height={barHeight - 4}
        rx={2}
        className={`vm ${block.look}${block.running ? '' : ' off'}`}
      />
      {block.width > 14 && (
        <text x={x + block.x + block.width / 2} y={y + 15} className={`label ${block.look}`}>
          {block.step ?? (block.width > 40 ? shortName(block.vm) : '')}
        </text>
      )}
    </g>
  )
}

/** From the right edge of a block on the left to the left edge of the one it has become, or is becoming, on the right. */
function moves(rows: HostRow[]): { vm: string; path: string; runs: boolean }[] {
  const found: { vm: string; path: string; runs: boolean }[] = []
  for (const [to, row] of rows.entries()) {
    for (const { vm, look } of row.now.blocks) {
      if (look !== 'moved' && look !== 'comes') continue
      const from = rows.findIndex(({ before }) => before.blocks.some((block) => block.vm === vm))
      if (from < 0 || from === to) continue
      const x1 = nameWidth + barWidth + 4
      const y1 = top + from * rowHeight + barHeight / 2
      const x2 = nowAt - 4
      const y2 = top + to * rowHeight + barHeight / 2
      const bend = (x2 - x1) / 2
      const path = `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`
      found.push({ vm, path, runs: look === 'comes' })
    }
  }
  return found
}

function shortName(vm: string): string {
  return inertText(vm).replace(/^vm-/, '').slice(0, 9)
}

function describePlan({ intent, steps }: PlanToDraw): string {
  const moved = steps.map(({ action, vm, from, to }) => `${action} ${vm}${from ? ` from ${from}` : ''} to ${to}`)
  return inertText(`Plan to ${intent}: ${moved.join('; ')}.`)
}
