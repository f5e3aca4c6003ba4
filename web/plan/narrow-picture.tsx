import { inertText } from '../markdown.tsx'
import { type Block, barWidth, fitText, formatFree, getLabel, type HostRow, listPlanned } from './layout.ts'
import { mostRules, RuleLines, ruleHeight } from './rule-lines.tsx'

const width = 340
const barHeight = 18
const aloneHeight = 40
const rowHeight = 82
const top = 14

type Props = { rows: HostRow[]; largest: number; label: string; title: string; isAlone: boolean }

/**
 * The same plan for a phone: before over the position, with who of the plan is there by the number of its step. One bar alone is as high as
 * both: what stands below does not move as a person goes on.
 */
export function NarrowPicture({ rows, largest, label, title, isAlone }: Props) {
  const height = rowHeight + ruleHeight * Math.max(0, ...rows.map(({ rules }) => Math.min(rules.length, mostRules)))
  return (
    <svg className="narrow-only" viewBox={`0 0 ${width} ${top + rows.length * height}`} role="img" aria-label={label}>
      <text x={0} y={9} className="head">
        {isAlone ? title : `upper bar: before; lower bar: ${title}`}
      </text>
      {rows.map((row, index) => {
        const y = top + index * height
        const free = formatFree(row, row.now, isAlone ? undefined : row.before)
        const name = `${inertText(row.name)}${row.state === 'live' ? '' : `, ${row.state}`}`
        const capacity = (row.ramMib / largest) * width
        const dead = row.state === 'dead' ? ' dead' : ''
        return (
          <g key={row.name}>
            <text x={0} y={y + 13} className={`host${dead}`}>
              {fitText(name, width - free.length * 5.6 - 8)}
            </text>
            <text x={width} y={y + 13} className="soft free end">
              {free}
            </text>
            <text x={0} y={y + 72} className="planned">
              {listPlanned(uniqueBlocks(row), width)}
            </text>
            <RuleLines rules={row.rules} x={0} y={y + 72} width={width} />
            {(isAlone ? [row.now] : [row.before, row.now]).map(({ blocks }, half) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the first is before, the second now
              <g key={half}>
                <rect
                  x={0.5}
                  y={y + 18 + half * 22}
                  width={capacity - 1}
                  height={isAlone ? aloneHeight : barHeight}
                  rx={2}
                  className={`bar${dead}`}
                />
                {blocks.map((block) => (
                  <Vm key={block.vm} block={block} y={y + 18 + half * 22} height={isAlone ? aloneHeight : barHeight} />
                ))}
              </g>
            ))}
          </g>
        )
      })}
    </svg>
  )
}

/** Each VM once that was or is there. */
function uniqueBlocks({ before, now }: HostRow): Block[] {
  return [...new Map([...before.blocks, ...now.blocks].map((block) => [block.vm, block])).values()]
}

function Vm({ block, y, height }: { block: Block; y: number; height: number }) {
  const scale = width / barWidth
  return (
    <>
      <rect
        x={block.x * scale + 1.5}
        y={y + 2}
        width={Math.max(1, block.width * scale - 3)}
        height={height - 4}
        rx={2}
        className={`vm ${block.look}${block.running ? '' : ' off'}`}
      />
      <text x={(block.x + block.width / 2) * scale} y={y + height / 2 + 4} className={`label ${block.look}`}>
        {getLabel(block, block.width * scale)}
      </text>
    </>
  )
}
