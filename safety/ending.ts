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
 * Checks that the rows support the ending of a run. `resolve_incident` may only state what rows
 * show: that a write held, that every alert is over, that no alert fires. Null if the ending is
 * allowed.
 */
export function outcomeRule(outcome: unknown, state: SafetyState, policy: Policy): RuleAnswer | null {
  if (policy.isQuestion === true && outcome !== 'answered' && outcome !== 'repaired') {
    return refuse(
      'IS_A_QUESTION',
      `a question ends with the outcome answered, not ${String(outcome)}`,
      'Use outcome answered.',
    )
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
      'Use self_resolved or no_fault, or repair the fault.',
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
        : `the verification of ${write.tool} on ${targetsOf(write)} failed`,
      write.verified === 'unproven' && policy.resource
        ? `The write counts if ${resourceKey(policy.resource)} was unhealthy before the write and nominal after it, or if an alert ended later. Else escalate with findings.`
        : 'Try another repair or escalate with what you saw.',
    )
  }
  return degradedRule(state, policy)
}

/**
 * Refuses "repaired" if no write changed anything, whatever the verifications found. A failed write
 * with unknown changes repaired nothing either, unless a read or an alert shows an improvement.
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
    `repaired is claimed, but ${[...new Set(writes.map(({ tool }) => tool))].join(', ')} found nothing to change`,
    'Repair what is wrong, or use escalate_incident with category alert_goes_on or no_fault_found; self_resolved once its alerts are over.',
  )
}

/** Returns the newest write of each target, because a later success replaces a failure. */
function lastWrites({ writes }: SafetyState): WriteState[] {
  const newest = new Map<string, WriteState>()
  for (const write of writes) for (const target of keysOf(write)) newest.set(target, write)
  return [...new Set(newest.values())]
}

/**
 * Returns the targets of a write. A write without a target gets its call id, because the ending
 * must account for it too.
 */
function keysOf({ targets, callId }: WriteState): string[] {
  return targets.length === 0 ? [callId] : targets.map(resourceKey)
}

function targetsOf(write: WriteState): string {
  return write.targets.map(resourceKey).join(', ') || 'nothing named'
}

/**
 * Whether something supports an unproven write. Either the incident's resource or the write's
 * target was read as unhealthy before the write and as nominal after it; or every alert is over,
 * and an alert that fired when the write began has ended since. The end of alerts does not count if
 * the write touched the monitoring that raises alerts.
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

/** Refuses `self_resolved` while an alert fires, or too soon after the alerts ended. */
function selfResolvedRule(state: SafetyState, policy: Policy): RuleAnswer | null {
  const { alerts } = policy
  if (alerts?.total === 0) {
    return refuse('NO_ALERT', 'this incident has no alert, so none ended', 'Say what you found, or escalate.')
  }
  if (alerts && alerts.endless > 0) {
    return refuse(
      'STILL_FIRING',
      "the alert's sender never reports an end, so no end is shown",
      'Use escalate_incident with category no_fault_found, or repair the fault.',
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

/** Requires a read of the resource, or a person, for an alert whose end nothing reports. */
function endlessRule(state: SafetyState, { alerts, resource }: Policy): RuleAnswer | null {
  if (!alerts || alerts.endless === 0) return null
  const never = "the alert's sender never reports an end"
  const escalate = 'escalate_incident with category no_fault_found reports to a person what you saw.'
  if (alerts.isCritical === true)
    return refuse('STILL_FIRING', `${never}, and the alert is critical, so a person decides`, escalate)
  const look = resource ? state.looks.get(resourceKey(resource)) : undefined
  if (look?.health === 'nominal') return null
  const remedy = resource
    ? `Read ${resourceKey(resource)}. If it is nominal, send the ending again; else ${escalate}`
    : escalate
  return refuse('STILL_FIRING', `${never}, and no read of this attempt shows its resource nominal`, remedy)
}

function firingRule({ alerts }: Policy): RuleAnswer | null {
  if (!alerts || alerts.firing === 0) return null
  return refuse(
    'STILL_FIRING',
    alerts.firing === 1 ? 'the alert fires' : `${alerts.firing} of the alerts fire`,
    'Repair the cause of the alert, or use escalate_incident with category no_fault_found.',
    { firing: alerts.firing },
  )
}

/**
 * Refuses if the newest read of the incident's resource since the last write found it unhealthy.
 */
function degradedRule(state: SafetyState, { resource }: Policy): RuleAnswer | null {
  if (!resource) return null
  const look = state.looks.get(resourceKey(resource))
  const lastWriteSeq = state.writes.at(-1)?.startedSeq ?? 0
  if (!look || look.seq < lastWriteSeq || look.health === null || isWell(look.health)) return null
  return refuse(
    'STILL_DEGRADED',
    `${resourceKey(resource)} was ${look.health} at the last read`,
    `Read ${resourceKey(resource)} again; if nothing changed, repair it or escalate.`,
    { target: resourceKey(resource), health: look.health },
  )
}

/** Counts alerts that may be over without a proof of their end. */
const doubted = ({ unknown, unproven = 0 }: NonNullable<Policy['alerts']>): number => unknown + unproven

/** Refuses an ending until all alerts have been over for the required time. */
function quietRule(state: SafetyState, { alerts, resource }: Policy): RuleAnswer | null {
  if (!alerts || alerts.total === 0) return null
  const look = resource ? state.looks.get(resourceKey(resource)) : undefined
  if (doubted(alerts) > 0 && look?.health !== 'nominal') {
    return refuse(
      'STILL_FIRING',
      `${alerts.doubt ?? 'many alerts of the sender ended at once'}, so nothing shows that the alert is over`,
      'Read the resource itself; if that shows nothing, escalate.',
    )
  }
  const waitSeconds = alerts.endedForSeconds === null ? 0 : alerts.quietSeconds - alerts.endedForSeconds
  if (waitSeconds <= 0) return null
  return refuse(
    'NOT_QUIET_YET',
    `the alert ended ${Math.max(0, Math.floor(alerts.endedForSeconds ?? 0))} s ago and must stay quiet for ${alerts.quietSeconds} s`,
    'Nightshift keeps this ending and retries it.',
    { waitSeconds: Math.ceil(waitSeconds) },
  )
}

/**
 * Checks the two categories of a hand-over that state something about a write. All other categories
 * name a task for people.
 */
export function categoryRule(category: unknown, state: SafetyState, policy: Policy): RuleAnswer | null {
  if (category === 'mitigated') return mitigatedRule(state, policy)
  return category === 'alert_goes_on' ? goesOnRule(state, policy) : null
}

/** Checks `alert_goes_on`, which means that a write held and the alert still fires. */
function goesOnRule({ writes }: SafetyState, { alerts }: Policy): RuleAnswer | null {
  const isClosed = writes.some(({ verified }) => verified === 'held' || verified === 'unproven')
  const fires = !alerts || alerts.firing + alerts.endless + doubted(alerts) > 0
  if (isClosed && fires) return null
  return refuse(
    'NO_WRITE_HELD',
    isClosed ? 'alert_goes_on needs an alert that fires' : 'alert_goes_on needs a write of this attempt that held',
    isClosed
      ? 'Resolve the incident as the rows show, or use another category.'
      : 'Use no_fault_found, or another category.',
  )
}

/**
 * Checks `mitigated`, which means that the impact is gone. The proof of a repair shows that the
 * impact is gone, unless a target was read as unhealthy after the write.
 */
function mitigatedRule(state: SafetyState, policy: Policy): RuleAnswer | null {
  if (state.writes.length === 0) {
    return refuse('NOT_MITIGATED', 'mitigated is claimed, but this attempt wrote nothing', 'Use another category.')
  }
  const own = policy.resource ? resourceKey(policy.resource) : null
  const looks = lastWrites(state).flatMap((write) => write.targets.flatMap((target) => lookAfter(target, write, state)))
  const ill = looks.find(({ key, health }) => key !== own && !isWell(health))
  if (ill) {
    const hint = `Read ${ill.key} again; if nothing changed, use another category.`
    return refuse('NOT_MITIGATED', `${ill.key} was ${ill.health} after the write`, hint)
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
 * Checks an ending. An escalation needs one read. A resolution needs evidence, completed
 * verifications and, for a repair, a verification that held.
 */
export function terminalRule(
  args: Record<string, unknown>,
  state: SafetyState,
  policy: Policy,
  bodies: Bodies = new Map(),
): RuleAnswer {
  if (state.diagnostics === 0) {
    return refuse('NO_DIAGNOSTIC', 'nothing was read yet', 'Make at least one diagnostic call first.')
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

/** Corrects the row number of each quote that is in another row than the claim states. */
function inPlace(claims: readonly Claim[], state: SafetyState, { incidentId }: Policy, bodies: Bodies): Claim[] {
  const evidence = evidenceOf(state, incidentId, bodies)
  return claims.map((each) => inRightRows(each, evidence).claim)
}

function ownTargetRule(state: SafetyState, { resource, role }: Policy): RuleAnswer | null {
  if (!resource || state.lookedAt.has(resourceKey(resource))) return null
  return refuse(
    'OWN_TARGET_UNSEEN',
    role === 'follower'
      ? 'a hint from another incident proves nothing about this incident'
      : "the incident's own resource was not read",
    `Read ${resource.kind} ${resource.id} first.`,
    { target: resourceKey(resource) },
  )
}

/** Refuses the first claim that cites no successful row, even in an answer to a question. */
export function evidenceRule(claims: readonly StoredClaim[], state: SafetyState): RuleAnswer | null {
  for (const claim of claims) {
    const missing = rowsOf(claim).filter((seq) => !state.evidence.has(seq))
    if (missing.length === 0) continue
    return refuse(
      'EVIDENCE_MISSING',
      `the claim ${quote(claim.text)} cites ${missing.join(', ')}, not a successful row of this incident`,
      `Quote successful results by meta.seq: ${successful(state).slice(-20).join(', ')}`,
      { missing },
    )
  }
  const failures = new Set(state.rows.filter(isFailure).map(({ seq }) => seq))
  if (claims.length === 0 || claims.some((claim) => rowsOf(claim).some((seq) => !failures.has(seq)))) return null
  return refuse(
    'EVIDENCE_MISSING',
    'the claims cite only calls that failed or were refused',
    `Quote successful results by meta.seq: ${successful(state).slice(-20).join(', ')}`,
  )
}

/** Whether the row is of a failed or refused call, which a claim may quote only as a failure. */
function isFailure(row: SafetyState['rows'][number]): boolean {
  if (row.kind === 'call_judged') return true
  return row.kind === 'tool_finished' && !row.metadata.result.ok && row.metadata.effect !== 'write'
}

function successful({ rows }: SafetyState): number[] {
  return rows.flatMap((row) => (row.kind === 'tool_finished' && row.metadata.result.ok ? [row.seq] : []))
}

/** Outcomes without a repair that declare everything well: rows must show each of their claims. */
const unshownNever = ['no_fault', 'answered']

/**
 * Checks the wording of an ending, after all other rules. Wrong wording is refused once, and later
 * only marked, because a repair has to be recorded in any case.
 */
function wordsRule(args: Record<string, unknown>, state: SafetyState, { incidentId }: Policy, bodies: Bodies) {
  const text = String(args.resolution ?? args.reason ?? '')
  const said = { text, claims: (args.claims as Claim[] | undefined) ?? [] }
  return claimsRule(said, state, incidentId, bodies, unshownNever.includes(String(args.outcome)))
}

/**
 * Returns how certain an ending may be. The value is stored with the ruling, and is no reason to
 * refuse the ending.
 */
function certaintyOf(said: Certainty | undefined, { hypotheses, writes }: SafetyState) {
  const hasHeld = writes.some(({ verified }) => verified === 'held')
  return boundCertainty(said, [...hypotheses.values()], hasHeld)
}

/**
 * Checks a record about a hypothesis: a supported or refuted hypothesis must quote its rows word
 * for word.
 */
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
      `a hypothesis is ${stands} only by quoted rows; no row is quoted`,
      'Send quotes: [{ seq, text }], words copied from the results that show the hypothesis; or send the hypothesis as proposed.',
    )
  }
  const found = placesOfAll(quotes, evidenceOf(state, incidentId, bodies))
  return Array.isArray(found) ? null : refuse('HYPOTHESIS_NOT_SHOWN', found.why, found.remedy)
}
