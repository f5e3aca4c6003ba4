import { type RefObject, useLayoutEffect, useRef, useState } from 'react'
import { formatCount } from '../../domain/format.ts'
import type { PlacementProblem } from '../../domain/placement.ts'
import { inertText } from '../inert.tsx'
import {
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
import { listLines, MoveLine } from './move-lines.tsx'
import { maxRules, RuleLines, Rules, ruleHeight } from './rule-lines.tsx'

/**
 * Width below which two bars do not fit side by side, so that the former one is above the present
 * one.
 */
const leastWidth = 520
/** Pixels between the bars before and at the position, where the lines cross. */
const gap = 72
const barHeight = 28
const stackedHeight = 21
const [headHeight, titleHeight, plannedHeight, rowGap] = [22, 20, 20, 14]

/**
 * The measures of a drawing in pixels of the screen, so that its words have the same size at every
 * width.
 */
export type Frame = {
  bar: number
  barHeight: number
  /** The left edge of the bars that show the chosen position in the plan. */
  nowAt: number
  /** True if there is only one picture, before the plan starts. */
  isAlone: boolean
  isStacked: boolean
  /** The upper edge of the bar of each row. */
  tops: number[]
  height: number
}

function toFrame(rows: PictureHost[], width: number, isAlone: boolean): Frame {
  const isStacked = width < leastWidth
  const isSide = !isStacked && !isAlone
  const bar = isSide ? (width - gap) / 2 : width
  // A single bar is as high as both, so that the content below does not move.
  const bars = isStacked ? 2 * stackedHeight + 2 : barHeight
  let y = titleHeight
  const tops = rows.map((row) => {
    const top = y + headHeight
    const isPlanned = [...row.before.blocks, ...row.now.blocks].some(({ step }) => step !== null)
    const rules = Math.min(row.rules.length, maxRules) * ruleHeight
    y = top + bars + (isPlanned ? plannedHeight : 0) + rules + rowGap
    return top
  })
  const own = isStacked && !isAlone ? stackedHeight : bars
  return { bar, barHeight: own, nowAt: isSide ? bar + gap : 0, isAlone, isStacked, tops, height: y }
}

type Props = {
  proposal: PlanToDraw
  problem: PlacementProblem
  /** The position, as in `lastPosition`. */
  position: number
  /** The name of the position: `after`, or the running step. */
  title: string
}

/**
 * Draws a plan with every host as a bar of its memory. At position 0 it shows the present.
 * Otherwise it shows before and position side by side with the moves in between, or above each
 * other on a narrow screen. VMs that a host cannot take, and why, are shown at its bar.
 */
export function PlacementPicture({ proposal, problem, position, title }: Props) {
  const [showsAll, setShowsAll] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const width = useWidth(box)
  const touched = listAffectedHosts(problem, proposal)
  const all = layout(problem, proposal, position)
  const rows = showsAll ? all : all.filter(({ isTouched }) => isTouched)
  const isCut = touched.size > all.filter(({ isTouched }) => isTouched).length
  return (
    <div ref={box}>
      {width > 0 && (
        <Picture
          rows={rows}
          capacity={Math.max(1, ...problem.hosts.map(({ ramMib }) => ramMib))}
          frame={toFrame(rows, width, position === 0)}
          title={title}
          label={describePlan(proposal)}
          width={width}
        />
      )}
      <Untouched count={problem.hosts.length - touched.size} isShown={showsAll} show={setShowsAll} />
      <Rules barred={proposal.barred ?? []} />
      {isCut && (
        <p className="soft">
          The picture leaves out some hosts of this plan. A host that a step uses appears while the step runs.
        </p>
      )}
    </div>
  )
}

/**
 * Measures the width of the picture. The width is 0 until it is known, and while the picture is
 * folded.
 */
function useWidth(box: RefObject<HTMLDivElement | null>): number {
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const element = box.current
    if (!element) return
    const measure = () => setWidth(element.clientWidth)
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [box])
  return width
}

type PictureProps = {
  rows: PictureHost[]
  /** The memory of the largest host, whose bar has the full width. */
  capacity: number
  frame: Frame
  title: string
  label: string
  width: number
}

function Picture({ rows, capacity, frame, title, label, width }: PictureProps) {
  const { isAlone, isStacked, nowAt, height } = frame
  return (
    <svg className={isStacked ? 'stacked' : 'beside'} width={width} height={height} role="img" aria-label={label}>
      <text y={12} className="soft">
        {isAlone ? title : isStacked ? `upper bar: before; lower bar: ${title}` : 'before'}
      </text>
      {nowAt > 0 && (
        <text x={nowAt} y={12} className="soft">
          {title}
        </text>
      )}
      {rows.map((row, index) => (
        <Host key={row.name} row={row} share={row.ramMib / capacity} frame={frame} y={frame.tops[index] ?? 0} />
      ))}
      {nowAt > 0 && listLines(rows, frame).map((each) => <MoveLine key={each.path} {...each} />)}
    </svg>
  )
}

/** Shows how many hosts the plan does not touch, and draws them if a person wants to see them. */
function Untouched({ count, isShown, show }: { count: number; isShown: boolean; show(isShown: boolean): void }) {
  if (count <= 0) return null
  return (
    <p className="soft">
      {formatCount(count, 'host')} {count === 1 ? 'is' : 'are'} not touched.{' '}
      <button type="button" className="bare" aria-expanded={isShown} onClick={() => show(!isShown)}>
        {isShown ? 'hide' : 'show'}
        <span className="visually-hidden"> the untouched hosts</span>
      </button>
    </p>
  )
}

type HostProps = { row: PictureHost; share: number; frame: Frame; y: number }

/**
 * Draws a host: name, free capacity, bars, the VMs of the plan on them, and the VMs that it cannot
 * take.
 */
function Host({ row, share, frame, y }: HostProps) {
  const { bar, isAlone, isStacked, nowAt } = frame
  const [before, now] = [
    { x: 0, y, content: row.before, was: undefined },
    { x: nowAt, y, content: row.now, was: isAlone ? undefined : row.before },
  ]
  const sides = isAlone ? [now] : isStacked ? [before, { ...now, y: y + frame.barHeight + 2 }] : [before, now]
  const below = (sides.at(-1)?.y ?? y) + frame.barHeight
  const planned = isStacked ? [{ x: 0, blocks: uniqueBlocks(row) }] : sides.map(({ x, content }) => ({ x, ...content }))
  const isPlanned = uniqueBlocks(row).some(({ step }) => step !== null)
  return (
    <g>
      {(isStacked ? [now] : sides).map(({ x, content, was }) => (
        <Head key={x} row={row} x={x} y={y} room={bar} free={formatFree(row, content, was)} />
      ))}
      {sides.map(({ x, y: top, content }) => (
        <g key={`${x} ${top}`}>
          <rect
            x={x + 0.5}
            y={top + 0.5}
            width={Math.max(1, share * bar - 1)}
            height={frame.barHeight - 1}
            rx={4}
            className={`bar${row.state === 'dead' ? ' dead' : ''}`}
          />
          {content.blocks.map((block) => (
            <Vm key={block.vm} block={block} x={x} y={top} frame={frame} />
          ))}
        </g>
      ))}
      {planned.map(({ x, blocks }) => (
        <text key={x} x={x} y={below + 18} className="planned">
          {listPlanned(blocks, bar)}
        </text>
      ))}
      <RuleLines rules={row.rules} x={nowAt} y={below + (isPlanned ? 18 : 0)} width={bar} />
    </g>
  )
}

type HeadProps = { row: PictureHost; x: number; y: number; room: number; free: string }

/**
 * Draws the name of a host, with state and rack if there is room, and the free capacity at the
 * other end.
 */
function Head({ row, x, y, room, free }: HeadProps) {
  const left = room - fitWidth(free) - 8
  const name = inertText(row.name)
  const state = row.state === 'live' ? '' : row.state
  const rack = row.rack === null ? '' : inertText(row.rack)
  const isWhole = fitWidth(`${name} ${state} ${rack}`) <= left
  return (
    <>
      <text x={x} y={y - 9}>
        {!isWhole && <title>{[name, state, rack].filter(Boolean).join(', ')}</title>}
        <tspan className="host">{fitText(name, left - (state ? fitWidth(state) + 6 : 0))}</tspan>
        {state && <tspan className={state === 'dead' ? 'dead' : 'soft'}> {state}</tspan>}
        {isWhole && <tspan className="soft"> {rack}</tspan>}
      </text>
      <text x={x + room} y={y - 9} className="soft end">
        {free}
      </text>
    </>
  )
}

const fitWidth = (text: string) => text.length * 6.4

/** Lists each VM that was or is on the host once. */
function uniqueBlocks({ before, now }: PictureHost): VmBlock[] {
  return [...new Map([...before.blocks, ...now.blocks].map((block) => [block.vm, block])).values()]
}

type VmProps = { block: VmBlock; x: number; y: number; frame: Frame }

function Vm({ block, x, y, frame: { bar, barHeight } }: VmProps) {
  const [left, size] = [x + block.x * bar, block.width * bar]
  return (
    <g>
      <title>{`${inertText(block.vm)}, ${block.ramMib} MiB${block.running ? '' : ', stopped'}`}</title>
      <rect
        x={left + 2}
        y={y + 2.5}
        width={Math.max(1, size - 4)}
        height={barHeight - 5}
        rx={2}
        className={`vm ${block.look}${block.running ? '' : ' off'}`}
      />
      <text x={left + size / 2} y={y + barHeight / 2 + 4} className={`label ${block.look}`}>
        {getLabel(block, size)}
      </text>
    </g>
  )
}

function describePlan({ intent, steps }: PlanToDraw): string {
  const moved = steps.map(({ action, vm, from, to }) => `${action} ${vm}${from ? ` from ${from}` : ''} to ${to}`)
  return inertText(`Plan to ${intent}: ${moved.join('; ')}.`)
}
