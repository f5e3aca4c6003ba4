import { Fragment, type ReactNode } from 'react'
import type { ApprovalStatus } from '../domain/approval.ts'
import type { EventKind } from '../domain/event.ts'
import type { Incident, IncidentStatus, Severity } from '../domain/incident.ts'
import type { ResourceRef } from '../domain/registry.ts'
import { remarks } from '../domain/status-words.ts'
import type { Risk } from '../domain/tool.ts'
import { Inert } from './inert.tsx'

export type Tone = 'critical' | 'warning' | 'info' | 'good' | 'lamp' | 'quiet'
export type MarkShape =
  | 'disc'
  | 'ring'
  | 'triangle'
  | 'diamond'
  | 'square'
  | 'check'
  | 'cross'
  | 'bar'
  | 'half'
  | 'arrow'

/** Every kind of row: its word, its sign. A kind that is added to the log does not compile until it stands here. */
export const kinds: Record<EventKind, { word: string; shape: MarkShape; tone: Tone }> = {
  alert_received: { word: 'alert', shape: 'triangle', tone: 'warning' },
  looked: { word: 'look', shape: 'ring', tone: 'info' },
  noted: { word: 'noted', shape: 'bar', tone: 'quiet' },
  claimed: { word: 'started', shape: 'half', tone: 'info' },
  context_assembled: { word: 'context', shape: 'ring', tone: 'quiet' },
  model_answered: { word: 'model', shape: 'square', tone: 'info' },
  model_failed: { word: 'model failed', shape: 'cross', tone: 'warning' },
  correction_sent: { word: 'correction', shape: 'arrow', tone: 'warning' },
  call_judged: { word: 'policy check', shape: 'bar', tone: 'quiet' },
  tool_started: { word: 'call', shape: 'arrow', tone: 'info' },
  tool_output: { word: 'output', shape: 'bar', tone: 'quiet' },
  tool_finished: { word: 'result', shape: 'disc', tone: 'info' },
  step_started: { word: 'step', shape: 'arrow', tone: 'quiet' },
  step_finished: { word: 'step done', shape: 'disc', tone: 'quiet' },
  verification: { word: 'verified', shape: 'check', tone: 'good' },
  approval_requested: { word: 'approval requested', shape: 'diamond', tone: 'lamp' },
  approval_decided: { word: 'decided', shape: 'diamond', tone: 'good' },
  approval_expired: { word: 'expired', shape: 'cross', tone: 'warning' },
  approval_withdrawn: { word: 'withdrawn', shape: 'cross', tone: 'quiet' },
  grant_used: { word: 'approval used', shape: 'diamond', tone: 'quiet' },
  hint_confirmed: { word: 'hint confirmed', shape: 'check', tone: 'good' },
  hint_diverged: { word: 'hint did not fit', shape: 'cross', tone: 'warning' },
  budget_ended: { word: 'budget', shape: 'bar', tone: 'warning' },
  security_event: { word: 'security', shape: 'triangle', tone: 'critical' },
  resolved: { word: 'resolved', shape: 'check', tone: 'good' },
  escalated: { word: 'escalated', shape: 'arrow', tone: 'critical' },
  cancelled: { word: 'cancelled', shape: 'cross', tone: 'quiet' },
  capability_gap: { word: 'missing tool', shape: 'ring', tone: 'warning' },
  commented: { word: 'note', shape: 'ring', tone: 'quiet' },
  change_requested: { word: 'asked', shape: 'arrow', tone: 'info' },
  change_reviewed: { word: 'reviewed', shape: 'check', tone: 'good' },
  notified: { word: 'notified', shape: 'arrow', tone: 'quiet' },
}

const paths: Record<MarkShape, string> = {
  disc: 'M6 1a5 5 0 1 0 .01 0z',
  ring: 'M6 1a5 5 0 1 0 .01 0zM6 3a3 3 0 1 1-.01 0z',
  triangle: 'M6 .8 11.6 11H.4z',
  diamond: 'M6 .4 11.6 6 6 11.6.4 6z',
  square: 'M1.5 1.5h9v9h-9z',
  check: 'M.8 6.6 2.3 5l2.5 2.5 5-5.4 1.5 1.4-6.4 7z',
  cross: 'M2.3.9 6 4.6 9.7.9l1.4 1.4L7.4 6l3.7 3.7-1.4 1.4L6 7.4l-3.7 3.7L.9 9.7 4.6 6 .9 2.3z',
  bar: 'M0 4.5h12v3H0z',
  half: 'M6 1a5 5 0 1 0 .01 0zM6 3v6a3 3 0 0 0 0-6z',
  arrow: 'M1 4.8h5.2V1.6L11.4 6l-5.2 4.4V7.2H1z',
}

/** A sign with its word: shape, colour and text say the same, so that none is needed alone. */
export function Mark({ shape, tone, word, strong }: { shape: MarkShape; tone: Tone; word: string; strong?: boolean }) {
  return (
    <span className={`mark tone-${tone}${strong ? ' strong' : ''}`}>
      <Sign shape={shape} />
      {word}
    </span>
  )
}

export function Sign({ shape }: { shape: MarkShape }) {
  return (
    <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true" fill="currentColor" fillRule="evenodd">
      <path d={paths[shape]} />
    </svg>
  )
}

type Badge = { word: string; shape: MarkShape; tone: Tone; strong?: boolean }

const severities: Record<Severity, Badge> = {
  critical: { word: 'critical', shape: 'diamond', tone: 'critical', strong: true },
  warning: { word: 'warning', shape: 'triangle', tone: 'warning' },
  info: { word: 'info', shape: 'disc', tone: 'info' },
}

export const statuses: Record<IncidentStatus, Badge> = {
  open: { word: 'open', shape: 'ring', tone: 'warning' },
  investigating: { word: 'investigating', shape: 'half', tone: 'info' },
  awaiting_approval: { word: 'approval needed', shape: 'diamond', tone: 'lamp', strong: true },
  resolved: { word: 'resolved', shape: 'check', tone: 'good' },
  escalated: { word: 'escalated', shape: 'arrow', tone: 'critical', strong: true },
  cancelled: { word: 'cancelled', shape: 'cross', tone: 'quiet' },
}

const approvalStatuses: Record<ApprovalStatus, Badge> = {
  pending: { word: 'waiting', shape: 'diamond', tone: 'lamp', strong: true },
  approved: { word: 'approved', shape: 'check', tone: 'good' },
  denied: { word: 'denied', shape: 'cross', tone: 'critical' },
  expired: { word: 'expired', shape: 'bar', tone: 'warning' },
  withdrawn: { word: 'withdrawn', shape: 'bar', tone: 'quiet' },
  consumed: { word: 'approved and executed', shape: 'check', tone: 'good' },
}

const risks: Record<Risk, Badge> = {
  none: { word: 'no risk', shape: 'ring', tone: 'quiet' },
  low: { word: 'low risk', shape: 'disc', tone: 'info' },
  medium: { word: 'medium risk', shape: 'triangle', tone: 'warning' },
  high: { word: 'high risk', shape: 'triangle', tone: 'critical', strong: true },
  critical: { word: 'critical risk', shape: 'diamond', tone: 'critical', strong: true },
}

export const SeverityMark = ({ severity }: { severity: Severity }) => <Mark {...severities[severity]} />
export const StatusMark = ({ status }: { status: IncidentStatus }) => <Mark {...statuses[status]} />
/** What is to be known about a status besides its word: its alert still fires, it came back, a person has it. */
export function RemarkList({ incident }: { incident: Incident }) {
  const said = remarks(incident)
  if (said.length === 0) return null
  return (
    <span className="remarks small">
      <Inert text={said.join(', ')} />
    </span>
  )
}

export const ApprovalMark = ({ status }: { status: ApprovalStatus }) => <Mark {...approvalStatuses[status]} />
export const RiskMark = ({ risk }: { risk: Risk }) => <Mark {...risks[risk]} />

/** The name of a type, which breaks where a person would break it. */
export function TypeName({ type }: { type: string }) {
  return type.split('_').map((part, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one name have no other identity
    <Fragment key={index}>
      {index > 0 && (
        <>
          _<wbr />
        </>
      )}
      {part}
    </Fragment>
  ))
}

export function Resource({ resource }: { resource: ResourceRef | null }) {
  if (!resource) return <span className="soft">no resource</span>
  return (
    <span className="mono wraps">
      {resource.kind} <Inert text={resource.id} />
    </span>
  )
}

type FactProps = { name: string; className?: string; isWhole?: boolean; children: ReactNode }

/** A pair of a description list (`<dl className="facts">`). `isWhole`: over the whole width. */
export function Fact({ name, className, isWhole = false, children }: FactProps) {
  return (
    <div className={isWhole ? 'whole' : undefined}>
      <dt>{name}</dt>
      <dd className={className}>{children}</dd>
    </div>
  )
}
