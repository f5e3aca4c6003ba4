import { inertText } from '../markdown.tsx'
import { type Block, formatFree, type HostRow } from './layout.ts'

const width = 340
const barHeight = 18
const rowHeight = 66
const top = 14

type Props = { rows: HostRow[]; largest: number; label: string; title: string }

/** The same plan for a phone: the hosts that it touches, before over the position, with the numbers of the steps. */
export function NarrowPicture({ rows, largest, label, title }: Props) {
  const touched = rows.filter(({ isTouched }) => isTouched)
  return (
    <svg
      className="narrow-only"
      viewBox={`0 0 ${width} ${top + touched.length * rowHeight}`}
      role="img"
      aria-label={label}
    >
      <text x={0} y={9} className="head">
        upper bar: before; lower bar: {title}
      </text>
      {touched.map((row, index) => {
        const y = top + index * rowHeight
        const capacity = (row.ramMib / largest) * width
        const dead = row.state === 'dead' ? ' dead' : ''
        return (
          <g key={row.name}>
            <text x={0} y={y + 13} className={`host${dead}`}>
              {inertText(row.name)}
              {row.state === 'live' ? '' : `, ${row.state}`}
            </text>
            <text x={width} y={y + 13} className="soft free end">
              {formatFree(row, row.now)}
            </text>
            {[row.before, row.now].map(({ blocks }, half) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the first is before, the second now
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
  return (
    <>
      <rect
        x={block.x * scale + 1.5}
        y={y + 2}
        width={Math.max(1, block.width * scale - 3)}
        height={barHeight - 4}
        rx={2}
        className={`vm ${block.look}${block.running ? '' : ' off'}`}
      />
      <text x={(block.x + block.width / 2) * scale} y={y + 13} className={`label ${block.look}`}>
        {getLabel(block, block.width * scale)}
      </text>
    </>
  )
}

/** The number of its step, or the beginning of its name, as far as there is room. */
function getLabel({ vm, step }: Block, width: number): string {
  if (step !== null) return width > 7 * String(step).length + 3 ? String(step) : ''
  return width > 35 ? inertText(vm).replace(/^vm-/, '').slice(0, 6) : ''
}
