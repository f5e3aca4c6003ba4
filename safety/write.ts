import { resourceKey } from '../domain/resource.ts'
import type { ToolFacts } from '../domain/tool.ts'
import { impactFacts } from './command/impact.ts'
import type { OpenWrite, State } from './fold.ts'
import { isFresh } from './resolved.ts'
import { ask, type Call, type Policy, quote, type Rule, refuse, run } from './ruling.ts'
import type { Settled } from './settle.ts'

/** A write: what it names was looked up, nothing else is open, nobody denied it, and a person agreed where one must. */
export function writeRule(
  call: Call,
  facts: ToolFacts,
  settled: Settled,
  digest: string,
  state: State,
  policy: Policy,
  nowMs: number,
): Rule {
  if (policy.paused) {
    return refuse('PAUSED', 'writes are paused by an operator', 'Look, record what you find, and escalate.')
  }
  if (state.open && state.open.callId !== call.callId) return blockedByVerification(state.open)
  return (
    resolutionRule(call, settled, state, nowMs) ??
    deniedRule(digest, state, policy) ??
    busyRule(policy) ??
    authorityRule(call, facts, settled, digest, policy)
  )
}

/** A write names only what this attempt looked up, and one that names nothing names too little. */
function resolutionRule(call: Call, { targets }: Settled, state: State, nowMs: number): Rule | null {
  if (targets.length === 0) {
    return refuse('STRICT_RESOLUTION', `${call.tool} names nothing that could be looked up`)
  }
  for (const target of targets) {
    const entry = state.resolved.entries.get(resourceKey(target))
    if (entry && isFresh(entry.atMs, nowMs)) continue
    return refuse(
      'STRICT_RESOLUTION',
      `${target.kind} ${quote(target.id)} was not looked up in this investigation`,
      `Look it up first (find_resource, or get the ${target.kind}), then call ${call.tool} again.`,
      { target: resourceKey(target) },
    )
  }
  return null
}

function deniedRule(digest: string, state: State, policy: Policy): Rule | null {
  if (!policy.denied.includes(digest) && !state.denied.has(digest)) return null
  return refuse(
    'DENIED_BEFORE',
    'a person denied this very action for this group of incidents',
    'Propose something else or escalate with the reason of the denial.',
  )
}

function busyRule(policy: Policy): Rule | null {
  const busy = policy.busy[0]
  if (!busy) return null
  return refuse(
    'TARGET_BUSY',
    `${busy.target} is being written to by ${busy.incidentId}`,
    'Look again later, or escalate.',
    { target: busy.target },
  )
}

/** Who must agree: nobody for what is reversible and near, else people, for exactly this action on exactly this state. */
function authorityRule(call: Call, facts: ToolFacts, settled: Settled, digest: string, policy: Policy): Rule {
  if (!call.prepared) return refuse('NOT_PREPARED', `what ${call.tool} would do could not be found out`)
  if (!call.prepared.ok) return refuse('NOT_PREPARED', call.prepared.reason)
  const { approval } = policy
  if (approval) {
    const same = approval.callId === call.callId && approval.actionDigest === digest
    if (same && approval.stateFingerprint === call.prepared.preparation.stateFingerprint) {
      return run('APPROVED', `approved (${approval.id})`)
    }
    return ask('DRIFT', 'the platform changed since this was approved: it is asked again for what is there now')
  }
  const { asks } = call.prepared.preparation
  if (asks) return ask(riskCode[facts.risk], asks.why)
  if (settled.command) {
    const { reason, impact } = settled.command
    return ask('UNPROVEN_COMMAND', `${reason}; it ${impactFacts[impact].words}`)
  }
  const isNear = settled.targets.every((target) =>
    policy.vicinity.some((ref) => resourceKey(ref) === resourceKey(target)),
  )
  if (facts.risk === 'low' && facts.reversible && isNear) {
    return run('REVERSIBLE_NEAR', "reversible, and on the incident's own resource or next to it")
  }
  const { stateFingerprint } = call.prepared.preparation
  const granted = isGrantable(facts)
    ? policy.grants.find((each) => each.actionDigest === digest && each.stateFingerprint === stateFingerprint)
    : undefined
  if (granted)
    return { ...run('GRANTED', `a standing grant for this action (${granted.id})`), details: { grant: granted.id } }
  return facts.risk === 'low' && facts.reversible
    ? ask('REVERSIBLE_FAR', "reversible, but not on the incident's resource or next to it")
    : askByRisk(facts)
}

/** Code marks the tools, and the floor holds for them too: what is high or critical is asked every time. */
export function isGrantable({ grantable, risk, command }: ToolFacts): boolean {
  return grantable === true && command === undefined && (risk === 'low' || risk === 'medium')
}

const riskCode = {
  none: 'RISK_LOW',
  low: 'RISK_LOW',
  medium: 'RISK_MEDIUM',
  high: 'RISK_HIGH',
  critical: 'RISK_CRITICAL',
} as const

function askByRisk({ risk }: ToolFacts): Rule {
  return ask(riskCode[risk], `a ${risk}-risk write is asked`)
}

/** Nothing but looking is allowed until the last write was looked at, however often it is tried. */
export function blockedByVerification(open: OpenWrite): Rule {
  const targets = open.targets.map(resourceKey)
  return refuse(
    'FSM_BLOCKED',
    `${open.tool} on ${targets.join(', ')} is not verified yet`,
    `Read ${targets.join(', ')} first: that closes the verification.`,
    { targets },
  )
}
