import { inertText } from '../inert.tsx'
import type { Block, HostRow } from './layout.ts'

const width = 340
const barHeight = 18
const rowHeight = 66

/** The same plan for a phone: the hosts that it touches, before over after, with the numbers of the steps. */
export function NarrowPicture({ rows, largest, label }: { rows: HostRow[]; largest: number; label: string }) {
  const touched = rows.filter((row) => [...row.before, ...row.after].some(({ step }) => step !== null))
  return (
    <svg className="narrow-only" viewBox={`0 0 ${width} ${touched.length * rowHeight}`} role="img" aria-label={label}>
      {touched.map((row, index) => {
        const y = index * rowHeight
        const capacity = (row.ramMib / largest) * width
        const dead = row.state === 'dead' ? ' dead' : ''
        return (
          <g key={row.name}>
            <text x={0} y={y + 12} className={`host${dead}`}>
              {inertText(row.name)}
              {row.state === 'live' ? '' : `, ${row.state}`}
            </text>
            {[row.before, row.after].map((blocks, half) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the first is before, the second after
              <g key={half}>
                <rect
                  x={0.5}
                  y={y + 18 + half * 22}
                  width={capacity - 1}
                  height={barHeight}
                  rx={2}
                  className={`bar${dead}`}
                />
                {blocks.map((block) => (
                  <Vm key={block.vm} block={block} y={y + 18 + half * 22} />
                ))}
              </g>
            ))}
          </g>
        )
      })}
    </svg>
  )
}

function Vm({ block, y }: { block: Block; y: number }) {
  const scale = width / 250
  const kind = block.step !== null ? 'moving' : block.running ? 'still' : 'stopped'
  return (
    <>
      <rect
        x={block.x * scale + 1.5}
        y={y + 2}
        width={Math.max(1, block.width * scale - 3)}
        height={barHeight - 4}
        rx={2}
        className={`vm ${kind}${block.running ? '' : ' off'}`}
      />
      <text x={(block.x + block.width / 2) * scale} y={y + 13} className={`label ${kind}`}>
        {block.step ?? (block.width > 26 ? inertText(block.vm).replace(/^vm-/, '').slice(0, 6) : '')}
      </text>
    </>
  )
}
