import type { ApprovalStatus } from '../../domain/approval.ts'
import { formatMoment as formatMomentIn, type TimeZone } from '../../domain/format.ts'
import type { IncidentStatus, Severity } from '../../domain/incident.ts'
import type { Risk } from '../../domain/tool.ts'
import { paint } from './terminal.ts'

let zone: TimeZone = 'local'

/** Formats all times in UTC from now on, for `--utc`. */
export function useUtc(): void {
  zone = 'utc'
}

/** A time for people, to the second: local with its offset, or UTC after `useUtc`. */
export function formatMoment(iso: string): string {
  return formatMomentIn(iso, zone)
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
