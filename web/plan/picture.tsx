import type { PlacementProblem, Proposal } from '../../domain/placement.ts'
import { Inert, inertText } from '../inert.tsx'
import { type Block, type HostRow, layout } from './layout.ts'
import { NarrowPicture } from './narrow-picture.tsx'

const nameWidth = 132
const barWidth = 250
const gap = 84
const rowHeight = 40
const barHeight = 22
const top = 22
const afterAt = nameWidth + barWidth + gap
const width = afterAt + barWidth + 4

/** A plan as a picture: every host a bar of its memory, before on the left, after on the right, what moves drawn across. */
export function PlacementPicture({
  proposal,
  problem,
}: {
  proposal: Pick<Proposal, 'steps' | 'state' | 'reason' | 'intent'>
  problem: PlacementProblem
}) {
  const rows = layout(problem, proposal.steps, barWidth)
  const largest = Math.max(1, ...problem.hosts.map(({ ramMib }) => ramMib))
  const height = top + rows.length * rowHeight
  const hidden = problem.hosts.length - rows.length
  return (
    <figure className="placement">
      <div>
        <NarrowPicture rows={rows} largest={largest} label={inWords(proposal)} />
        <svg className="wide" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={inWords(proposal)}>
          <text x={nameWidth} y={12} className="head">
            before
          </text>
          <text x={afterAt} y={12} className="head">
            after
          </text>
          {rows.map((row, index) => (
            <Host key={row.name} row={row} y={top + index * rowHeight} capacity={(row.ramMib / largest) * barWidth} />
          ))}
          {moves(rows).map(({ vm, path }) => (
            <path key={vm} d={path} className="move" />
          ))}
        </svg>
      </div>
      <figcaption>
        <ol className="steps">
          {proposal.steps.map(({ step, action, vm, from, to }) => (
            <li key={step}>
              <span className="soft">{step}.</span> {action}{' '}
              <code>
                <Inert text={vm} />
              </code>
              {from && (
                <>
                  {' '}
                  from{' '}
                  <code>
                    <Inert text={from} />
                  </code>
                </>
              )}{' '}
              to{' '}
              <code>
                <Inert text={to} />
              </code>
            </li>
          ))}
        </ol>
        {hidden > 0 && <p className="soft small">{hidden} more hosts, which nothing happens to, are not drawn.</p>}
      </figcaption>
    </figure>
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
      {[nameWidth, afterAt].map((x) => (
        <rect key={x} x={x} y={y} width={capacity} height={barHeight} rx={2} className={`bar${lost}`} />
      ))}
      {row.before.map((block) => (
        <Vm key={block.vm} block={block} x={nameWidth} y={y} />
      ))}
      {row.after.map((block) => (
        <Vm key={block.vm} block={block} x={afterAt} y={y} />
      ))}
    </g>
  )
}

function Vm({ block, x, y }: { block: Block; x: number; y: number }) {
  const kind = block.step !== null ? 'moving' : block.running ? 'still' : 'stopped'
  return (
    <g>
      <title>{`${inertText(block.vm)}, ${block.ramMib} MiB${block.running ? '' : ', stopped'}`}</title>
      <rect
        x={x + block.x + 1}
        y={y + 2}
        width={Math.max(1, block.width - 2)}
        height={barHeight - 4}
        rx={2}
        className={`vm ${kind}${block.running ? '' : ' off'}`}
      />
      {block.width > 14 && (
        <text x={x + block.x + block.width / 2} y={y + 15} className={`label ${kind}`}>
          {block.step ?? (block.width > 40 ? shortName(block.vm) : '')}
        </text>
      )}
    </g>
  )
}

/** From the right edge of a block on the left to the left edge of the same one on the right. */
function moves(rows: HostRow[]): { vm: string; path: string }[] {
  const found: { vm: string; path: string }[] = []
  for (const [from, row] of rows.entries()) {
    for (const block of row.before.filter(({ step }) => step !== null)) {
      const to = rows.findIndex(({ after }) => after.some(({ vm }) => vm === block.vm))
      const end = rows[to]?.after.find(({ vm }) => vm === block.vm)
      if (!end || to === from) continue
      const x1 = nameWidth + barWidth + 4
      const y1 = top + from * rowHeight + barHeight / 2
      const x2 = afterAt - 4
      const y2 = top + to * rowHeight + barHeight / 2
      const bend = (x2 - x1) / 2
      found.push({ vm: block.vm, path: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` })
    }
  }
  return found
}

function shortName(vm: string): string {
  return inertText(vm).replace(/^vm-/, '').slice(0, 9)
}

function inWords({ intent, steps }: Pick<Proposal, 'intent' | 'steps'>): string {
  const told = steps.map(({ action, vm, from, to }) => `${action} ${vm}${from ? ` from ${from}` : ''} to ${to}`)
  return inertText(`Plan to ${intent}: ${told.join('; ')}.`)
}
