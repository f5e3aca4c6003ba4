import type { ApprovalStatus } from '../domain/approval.ts'
import type { IncidentStatus, Severity } from '../domain/incident.ts'
import { remarks } from '../domain/status-words.ts'
import type { Risk } from '../domain/tool.ts'
import type { ApiIncident } from './core.ts'
import { inert } from './inert.ts'
import { paint } from './terminal.ts'

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

/** A state as its own word, in its colour. */
export function paintState(state: keyof typeof stateStyles): string {
  return paint(stateStyles[state] ?? 'reset', state)
}

/** Where an incident stands: its status, and what is to be known about it besides. */
export function describeStanding(incident: ApiIncident): string {
  return [paintState(incident.status), ...remarks(incident).map((each) => inert(each))].join(', ')
}
