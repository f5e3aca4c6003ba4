import type { Claim, ClaimQuote } from '../domain/claim.ts'
import { boundCertainty, type Certainty, type HypothesisState, rowsOf, type StoredClaim } from '../domain/hypothesis.ts'
import { type ResourceRef, resourceKey } from '../domain/registry.ts'
import { placesOfAll } from './claims/check.ts'
import { claimsRule } from './claims/ending.ts'
import { inRightRows } from './claims/grade.ts'
import { type Bodies, evidenceOf } from './claims/rows.ts'
import { isWell, type SafetyState, type WriteState } from './fold.ts'
import { type Policy, quote, type RuleAnswer, refuse, run } from './ruling.ts'
import { blockedByVerification } from './write.ts'

/**
 * Whether an ending is a fact. `resolve_incident` may say only what rows show: that a write held,
 * that every alert is over, that nothing fires. Null where nothing speaks against it.
 */
export function outcomeRule(outcome: unknown, state: SafetyState, policy: Policy): RuleAnswer | null {
  if (policy.isQuestion === true && outcome !== 'answered' && outcome !== 'repaired') {
    return refuse('IS_A_QUESTION', `a question ends answered, not ${String(outcome)}`, 'Use outcome answered.')
  }
  switch (outcome) {
    case 'repaired':
      return repairedRule(state, policy)
    case 'self_resolved':
      return selfResolvedRule(state, policy)
    case 'no_fault':
      return noFaultRule(state, policy)
    case 'answered':
      return policy.isQuestion === true
        ? null
        : refuse('NO_QUESTION', 'nobody asked a question', 'Say what was repaired, or escalate.')
    default:
      return null
  }
}

function repairedRule(state: SafetyState, policy: Policy): RuleAnswer | null {
  if (state.writes.length === 0) {
    return refuse(
      'NOTHING_WRITTEN',
      'repaired is claimed but this attempt wrote nothing',
      'Use self_resolved or no_fault, or repair it.',
    )
  }
  const writes = lastWrites(state)
  const open = writes.find(({ verified }) => verified === 'open')
  if (open) return blockedByVerification(open)
  const nothing = nothingChangedRule(state, policy)
  if (nothing) return nothing
  for (const write of writes) {
    if (write.verified === 'held' || (write.verified === 'unproven' && isSupported(write, state, policy))) continue
    return refuse(
      'REPAIR_NOT_VERIFIED',
      write.verified === 'unproven'
        ? `nothing proves ${write.tool} on ${targetsOf(write)}`
        : `the verification of ${write.tool} on ${targetsOf(write)} did not hold`,
      write.verified === 'unproven' && policy.resource
        ? `It counts where ${resourceKey(policy.resource)} was read as ill before it and as nominal after it, or an alert ended after it. Else escalate with what you saw.`
        : 'Try another repair or escalate with what you saw.',
    )
  }
  return degradedRule(state, policy)
}

/**
 * Where all was as wanted already, no write repaired it, whatever its verification says. A failed
 * one that does not tell what it left repaired nothing either, unless a look or an alert shows a
 * gain.
 */
function nothingChangedRule(state: SafetyState, policy: Policy): RuleAnswer | null {
  const { writes } = state
  const mayHaveChanged = (write: WriteState) =>
    write.changed === null
      ? write.verified !== 'not_held' || isSupported(write, state, policy)
      : write.changed.length > 0
  if (!writes.some(({ changed }) => changed?.length === 0) || writes.some(mayHaveChanged)) return null
  return refuse(
    'NOTHING_CHANGED',
    `repaired is claimed, but nothing had to be changed: ${[...new Set(writes.map(({ tool }) => tool))].join(', ')} found all as it was to be`,
    'Repair what is wrong, or use escalate_incident with category alert_goes_on or no_fault_found; self_resolved once its alerts are over.',
  )
}

/** The newest write of each target: an earlier failure does not matter once a later one held. */
function lastWrites({ writes }: SafetyState): WriteState[] {
  const newest = new Map<string, WriteState>()
  for (const write of writes) for (const target of keysOf(write)) newest.set(target, write)
  return [...new Set(newest.values())]
}

/** A write without a target still has to be accounted for. */
function keysOf({ targets, callId }: WriteState): string[] {
  return targets.length === 0 ? [callId] : targets.map(resourceKey)
}

function targetsOf(write: WriteState): string {
  return write.targets.map(resourceKey).join(', ') || 'nothing named'
}

/**
 * An unproven write counts when the incident's resource, or its target, was read as ill before and
 * nominal after it, or when every alert is over and one that fired ended after it: not when it
 * touched what raises alerts.
 */
function isSupported(write: WriteState, state: SafetyState, { resource, alerts }: Policy): boolean {
  const about = [...(resource ? [resource] : []), ...write.targets].map(resourceKey)
  const isBetter = about.some((key) => {
    const look = state.looks.get(key)
    return look && look.seq > write.startedSeq && look.health === 'nominal' && write.illBefore.includes(key)
  })
  if (isBetter) return true
  const areOver = alerts !== undefined && alerts.total > 0 && alerts.firing + alerts.endless + doubted(alerts) === 0
  return areOver && write.hasEndedAlert && !write.touchesMonitoring
}

/** What fires cannot be no fault, and what stays quiet for too short a time is not over. */
function selfResolvedRule(state: SafetyState, policy: Policy): RuleAnswer | null {
  const { alerts } = policy
  if (alerts?.total === 0) {
    return refuse('NO_ALERT', 'this incident has no alert that could have ended', 'Say what you found, or escalate.')
  }
  if (alerts && alerts.endless > 0) {
    return refuse(
      'STILL_FIRING',
      'the sender of its alert never says when one ends, so nothing shows that it did',
      'Use escalate_incident with category no_fault_found, or repair it.',
    )
  }
  return firingRule(policy) ?? degradedRule(state, policy) ?? quietRule(state, policy)
}

function noFaultRule(state: SafetyState, policy: Policy): RuleAnswer | null {
  if (state.writes.length > 0) {
    return refuse(
      'WROTE_SOMETHING',
      'no_fault is claimed but this attempt wrote',
      'Say what was repaired, or escalate.',
    )
  }
  return firingRule(policy) ?? degradedRule(state, policy) ?? endlessRule(state, policy) ?? quietRule(state, policy)
}

/** Nothing will say that such an alert is over: the resource has to, or a person. */
function endlessRule(state: SafetyState, { alerts, resource }: Policy): RuleAnswer | null {
  if (!alerts || alerts.endless === 0) return null
  const never = 'the sender of its alert never says when one ends'
  const escalate = 'escalate_incident with category no_fault_found says what you saw to a person.'
  if (alerts.isCritical === true)
    return refuse('STILL_FIRING', `${never}, and it is critical: a person decides that it is no fault`, escalate)
  const look = resource ? state.looks.get(resourceKey(resource)) : undefined
  if (look?.health === 'nominal') return null
  const remedy = resource ? `Look at ${resourceKey(resource)}: nominal is enough. Else ${escalate}` : escalate
  return refuse('STILL_FIRING', `${never}, and no look of this attempt shows its resource nominal`, remedy)
}

function firingRule({ alerts }: Policy): RuleAnswer | null {
  if (!alerts || alerts.firing === 0) return null
  return refuse(
    'STILL_FIRING',
    alerts.firing === 1 ? 'its alert fires' : `${alerts.firing} of its alerts fire`,
    'Find what raises it and repair it, or use escalate_incident with category no_fault_found.',
    { firing: alerts.firing },
  )
}

/** The newest look at the incident's own resource since the last write must not show it ill. */
function degradedRule(state: SafetyState, { resource }: Policy): RuleAnswer | null {
  if (!resource) return null
  const look = state.looks.get(resourceKey(resource))
  const lastWriteSeq = state.writes.at(-1)?.startedSeq ?? 0
  if (!look || look.seq < lastWriteSeq || look.health === null || isWell(look.health)) return null
  return refuse(
    'STILL_DEGRADED',
    `${resourceKey(resource)} was ${look.health} when it was looked at last`,
    `Look at ${resourceKey(resource)} again; if it stays so, repair it or escalate.`,
    { target: resourceKey(resource), health: look.health },
  )
}

/** Alerts that may be over, without anything that shows it. */
const doubted = ({ unknown, unproven = 0 }: NonNullable<Policy['alerts']>): number => unknown + unproven

/** All alerts ended, but a moment ago: the ending is kept until they were quiet for long enough. */
function quietRule(state: SafetyState, { alerts, resource }: Policy): RuleAnswer | null {
  if (!alerts || alerts.total === 0) return null
  const look = resource ? state.looks.get(resourceKey(resource)) : undefined
  if (doubted(alerts) > 0 && look?.health !== 'nominal') {
    return refuse(
      'STILL_FIRING',
      `${alerts.doubt ?? 'many alerts of its sender ended at once'}, so nothing shows that its alert is over`,
      'Look at the resource itself; if that tells nothing, escalate.',
    )
  }
  const waitSeconds = alerts.endedForSeconds === null ? 0 : alerts.quietSeconds - alerts.endedForSeconds
  if (waitSeconds <= 0) return null
  return refuse(
    'NOT_QUIET_YET',
    `its alert ended ${Math.max(0, Math.floor(alerts.endedForSeconds ?? 0))} s ago and must stay quiet for ${alerts.quietSeconds} s`,
    'The ending is kept and tried again by itself.',
    { waitSeconds: Math.ceil(waitSeconds) },
  )
}

/** Two categories' words on a write are held against rows; others name a person's task. */
export function categoryRule(category: unknown, state: SafetyState, policy: Policy): RuleAnswer | null {
  if (category === 'mitigated') return mitigatedRule(state, policy)
  return category === 'alert_goes_on' ? goesOnRule(state, policy) : null
}

/** `alert_goes_on` says that a write held and the alert fires on. */
function goesOnRule({ writes }: SafetyState, { alerts }: Policy): RuleAnswer | null {
  const isClosed = writes.some(({ verified }) => verified === 'held' || verified === 'unproven')
  const fires = !alerts || alerts.firing + alerts.endless + doubted(alerts) > 0
  if (isClosed && fires) return null
  return refuse(
    'NO_WRITE_HELD',
    isClosed
      ? 'alert_goes_on is said, but none of its alerts fires'
      : 'alert_goes_on is said, but no write of this attempt held',
    isClosed
      ? 'Resolve it as what the rows show, or use another category.'
      : 'Use no_fault_found, or another category.',
  )
}

/**
 * `mitigated`: the impact is gone. A repair's proof shows it, unless a write's target was read as
 * ill after it.
 */
function mitigatedRule(state: SafetyState, policy: Policy): RuleAnswer | null {
  if (state.writes.length === 0) {
    return refuse('NOT_MITIGATED', 'mitigated is claimed, but this attempt wrote nothing', 'Use another category.')
  }
  const own = policy.resource ? resourceKey(policy.resource) : null
  const looks = lastWrites(state).flatMap((write) => write.targets.flatMap((target) => lookAfter(target, write, state)))
  const ill = looks.find(({ key, health }) => key !== own && !isWell(health))
  if (ill) {
    const hint = `Look at ${ill.key} again; if it stays so, use another category.`
    return refuse('NOT_MITIGATED', `${ill.key} was ${ill.health} after it was written to`, hint)
  }
  const isLeftIll = (rule: RuleAnswer | null) =>
    rule?.code === 'STILL_DEGRADED' && looks.some(({ health }) => health === 'nominal')
  const rule = repairedRule(state, policy)
  if (rule === null || isLeftIll(rule)) return null
  return rule.code === 'NOTHING_CHANGED' || rule.code === 'FSM_BLOCKED'
    ? { ...rule, reason: rule.reason.replace('repaired', 'mitigated') }
    : refuse('NOT_MITIGATED', `mitigated is claimed, but ${rule.reason}`, rule.hint ?? 'Use another category.')
}

function lookAfter(target: ResourceRef, write: WriteState, state: SafetyState): { key: string; health: string }[] {
  const key = resourceKey(target)
  const look = state.looks.get(key)
  return look && look.seq > write.startedSeq && look.health !== null ? [{ key, health: look.health }] : []
}

/**
 * An escalation needs one look; a resolution needs evidence, closed verifications and, for a
 * repair, one that held.
 */
export function terminalRule(
  args: Record<string, unknown>,
  state: SafetyState,
  policy: Policy,
  bodies: Bodies = new Map(),
): RuleAnswer {
  if (state.diagnostics === 0) {
    return refuse('NO_DIAGNOSTIC', 'nothing was looked at yet', 'Make at least one diagnostic call first.')
  }
  const claims = args.claims as Claim[] | undefined
  const { rule: unshown, marks } = wordsRule(args, state, policy, bodies)
  const certainty = args.outcome === 'answered' ? {} : certaintyOf(args.certainty as Certainty | undefined, state)
  if (claims === undefined) {
    const handOver = { ...run('TERMINAL', 'a person takes over'), details: { ...marks, ...certainty } }
    return categoryRule(args.category, state, policy) ?? unshown ?? handOver
  }
  return (
    (state.open ? blockedByVerification(state.open) : null) ??
    ownTargetRule(state, policy) ??
    (evidenceRule(claims, state) && evidenceRule(inPlace(claims, state, policy, bodies), state)) ??
    outcomeRule(args.outcome, state, policy) ??
    unshown ?? { ...run('TERMINAL', 'every claim cites rows of this incident'), details: { ...marks, ...certainty } }
  )
}

/** A quote under a wrong number is held against the row that it stands in. */
function inPlace(claims: readonly Claim[], state: SafetyState, { incidentId }: Policy, bodies: Bodies): Claim[] {
  const evidence = evidenceOf(state, incidentId, bodies)
  return claims.map((each) => inRightRows(each, evidence).claim)
}

function ownTargetRule(state: SafetyState, { resource, role }: Policy): RuleAnswer | null {
  if (!resource || state.lookedAt.has(resourceKey(resource))) return null
  return refuse(
    'OWN_TARGET_UNSEEN',
    role === 'follower'
      ? 'a hint from another incident proves nothing about this one'
      : "the incident's own resource was not looked at",
    `Look at ${resource.kind} ${resource.id} first.`,
    { target: resourceKey(resource) },
  )
}

/** Refuses the first claim that cites no successful row; answers to questions too. */
export function evidenceRule(claims: readonly StoredClaim[], state: SafetyState): RuleAnswer | null {
  for (const claim of claims) {
    const missing = rowsOf(claim).filter((seq) => !state.evidence.has(seq))
    if (missing.length === 0) continue
    return refuse(
      'EVIDENCE_MISSING',
      `the claim ${quote(claim.text)} cites ${missing.join(', ')}, which is no successful row of this incident`,
      `Quote successful results by meta.seq: ${successful(state).slice(-20).join(', ')}`,
      { missing },
    )
  }
  const failures = new Set(state.rows.filter(isFailure).map(({ seq }) => seq))
  if (claims.length === 0 || claims.some((claim) => rowsOf(claim).some((seq) => !failures.has(seq)))) return null
  return refuse(
    'EVIDENCE_MISSING',
    'what it claims rests on calls that failed or were refused alone',
    `Quote successful results by meta.seq: ${successful(state).slice(-20).join(', ')}`,
  )
}

/** A call that failed or was refused may be quoted as that, and shows nothing else. */
function isFailure(row: SafetyState['rows'][number]): boolean {
  if (row.kind === 'call_judged') return true
  return row.kind === 'tool_finished' && !row.metadata.result.ok && row.metadata.effect !== 'write'
}

function successful({ rows }: SafetyState): number[] {
  return rows.flatMap((row) => (row.kind === 'tool_finished' && row.metadata.result.ok ? [row.seq] : []))
}

/** Endings that say that all is well without a repair: their claims have to be shown. */
const unshownNever = ['no_fault', 'answered']

/**
 * Words come last: corrected once, then marked, since wording alone keeps no repair from being
 * recorded.
 */
function wordsRule(args: Record<string, unknown>, state: SafetyState, { incidentId }: Policy, bodies: Bodies) {
  const text = String(args.resolution ?? args.reason ?? '')
  const said = { text, claims: (args.claims as Claim[] | undefined) ?? [] }
  return claimsRule(said, state, incidentId, bodies, unshownNever.includes(String(args.outcome)))
}

/**
 * The certainty an ending may have, whatever it says: kept with its ruling, and no reason to refuse
 * it.
 */
function certaintyOf(said: Certainty | undefined, { hypotheses, writes }: SafetyState) {
  const hasHeld = writes.some(({ verified }) => verified === 'held')
  return boundCertainty(said, [...hypotheses.values()], hasHeld)
}

/** A record's word on a hypothesis: supported or refuted, it quotes its rows word for word. */
export function hypothesisRule(
  args: Record<string, unknown>,
  state: SafetyState,
  { incidentId }: Policy,
  bodies: Bodies = new Map(),
): RuleAnswer | null {
  const stands = args.hypothesis as HypothesisState | undefined
  if (stands === undefined) return null
  const quotes = (args.quotes as ClaimQuote[] | undefined) ?? []
  if (stands !== 'proposed' && quotes.length === 0) {
    return refuse(
      'HYPOTHESIS_NOT_SHOWN',
      `a hypothesis is ${stands} only by what rows say, and this quotes none`,
      'Send quotes: [{ seq, text }], words copied from the results that show it; or send it as proposed.',
    )
  }
  const found = placesOfAll(quotes, evidenceOf(state, incidentId, bodies))
  return Array.isArray(found) ? null : refuse('HYPOTHESIS_NOT_SHOWN', found.why, found.remedy)
}
