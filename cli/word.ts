import type { ApprovalStatus } from '../domain/approval.ts'
import type { IncidentStatus, Severity } from '../domain/incident.ts'
import { remarks } from '../domain/status-words.ts'
import type { Risk } from '../domain/tool.ts'
import type { AnIncident } from './core.ts'
import { inert } from './inert.ts'
import { paint } from './terminal.ts'

type Style = Parameters<typeof paint>[0]

const styles: Record<Severity | IncidentStatus | ApprovalStatus | Risk, Style> = {
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

/** A state as its own word, in its colour. */
export function word(state: keyof typeof styles): string {
  return paint(styles[state] ?? 'reset', state)
}

/** Where an incident stands: its status, and what is to be known about it besides. */
export function standingOf(incident: AnIncident): string {
  return [word(incident.status), ...remarks(incident).map((each) => inert(each))].join(', ')
}
