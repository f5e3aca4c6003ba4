import type { ToolReading } from '../kind.ts'
import { mostLines } from './query.ts'
import { summarizeLogs } from './summary.ts'

/** What a device answered of a log: lines with milliseconds since 1970, or null where a line tells no time. */
export type DeviceLog = { lines: readonly (readonly [number | null, string])[]; untilMs: number; isMore: boolean }

/**
 * The same summary as of a source of logs. The time that was asked for is compared with as long before it; lines that tell no time count as
 * written when the file was, and are compared with nothing.
 */
export function summarizeDeviceLog(
  { lines, untilMs, isMore }: DeviceLog,
  asked: { labels: Record<string, string>; contains: string[]; sinceSeconds: number },
  at: { nowMs: number; incidentBeganMs: number | null },
): ToolReading {
  const isTimed = lines.some(([atMs]) => atMs !== null)
  const fromMs = isTimed ? at.nowMs - asked.sinceSeconds * 1_000 : Number.NEGATIVE_INFINITY
  const all = lines.map(([atMs, text]) => ({ atMs: atMs ?? untilMs, text }))
  const found = all.filter(({ atMs }) => atMs >= fromMs)
  // What was cut off at the beginning is missing from the time before.
  const before = isTimed && !isMore ? all.filter(({ atMs }) => atMs < fromMs) : null
  const query = {
    labels: asked.labels,
    contains: asked.contains,
    excludes: [],
    window: formatWindow(asked.sinceSeconds),
  }
  const range = { fromMs: isTimed ? fromMs : 0, untilMs: isTimed ? at.nowMs : untilMs }
  const total = isMore && found.length >= mostLines ? null : found.length
  return summarizeLogs(query, { lines: found, total, before }, range, at.incidentBeganMs)
}

const formatWindow = (seconds: number): string =>
  seconds % 3_600 === 0 ? `${seconds / 3_600}h` : `${Math.round(seconds / 60)}m`
