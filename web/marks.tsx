import {
  Box,
  Boxes,
  Cable,
  CircleDot,
  Cog,
  Component,
  Container,
  Cpu,
  Cylinder,
  Database,
  DoorOpen,
  Globe,
  HardDrive,
  Layers,
  type LucideIcon,
  Network,
  Server,
  Users,
  Waypoints,
} from 'lucide-react'
import { Fragment, type ReactNode } from 'react'
import type { ApprovalStatus } from '../domain/approval.ts'
import type { EventKind } from '../domain/event.ts'
import type { Incident, IncidentStatus, Severity } from '../domain/incident.ts'
import { remarks } from '../domain/status-words.ts'
import type { Risk } from '../domain/tool.ts'
import { Inert } from './inert.tsx'

/**
 * Colours by meaning: waits for a person, broken now, running, proved by rows. Everything else is
 * ink or quiet.
 */
export type Tone = 'ink' | 'act' | 'broken' | 'work' | 'proved' | 'quiet'
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

/**
 * Each kind of row with its word and sign. The code does not compile until a new kind is added
 * here.
 */
export const kinds: Record<EventKind, { word: string; shape: MarkShape; tone: Tone }> = {
  alert_received: { word: 'alert', shape: 'triangle', tone: 'ink' },
  looked: { word: 'look', shape: 'ring', tone: 'work' },
  noted: { word: 'noted', shape: 'bar', tone: 'quiet' },
  claimed: { word: 'started', shape: 'half', tone: 'work' },
  context_assembled: { word: 'context', shape: 'ring', tone: 'quiet' },
  model_answered: { word: 'model', shape: 'square', tone: 'work' },
  model_failed: { word: 'model failed', shape: 'cross', tone: 'ink' },
  correction_sent: { word: 'correction', shape: 'arrow', tone: 'ink' },
  call_judged: { word: 'policy check', shape: 'bar', tone: 'quiet' },
  tool_started: { word: 'call', shape: 'arrow', tone: 'work' },
  tool_output: { word: 'output', shape: 'bar', tone: 'quiet' },
  tool_finished: { word: 'result', shape: 'disc', tone: 'work' },
  step_started: { word: 'step', shape: 'arrow', tone: 'quiet' },
  step_finished: { word: 'step done', shape: 'disc', tone: 'quiet' },
  verification: { word: 'verified', shape: 'check', tone: 'proved' },
  approval_requested: { word: 'approval requested', shape: 'diamond', tone: 'act' },
  approval_decided: { word: 'decided', shape: 'diamond', tone: 'proved' },
  approval_expired: { word: 'expired', shape: 'cross', tone: 'ink' },
  approval_withdrawn: { word: 'withdrawn', shape: 'cross', tone: 'quiet' },
  grant_used: { word: 'approval used', shape: 'diamond', tone: 'quiet' },
  hint_confirmed: { word: 'hint confirmed', shape: 'check', tone: 'proved' },
  hint_diverged: { word: 'the hint did not fit', shape: 'cross', tone: 'ink' },
  budget_ended: { word: 'budget', shape: 'bar', tone: 'ink' },
  security_event: { word: 'security', shape: 'triangle', tone: 'broken' },
  resolved: { word: 'resolved', shape: 'check', tone: 'proved' },
  escalated: { word: 'escalated', shape: 'arrow', tone: 'broken' },
  cancelled: { word: 'cancelled', shape: 'cross', tone: 'quiet' },
  capability_gap: { word: 'missing tool', shape: 'ring', tone: 'ink' },
  commented: { word: 'note', shape: 'ring', tone: 'quiet' },
  change_requested: { word: 'asked', shape: 'arrow', tone: 'work' },
  change_reviewed: { word: 'reviewed', shape: 'check', tone: 'proved' },
  graded: { word: 'graded', shape: 'check', tone: 'proved' },
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

/** Shows a sign with its word. Shape, colour and text have the same meaning. */
export function Mark({
  shape,
  tone,
  word,
  strong,
}: {
  shape: MarkShape
  tone: Tone
  word: ReactNode
  strong?: boolean
}) {
  return (
    <span className={`mark tone-${tone}${strong ? ' strong' : ''}`}>
      <Sign shape={shape} />
      <span>{word}</span>
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

/** Shows an important sentence with a shape and a word. Red is reserved for what is broken now. */
export function Warning({ text }: { text: string }) {
  return (
    <p className="warning">
      <Sign shape="triangle" /> <Inert text={text} />
    </p>
  )
}

type Badge = { word: string; shape: MarkShape; tone: Tone; strong?: boolean }

/** Signs of severities, which differ by shape and word. Colour is reserved for actions. */
const severities: Record<Severity, Badge> = {
  critical: { word: 'critical', shape: 'diamond', tone: 'ink', strong: true },
  warning: { word: 'warning', shape: 'triangle', tone: 'ink' },
  info: { word: 'info', shape: 'ring', tone: 'ink' },
}

export const statuses: Record<IncidentStatus, Badge> = {
  open: { word: 'open', shape: 'ring', tone: 'quiet' },
  investigating: { word: 'investigating', shape: 'half', tone: 'work' },
  awaiting_approval: { word: 'approval needed', shape: 'diamond', tone: 'act', strong: true },
  resolved: { word: 'resolved', shape: 'check', tone: 'quiet' },
  escalated: { word: 'escalated', shape: 'arrow', tone: 'act' },
  cancelled: { word: 'cancelled', shape: 'cross', tone: 'quiet' },
}

const approvalStatuses: Record<ApprovalStatus, Badge> = {
  pending: { word: 'waiting', shape: 'diamond', tone: 'act', strong: true },
  approved: { word: 'approved', shape: 'check', tone: 'proved' },
  denied: { word: 'denied', shape: 'cross', tone: 'ink' },
  expired: { word: 'expired', shape: 'bar', tone: 'ink' },
  withdrawn: { word: 'withdrawn', shape: 'bar', tone: 'quiet' },
  consumed: { word: 'approved and executed', shape: 'check', tone: 'proved' },
}

const risks: Record<Risk, Badge> = {
  none: { word: 'no risk', shape: 'ring', tone: 'quiet' },
  low: { word: 'low risk', shape: 'ring', tone: 'ink' },
  medium: { word: 'medium risk', shape: 'disc', tone: 'ink' },
  high: { word: 'high risk', shape: 'triangle', tone: 'ink', strong: true },
  critical: { word: 'critical risk', shape: 'diamond', tone: 'ink', strong: true },
}

/** Shows a severity. `isShort`: only the shape; screen readers and the pointer get the word. */
export function SeverityMark({ severity, isShort = false }: { severity: Severity; isShort?: boolean }) {
  const { word, ...look } = severities[severity]
  if (!isShort) return <Mark word={word} {...look} />
  return (
    <span className="mark tone-ink" role="img" aria-label={word} title={word}>
      <Sign shape={look.shape} />
    </span>
  )
}
export const StatusMark = ({ status }: { status: IncidentStatus }) => <Mark {...statuses[status]} />
/**
 * Shows remarks beside a status: the alert still fires, the incident came back, a person has it.
 */
export function RemarkList({ incident }: { incident: Incident }) {
  const said = remarks(incident)
  if (said.length === 0) return null
  return <Inert className="remarks small" text={said.join(', ')} />
}

export const ApprovalMark = ({ status }: { status: ApprovalStatus }) => <Mark {...approvalStatuses[status]} />
export const RiskMark = ({ risk }: { risk: Risk }) => <Mark {...risks[risk]} />

/** Shows the name of a type, which may break at underscores. */
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

const resourceIcons: Record<string, LucideIcon> = {
  ...{ region: Globe, shard: Layers, node: Server, tenant: Users, host: HardDrive, vm: Box, link: Cable },
  ...{ cluster: Network, namespace: Boxes, workload: Component, container: Container, volume_claim: Cylinder },
  ...{ cluster_service: Waypoints, ingress: DoorOpen, service_unit: Cog, database: Database, device: Cpu },
}

/** Shows a resource with its picture and name. Screen readers get its kind. */
export function Resource({ resource }: { resource: { kind: string; id: string } | null }) {
  if (!resource) return <span className="soft">no resource</span>
  const Icon = resourceIcons[resource.kind] ?? CircleDot
  return (
    <span className="of" title={resource.kind.replaceAll('_', ' ')}>
      <Icon aria-hidden="true" />
      <span>
        <span className="visually-hidden">{resource.kind.replaceAll('_', ' ')} </span>
        <Inert text={resource.id} />
      </span>
    </span>
  )
}

/** Lists labels or attributes, each as code. */
export function Labels({ texts }: { texts: string[] }) {
  return (
    <p className="labels">
      {texts.map((text) => (
        <Inert key={text} as="code" text={text} />
      ))}
    </p>
  )
}

type FactProps = { name: string; className?: string; isWhole?: boolean; children: ReactNode }

/**
 * Shows a pair of a description list (`<dl className="facts">`). `isWhole`: it has the full width.
 */
export function Fact({ name, className, isWhole = false, children }: FactProps) {
  return (
    <div className={isWhole ? 'whole' : undefined}>
      <dt>{name}</dt>
      <dd className={className}>{children}</dd>
    </div>
  )
}
