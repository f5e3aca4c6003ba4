import { agentActor } from '../../domain/event.ts'
import type { Policy } from '../../domain/refusal.ts'
import type { CallPlace } from '../../domain/step-key.ts'
import { requiredApprovals } from '../../domain/tool.ts'
import type { Call, Ruling } from '../../safety/judge.ts'
import { append, type SimApproval, type SimIncident, type World } from './world.ts'

/** `db/approvals/` over the simulated world: one statement decides each race, by the world's one clock. */

const expiryMs = 10 * 60_000
const useWithinMs = 15 * 60_000

export function requestApproval(
  world: World,
  incident: SimIncident,
  place: CallPlace,
  call: Call,
  ruling: Ruling,
  stateFingerprint: string,
): SimApproval {
  const approval: SimApproval = {
    id: `apr_${world.approvals.size + 1}`,
    incidentId: incident.id,
    callId: call.callId,
    tool: call.tool,
    arguments: ruling.arguments ?? {},
    targets: ruling.targets,
    actionDigest: ruling.actionDigest,
    stateFingerprint,
    required: Math.max(1, requiredApprovals[ruling.risk]),
    voters: new Set(),
    status: 'pending',
    expiresAtMs: world.nowMs + expiryMs,
    useByMs: 0,
    history: ['pending'],
  }
  world.approvals.set(approval.id, approval)
  append(world, incident, place.attempt, {
    kind: 'approval_requested',
    actor: agentActor,
    turn: place.turn,
    detail: '',
    metadata: {
      approvalId: approval.id,
      callId: call.callId,
      tool: call.tool,
      actionDigest: ruling.actionDigest,
      risk: ruling.risk,
      required: approval.required,
      targets: ruling.targets,
      summary: '',
      replaces: null,
      expiresAt: new Date(approval.expiresAtMs).toISOString(),
    },
  })
  return approval
}

export function decide(
  world: World,
  approval: SimApproval,
  decision: 'approve' | 'deny',
  by: { person: string; token: 'forged' | 'approve' | 'deny' },
): void {
  const incident = world.incidents.get(approval.incidentId) as SimIncident
  if (by.token === 'forged' && world.without !== 'approval') {
    suspect(world, incident, 'UNKNOWN_TOKEN', approval.id)
    return
  }
  if (by.token !== 'forged' && by.token !== decision && world.without !== 'verdict') {
    suspect(world, incident, 'OTHER_VERDICT', approval.id)
    return
  }
  if (approval.status !== 'pending' || world.nowMs >= approval.expiresAtMs) return
  if (world.lostRole.has(by.person)) {
    suspect(world, incident, 'ROLE_LOST', approval.id)
    return
  }
  if (decision === 'approve') approval.voters.add(by.person)
  const isFinal = decision === 'deny' || countVotes(world, approval) >= approval.required
  if (isFinal) {
    approval.status = decision === 'deny' ? 'denied' : 'approved'
    approval.useByMs = world.nowMs + useWithinMs
    approval.history.push(approval.status)
  }
  append(world, incident, null, {
    kind: 'approval_decided',
    actor: `user:${by.person}`,
    detail: '',
    metadata: {
      approvalId: approval.id,
      callId: approval.callId,
      decision,
      reason: 'because',
      via: 'api',
      status: approval.status,
      actionDigest: approval.actionDigest,
    },
  })
}

export function suspect(world: World, incident: SimIncident, code: string, subject: string): void {
  const metadata = { code, door: 'signal', subject, detail: '' }
  append(world, incident, null, { kind: 'security_event', actor: 'system', detail: '', metadata })
}

/** Weighed at every use: the yes of a person who may no longer decide does not count. */
function countVotes(world: World, { voters }: SimApproval): number {
  if (world.without === 'votes') return voters.size
  return [...voters].filter((person) => !world.lostRole.has(person)).length
}

export function expire(world: World, approval: SimApproval): void {
  if (approval.status !== 'pending' || world.nowMs < approval.expiresAtMs) return
  approval.status = 'expired'
  approval.history.push('expired')
  const incident = world.incidents.get(approval.incidentId) as SimIncident
  const metadata = { approvalId: approval.id, callId: approval.callId }
  append(world, incident, null, { kind: 'approval_expired', actor: 'system', detail: '', metadata })
}

/** Asked again for one call: what was asked or granted before no longer counts. */
export function withdraw(world: World, incident: SimIncident, callId: string | null): void {
  for (const approval of world.approvals.values()) {
    const isMeant = approval.incidentId === incident.id && (callId === null || approval.callId === callId)
    if (!isMeant || (approval.status !== 'pending' && approval.status !== 'approved')) continue
    approval.status = 'withdrawn'
    approval.history.push('withdrawn')
    const metadata = { approvalId: approval.id, callId: approval.callId, reason: 'drift' }
    append(world, incident, null, { kind: 'approval_withdrawn', actor: 'system', detail: '', metadata })
  }
}

export function usable(world: World, incidentId: string, approvalId: string | null): Policy['approval'] {
  const approval = approvalId ? world.approvals.get(approvalId) : undefined
  if (approval?.incidentId !== incidentId || approval.status !== 'approved' || world.nowMs > approval.useByMs) {
    return null
  }
  if (countVotes(world, approval) < approval.required) return null
  const { id, callId, actionDigest, stateFingerprint } = approval
  return { id, callId, actionDigest, stateFingerprint }
}
