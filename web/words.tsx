import { Fragment } from 'react'
import type { ApprovalStatus } from '../domain/approval.ts'
import type { Incident, IncidentStatus, Severity } from '../domain/incident.ts'
import type { ResourceRef } from '../domain/resource.ts'
import { remarks } from '../domain/status-words.ts'
import type { Risk } from '../domain/tool.ts'
import { Inert } from './inert.tsx'
import { Mark, type Shape, type Tone } from './kinds.tsx'

type Look = { word: string; shape: Shape; tone: Tone; strong?: boolean }

const severities: Record<Severity, Look> = {
  critical: { word: 'critical', shape: 'diamond', tone: 'critical', strong: true },
  warning: { word: 'warning', shape: 'triangle', tone: 'warning' },
  info: { word: 'info', shape: 'disc', tone: 'info' },
}

export const statuses: Record<IncidentStatus, Look> = {
  open: { word: 'open', shape: 'ring', tone: 'warning' },
  investigating: { word: 'investigating', shape: 'half', tone: 'info' },
  awaiting_approval: { word: 'needs a person', shape: 'diamond', tone: 'lamp', strong: true },
  resolved: { word: 'resolved', shape: 'check', tone: 'good' },
  escalated: { word: 'escalated', shape: 'arrow', tone: 'critical', strong: true },
  cancelled: { word: 'cancelled', shape: 'cross', tone: 'quiet' },
}

const approvalStatuses: Record<ApprovalStatus, Look> = {
  pending: { word: 'waiting', shape: 'diamond', tone: 'lamp', strong: true },
  approved: { word: 'approved', shape: 'check', tone: 'good' },
  denied: { word: 'denied', shape: 'cross', tone: 'critical' },
  expired: { word: 'expired', shape: 'bar', tone: 'warning' },
  withdrawn: { word: 'withdrawn', shape: 'bar', tone: 'quiet' },
  consumed: { word: 'approved, used', shape: 'check', tone: 'good' },
}

const risks: Record<Risk, Look> = {
  none: { word: 'no risk', shape: 'ring', tone: 'quiet' },
  low: { word: 'low risk', shape: 'disc', tone: 'info' },
  medium: { word: 'medium risk', shape: 'triangle', tone: 'warning' },
  high: { word: 'high risk', shape: 'triangle', tone: 'critical', strong: true },
  critical: { word: 'critical risk', shape: 'diamond', tone: 'critical', strong: true },
}

export const SeverityMark = ({ severity }: { severity: Severity }) => <Mark {...severities[severity]} />
export const StatusMark = ({ status }: { status: IncidentStatus }) => <Mark {...statuses[status]} />
/** What is to be known about a status besides its word: its alert still fires, it came back, a person has it. */
export function Remarks({ incident }: { incident: Incident }) {
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
