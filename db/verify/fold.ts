import type { IncidentEvent } from '../../domain/event.ts'

export type FoldedIncident = {
  /** `running` stands for both words of a run: it works, or it waits for a person. */
  status: 'open' | 'running' | 'resolved' | 'escalated' | 'cancelled'
  attempt: number
  /** Of what is closed: the text of the row that closed it. */
  resolution: string | null
  /** Undefined where rows of an older version do not tell. */
  outcome: string | null | undefined
  category: string | null | undefined
}

/** What the rows of an incident say that its own row holds. */
export function foldIncident(events: readonly IncidentEvent[]): FoldedIncident {
  let folded: FoldedIncident = { status: 'open', attempt: 0, resolution: null, outcome: null, category: null }
  for (const event of events) folded = { ...folded, ...changeBy(event, folded), attempt: event.attempt }
  return folded
}

const opened = { status: 'open', resolution: null, outcome: null, category: null } as const

function changeBy(event: IncidentEvent, folded: FoldedIncident): Partial<FoldedIncident> {
  switch (event.kind) {
    case 'claimed':
      return { status: 'running' }
    case 'resolved':
      return { status: 'resolved', resolution: event.detail, outcome: event.metadata.outcome, category: null }
    case 'escalated':
      return { status: 'escalated', resolution: event.detail, outcome: null, category: event.metadata.category ?? null }
    case 'cancelled':
      return { status: 'cancelled', resolution: event.detail, outcome: null, category: null }
    case 'commented':
      return event.metadata.action === 'investigate_requested' ? opened : {}
    case 'noted':
      if (event.metadata.code === 'reopened' || event.metadata.code === 'run_lost') return opened
      // What was resolved otherwise is expected from then on.
      return event.metadata.code === 'expected_marked' && folded.status === 'resolved' ? { outcome: 'expected' } : {}
    default:
      return {}
  }
}

export type FoldedApproval = {
  status: string
  callId: string
  tool: string
  actionDigest: string
  risk: string
  required: number
  /** Decisions as `approve page`, in the order of their rows. */
  decisions: string[]
}

/** What the rows of an incident say of each approval, by its id. */
export function foldApprovals(events: readonly IncidentEvent[]): Map<string, FoldedApproval> {
  const approvals = new Map<string, FoldedApproval>()
  const settle = (id: string | null, status: string) => {
    const approval = id === null ? undefined : approvals.get(id)
    if (approval) approval.status = status
  }
  for (const event of events) {
    switch (event.kind) {
      case 'approval_requested': {
        const { approvalId, callId, tool, actionDigest, risk, required } = event.metadata
        approvals.set(approvalId, { status: 'pending', callId, tool, actionDigest, risk, required, decisions: [] })
        break
      }
      case 'approval_decided':
        settle(event.metadata.approvalId, event.metadata.status)
        approvals.get(event.metadata.approvalId)?.decisions.push(`${event.metadata.decision} ${event.metadata.via}`)
        break
      case 'approval_expired':
        settle(event.metadata.approvalId, 'expired')
        break
      case 'approval_withdrawn':
        settle(event.metadata.approvalId, 'withdrawn')
        break
      case 'tool_started':
        settle(event.metadata.approvalId, 'consumed')
        break
      default:
    }
  }
  return approvals
}
