import { useState } from 'react'
import { formatCount } from '../../domain/format.ts'
import type { PlacementProblem } from '../../domain/placement.ts'
import { inertText } from '../inert.tsx'
import {
  barWidth,
  fitText,
  formatFree,
  getLabel,
  layout,
  listAffectedHosts,
  listPlanned,
  type PictureHost,
  type PlanToDraw,
  type VmBlock,
} from './layout.ts'
import { maxRules, RuleLines, Rules, ruleHeight } from './rule-lines.tsx'

const narrowWidth = 340
const narrowBarHeight = 18
const aloneHeight = 40
const narrowRowHeight = 82
const narrowTop = 14

type NarrowProps = { rows: PictureHost[]; largest: number; label: string; title: string; isAlone: boolean }

/**
 * The same plan for a phone: before over the position, with who of the plan is there by the number of its step. One bar alone is as high as
 * both: what stands below does not move as a person goes on.
 */
function NarrowPicture({ rows, largest, label, title, isAlone }: NarrowProps) {
  const height =
    narrowRowHeight + ruleHeight * Math.max(0, ...rows.map(({ rules }) => Math.min(rules.length, maxRules)))
  return (
    <svg
      className="narrow-only"
      viewBox={`0 0 ${narrowWidth} ${narrowTop + rows.length * height}`}
      role="img"
      aria-label={label}
    >
      <text x={0} y={9} className="head">
        {isAlone ? title : `upper bar: before; lower bar: ${title}`}
      </text>
      {rows.map((row, index) => {
        const y = narrowTop + index * height
        const free = formatFree(row, row.now, isAlone ? undefined : row.before)
        const name = `${inertText(row.name)}${row.state === 'live' ? '' : `, ${row.state}`}`
        const capacity = (row.ramMib / largest) * narrowWidth
        const dead = row.state === 'dead' ? ' dead' : ''
        return (
          <g key={row.name}>
            <text x={0} y={y + 13} className={`host${dead}`}>
              {fitText(name, narrowWidth - free.length * 5.6 - 8)}
            </text>
            <text x={narrowWidth} y={y + 13} className="soft free end">
              {free}
            </text>
            <text x={0} y={y + 72} className="planned">
              {listPlanned(uniqueBlocks(row), narrowWidth)}
            </text>
            <RuleLines rules={row.rules} x={0} y={y + 72} width={narrowWidth} />
            {(isAlone ? [row.now] : [row.before, row.now]).map(({ blocks }, half) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the first is before, the second now
              <g key={half}>
                <rect
                  x={0.5}
                  y={y + 18 + half * 22}
                  width={capacity - 1}
                  height={isAlone ? aloneHeight : narrowBarHeight}
                  rx={2}
                  className={`bar${dead}`}
                />
                {blocks.map((block) => (
                  <NarrowVm
                    key={block.vm}
                    block={block}
                    y={y + 18 + half * 22}
                    height={isAlone ? aloneHeight : narrowBarHeight}
                  />
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
function uniqueBlocks({ before, now }: PictureHost): VmBlock[] {
  return [...new Map([...before.blocks, ...now.blocks].map((block) => [block.vm, block])).values()]
}

function NarrowVm({ block, y, height }: { block: VmBlock; y: number; height: number }) {
  const scale = narrowWidth / barWidth
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

const nameWidth = 112
const gap = 72
const rowHeight = 66
const barHeight = 22
const top = 24
const nowAt = nameWidth + barWidth + gap
const width = nowAt + barWidth + 4
/** Before anything is done there is one picture, and it takes the place of both. */
const aloneScale = (nowAt + barWidth - nameWidth) / barWidth

type Props = {
  proposal: PlanToDraw
  problem: PlacementProblem
  /** See `lastPosition`. */
  position: number
  /** What the position is called: `after`, or what goes on. */
  title: string
}

/**
 * A plan as a picture: every host a bar of its memory. At position 0 as it is; then before on the left, at the position on the right, what
 * moved drawn across. Which VMs a host does not take, and why, stands at its bar.
 */
export function PlacementPicture({ proposal, problem, position, title }: Props) {
  const [showsAll, setShowsAll] = useState(false)
  const touched = listAffectedHosts(problem, proposal)
  const all = layout(problem, proposal, position)
  const rows = showsAll ? all : all.filter(({ isTouched }) => isTouched)
  const largest = Math.max(1, ...problem.hosts.map(({ ramMib }) => ramMib))
  const isCut = touched.size > all.filter(({ isTouched }) => isTouched).length
  const isAlone = position === 0
  const rowsHeight = rowHeight + ruleHeight * Math.max(0, ...rows.map(({ rules }) => Math.min(rules.length, maxRules)))
  return (
    <div>
      <NarrowPicture rows={rows} largest={largest} title={title} isAlone={isAlone} label={describePlan(proposal)} />
      <svg
        className="wide"
        viewBox={`0 0 ${width} ${top + rows.length * rowsHeight}`}
        role="img"
        aria-label={describePlan(proposal)}
      >
        {!isAlone && (
          <text x={nameWidth} y={12} className="head">
            before
          </text>
        )}
        <text x={isAlone ? nameWidth : nowAt} y={12} className="head">
          {title}
        </text>
        {rows.map((row, index) => (
          <Host
            key={row.name}
            row={row}
            y={top + index * rowsHeight}
            capacity={(row.ramMib / largest) * barWidth}
            isAlone={isAlone}
          />
        ))}
        {!isAlone && moves(rows, rowsHeight).map((move) => <Move key={move.vm} {...move} />)}
      </svg>
      <Untouched count={problem.hosts.length - touched.size} isShown={showsAll} show={setShowsAll} />
      <Rules barred={proposal.barred ?? []} />
      {isCut && (
        <p className="soft small">
          There are more hosts in this plan than are drawn: those that a step uses are there while it runs.
        </p>
      )}
    </div>
  )
}

/** Hosts that nothing happens to are counted, and drawn when a person wants to see them. */
function Untouched({ count, isShown, show }: { count: number; isShown: boolean; show(isShown: boolean): void }) {
  if (count <= 0) return null
  return (
    <p className="soft small">
      {formatCount(count, 'host')} {count === 1 ? 'is' : 'are'} not touched.{' '}
      <button type="button" className="bare" aria-expanded={isShown} onClick={() => show(!isShown)}>
        {isShown ? 'hide' : 'show'}
        <span className="visually-hidden"> the hosts that are not touched</span>
      </button>
    </p>
  )
}

type HostProps = { row: PictureHost; y: number; capacity: number; isAlone: boolean }

function Host({ row, y, capacity, isAlone }: HostProps) {
  const lost = row.state === 'dead' ? ' dead' : ''
  const under = [row.state === 'live' ? null : row.state, row.rack && inertText(row.rack)].filter(Boolean).join(', ')
  const scale = isAlone ? aloneScale : 1
  return (
    <g>
      <text x={0} y={y + 12} className="host">
        <Fitting text={inertText(row.name)} />
      </text>
      <text x={0} y={y + 25} className={`soft${lost}`}>
        <Fitting text={under} />
      </text>
      {(isAlone ? [row.now] : [row.before, row.now]).map((bar, half) => {
        const x = half === 0 ? nameWidth : nowAt
        const isLast = isAlone || half === 1
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: the first is before, the second now
          <g key={half}>
            <rect x={x} y={y} width={capacity * scale} height={barHeight} rx={2} className={`bar${lost}`} />
            {bar.blocks.map((block) => (
              <Vm key={block.vm} block={block} x={x} y={y} scale={scale} />
            ))}
            <text x={x} y={y + barHeight + 16} className="planned">
              {listPlanned(bar.blocks, barWidth * scale)}
            </text>
            <text x={x} y={y + barHeight + 28} className="soft free">
              {formatFree(row, bar, isAlone || half === 0 ? undefined : row.before)}
            </text>
            {isLast && <RuleLines rules={row.rules} x={x} y={y + barHeight + 28} width={barWidth * scale} />}
          </g>
        )
      })}
    </g>
  )
}

/** A text in the column of names; where it is cut, the whole of it on hover. */
function Fitting({ text }: { text: string }) {
  const shown = fitText(text, nameWidth - 6)
  return (
    <>
      {shown !== text && <title>{text}</title>}
      {shown}
    </>
  )
}

function Vm({ block, x, y, scale }: { block: VmBlock; x: number; y: number; scale: number }) {
  const [left, size] = [x + block.x * scale, block.width * scale]
  return (
    <g>
      <title>{`${inertText(block.vm)}, ${block.ramMib} MiB${block.running ? '' : ', stopped'}`}</title>
      <rect
        x={left + 1}
        y={y + 2}
        width={Math.max(1, size - 2)}
        height={barHeight - 4}
        rx={2}
        className={`vm ${block.look}${block.running ? '' : ' off'}`}
      />
      <text x={left + size / 2} y={y + 15} className={`label ${block.look}`}>
        {getLabel(block, size)}
      </text>
    </g>
  )
}

type Line = { vm: string; path: string; runs: boolean; from: [x: number, y: number]; to: [x: number, y: number] }

function Move({ path, runs, from, to }: Line) {
  return (
    <g>
      <path d={path} className={runs ? 'move runs' : 'move'} />
      <circle cx={from[0]} cy={from[1]} r={2.5} className="end-of-move from" />
      <path d={`M${to[0] - 3.5} ${to[1] - 5}h7l-3.5 6z`} className="end-of-move to" />
    </g>
  )
}

/**
 * Out of the lower edge of a block on the left, along below its bar to the gap, across, and down into the block that it has become, or
 * is becoming, on the right. Lines that share a bar keep a distance.
 */
function moves(rows: PictureHost[], rowsHeight: number): Line[] {
  const found: Line[] = []
  const taken = { from: new Map<number, number>(), to: new Map<number, number>() }
  const takeTrack = (side: 'from' | 'to', row: number) => {
    const track = taken[side].get(row) ?? 0
    taken[side].set(row, track + 1)
    return (track % 3) * 2.5
  }
  for (const [toRow, row] of rows.entries()) {
    for (const { vm, look, x, width: size } of row.now.blocks) {
      if (look !== 'moved' && look !== 'comes') continue
      const fromRow = rows.findIndex(({ before }) => before.blocks.some((block) => block.vm === vm))
      const block = rows[fromRow]?.before.blocks.find((each) => each.vm === vm)
      if (!block || fromRow === toRow) continue
      const from: Line['from'] = [nameWidth + block.x + block.width / 2, top + fromRow * rowsHeight + barHeight - 2]
      const to: Line['to'] = [nowAt + x + size / 2, top + toRow * rowsHeight + 1]
      const low = top + fromRow * rowsHeight + barHeight + 2.5 + takeTrack('from', fromRow)
      const high = top + toRow * rowsHeight - 4 - takeTrack('to', toRow)
      const [left, right] = [nowAt - gap + 4, nowAt - 4]
      const bend = (right - left) / 2
      const across = `C${left + bend} ${low} ${right - bend} ${high} ${right} ${high}`
      const path = `M${from[0]} ${from[1]}V${low}H${left}${across}H${to[0]}V${to[1] - 4}`
      found.push({ vm, path, runs: look === 'comes', from, to })
    }
  }
  return found
}

function describePlan({ intent, steps }: PlanToDraw): string {
  const moved = steps.map(({ action, vm, from, to }) => `${action} ${vm}${from ? ` from ${from}` : ''} to ${to}`)
  return inertText(`Plan to ${intent}: ${moved.join('; ')}.`)
}
