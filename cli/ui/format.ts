import type { ApprovalStatus } from '../../domain/approval.ts'
import type { IncidentStatus, Severity } from '../../domain/incident.ts'
import { type TimeZone, tellMoment } from '../../domain/told-time.ts'
import type { Risk } from '../../domain/tool.ts'
import { paint } from './terminal.ts'

/** The time between two moments, as `+0:07.2` or `+1:02:03`. */
export function formatElapsed(fromIso: string, toIso: string): string {
  const tenths = Math.max(0, Math.round((Date.parse(toIso) - Date.parse(fromIso)) / 100))
  const seconds = Math.floor(tenths / 10)
  const two = (value: number) => String(value).padStart(2, '0')
  const minutes = Math.floor(seconds / 60)
  if (minutes >= 60) return `+${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`
  return `+${minutes}:${two(seconds % 60)}.${tenths % 10}`
}

/** A duration, short enough for a column: `42 s`, `7 min`, `3 h`, `5 d`. */
export function formatSpan(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000))
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86_400)} d`
}

let zone: TimeZone = 'local'

/** Formats all times in UTC from now on, for `--utc`. */
export function useUtc(): void {
  zone = 'utc'
}

/** A time for people, to the second: local with its offset, or UTC after `useUtc`. */
export function formatMoment(iso: string): string {
  return tellMoment(iso, zone)
}

type Style = Parameters<typeof paint>[0]

const stateStyles: Record<Severity | IncidentStatus | ApprovalStatus | Risk, Style> = {
  critical: ['bold', 'red'],
  warning: 'yellow',
  info: 'cyan',
  open: 'yellow',
  investigating: 'cyan',
  awaiting_approval: ['bold', 'magenta'],
  resolved: 'green',
  escalated: ['bold', 'red'],
  cancelled: 'dim',
  pending: ['bold', 'magenta'],
  approved: 'green',
  denied: 'red',
  expired: 'red',
  withdrawn: 'dim',
  consumed: 'green',
  none: 'dim',
  low: 'green',
  medium: 'yellow',
  high: ['bold', 'red'],
}

/** The word of a state, in its colour. */
export function paintState(state: keyof typeof stateStyles): string {
  return paint(stateStyles[state] ?? 'reset', state)
}
