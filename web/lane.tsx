import type { CSSProperties } from 'react'
import { formatMoment, formatTimeOfDay } from './time.ts'

const looks = {
  waits: 'waits for a person',
  escalated: 'escalated to people',
  work: 'at work',
  queued: 'queued',
  over: 'over',
} as const

type Window = [from: number, to: number]

/** `from` and `to` are milliseconds. A time before the window begins at its edge. */
export type BarProps = { window: Window; from: number; to: number; look: keyof typeof looks }

/** Returns the position of a time in a window, in percent of its width, limited to its edges. */
export function placeIn([from, to]: Window, at: number): string {
  const share = (at - from) / (to - from)
  return `${(100 * Math.min(1, Math.max(0, share))).toFixed(2)}%`
}

/** Draws one incident on the clock of its table, from its beginning to its end, or to now. */
export function Bar({ window, from, to, look }: BarProps) {
  const place = { '--a': placeIn(window, from), '--b': placeIn(window, to) } as CSSProperties
  const [began, ended] = [from, to].map((at) => formatMoment(new Date(at).toISOString()))
  const words = `${looks[look]}, ${began} to ${ended}`
  return (
    <span className="lane" title={words}>
      <i className={look} style={place} />
    </span>
  )
}

const ticks = 3

/** Draws the hours above the bars. The last word is "now". */
export function Axis({ window }: { window: Window }) {
  const [from, to] = window
  const times = Array.from({ length: ticks }, (_, index) => from + ((to - from) * index) / ticks)
  const isLong = to - from > 36 * 3_600_000
  return (
    <span className="lane axis" aria-hidden="true">
      {times.map((at) => (
        <span key={at} style={{ '--a': placeIn(window, at) } as CSSProperties}>
          {isLong
            ? formatMoment(new Date(at).toISOString()).slice(5, 10)
            : formatTimeOfDay(new Date(at).toISOString()).slice(0, 5)}
        </span>
      ))}
      <span className="now">now</span>
    </span>
  )
}
