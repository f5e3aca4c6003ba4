import type { ClosedBy, IncidentStatus, ResolveOutcome } from './incident.ts'

/**
 * Decides what an alert, or passing time, means for its incident. Ingest and the watchdog use the
 * decision. Has no side effect: takes rows and the time of the database, and returns one decision.
 * If the state of a resource matters, it was read earlier and is in a row (`look`). No firing alert
 * is ignored: for each combination of status, outcome and event, the decision counts, watches,
 * reminds, reopens or opens.
 */
export type LifecycleView = {
  nowMs: number
  status: IncidentStatus
  /** The incident's outcome. Null while it is open, and if version 0.1 closed it. */
  outcome: ResolveOutcome | null
  closedBy: ClosedBy | null
  closedAtMs: number | null
  isCritical: boolean
  /**
   * Whether a person took the incident. While a person has the incident, there is no reminder and
   * no attempt.
   */
  isOwned: boolean
  alerts: AlertCounts
  /**
   * The time at which the last alert ended, or otherwise was last seen. Null if there is no alert.
   */
  lastEndMs: number | null
  /**
   * The time at which an alert last changed its state: was raised, ended, or began again. A read of
   * the resource must be newer to be used.
   */
  lastAlertChangeMs: number | null
  watchUntilMs: number | null
  /** Whether a read showed that the write worked although the alert still fires. */
  isRepairConfirmed: boolean
  /** How many reads of the resource have failed since the end of the watch. */
  unreadableLooks: number
  look: RepairCheck | null
  isReminded: boolean
  cancelledUntilMs: number | null
  expectedUntilMs: number | null
  /**
   * Attempts of the last 24 hours for this pair of sender and fingerprint, including attempts of
   * linked incidents.
   */
  attemptsToday: number
}

/** `unproven`: how many alerts ended by a sender's word that proves nothing. */
export type AlertCounts = { total: number; firing: number; unknown: number; unproven: number }

/** The result of a read that code makes after a repair, or for an expected state. */
export type RepairCheck = {
  atMs: number
  /** The worst verification of the newest writes, one per target; null without a write. */
  verification: 'held' | 'not_held' | 'open' | 'unproven' | null
  /**
   * The state of the incident's resource, otherwise of the targets of the writes. Null if the
   * incident has neither.
   */
  resource: 'nominal' | 'degraded' | 'unknown' | null
}

export type LifecycleRules = {
  settleSeconds: number
  settleMaxSeconds: number
  quietSeconds: number
}

/**
 * The event to decide about. `repeat`: a firing alert was sent again. `occurrence`: the alert had
 * ended, or has a new start. `end`: an alert ended. `tick`: time passed.
 */
export type Happening = 'repeat' | 'occurrence' | 'end' | 'tick'

export type LifecycleDecision =
  /** Only the alert's counter changes. */
  | { do: 'count' }
  /** A new occurrence of the alert is recorded as a flap and starts nothing. */
  | { do: 'flap' }
  | { do: 'flap_tell_owner' }
  /** The incident returns to the queue for its next attempt. */
  | { do: 'reopen'; why: ReopenReason }
  | { do: 'open_linked' }
  | { do: 'escalate'; code: 'ALERT_GOES_ON' | 'DOES_NOT_LAST' }
  /**
   * All alerts were quiet long enough. The incident closes without a run, or (`tell_run`) the run
   * is informed.
   */
  | { do: 'close_quiet'; by: QuietProof }
  | { do: 'tell_run' }
  | { do: 'start_watch' }
  | { do: 'end_watch'; word: 'over' | 'unknown' }
  /**
   * The write worked, but the alert still fires. People are notified, and the incident is watched
   * or escalated.
   */
  | { do: 'confirm_repair'; next: 'watch' | 'escalate' }
  | { do: 'look' }
  | { do: 'remind' }
  | { do: 'mark_quiet' }
  | { do: 'nothing' }

export type ReopenReason = 'came_back' | 'did_not_last' | 'cancellation_over' | 'expectation_over'

export const reopenText: Record<ReopenReason, string> = {
  came_back: 'The incident came back: its alert fires again',
  did_not_last: 'The repair did not last: its alert still fires, and a check does not confirm the repair',
  cancellation_over: 'The cancellation is over, and its alert still fires',
  expectation_over: 'The mark as expected has ended, and its alert still fires',
}

/**
 * Seconds after the closing and after the last end of an alert. A new occurrence within both counts
 * as the same problem.
 */
const sameTroubleSeconds = 30 * 60
/**
 * Seconds as in `sameTroubleSeconds`, for an escalated incident, which people may handle for a day.
 */
const sameEscalationSeconds = 24 * 3600
/** Most attempts per day for one alert, over linked incidents. More would hide the cause. */
export const attemptsPerDay = 3
/** Number of failed reads after which a repair is treated as one that did not last. */
const maxUnreadableLooks = 3
/** Seconds until an unhealthy resource is read again while its alert may be over. */
const lookAgainSeconds = 15 * 60
/** Seconds between decisions about an incident whose alert may be over. */
const doubtCheckSeconds = 60
/**
 * Seconds for which an incident stays cancelled if no end was given, or if version 0.1 cancelled
 * it.
 */
export const cancelledSeconds = 24 * 3600

const count: LifecycleDecision = { do: 'count' }
const nothing: LifecycleDecision = { do: 'nothing' }

/** Decides for one combination of status, outcome and event. Every combination has a decision. */
export function decideLifecycle(view: LifecycleView, happening: Happening, rules: LifecycleRules): LifecycleDecision {
  switch (view.status) {
    case 'open':
    case 'investigating':
    case 'awaiting_approval':
      return whileAtWork(view, happening, rules)
    case 'resolved':
      return whileResolved(view, happening, rules)
    case 'escalated':
      return whileEscalated(view, happening)
    case 'cancelled':
      return whileCancelled(view, happening)
  }
}

function whileAtWork(view: LifecycleView, happening: Happening, rules: LifecycleRules): LifecycleDecision {
  if (happening === 'repeat') return count
  if (happening === 'occurrence') return { do: 'flap' }
  const by = quietProof(view)
  if (by === 'nothing' && wantsDoubtLook(view, happening)) return { do: 'look' }
  if (!isQuiet(view, rules)) return nothing
  if (view.status === 'open') return { do: 'close_quiet', by }
  // Informs the run only of a proof, because a silent alert alone does not end an investigation.
  return by === 'nothing' ? nothing : { do: 'tell_run' }
}

/**
 * Why quiet alerts count as over: the alerts ended, a read of the incident's resource shows that
 * they are over, or nothing proves that they are over.
 */
export type QuietProof = 'ends' | 'look' | 'nothing'

export function quietProof(view: LifecycleView): QuietProof {
  if (view.alerts.unknown + view.alerts.unproven === 0) return 'ends'
  return isSeenWell(view) ? 'look' : 'nothing'
}

/**
 * Seconds without an alert after which an incident closes by itself. The time is longer while
 * people are asked for an approval.
 */
export function quietSecondsFor(status: IncidentStatus, rules: Pick<LifecycleRules, 'quietSeconds'>): number {
  return status === 'awaiting_approval' ? rules.quietSeconds * 2.5 : rules.quietSeconds
}

/** Whether all alerts have been over long enough. Always false for an incident without an alert. */
export function isQuiet(view: LifecycleView, rules: LifecycleRules): boolean {
  const { alerts, lastEndMs, nowMs, status } = view
  if (alerts.total === 0 || alerts.firing > 0 || lastEndMs === null) return false
  // Requires a healthy resource if the end of an alert is unknown, because nothing else shows that
  // the alert is over.
  if (alerts.unknown > 0 && !isSeenWell(view)) return false
  return nowMs - lastEndMs >= quietSecondsFor(status, rules) * 1000
}

/**
 * Whether an alert may be over, so that code should read the incident's resource now. Code reads
 * the resource at once, and again from time to time.
 */
function wantsDoubtLook(view: LifecycleView, happening: Happening): boolean {
  const { alerts, look, nowMs } = view
  if (happening !== 'tick' || alerts.firing > 0 || alerts.unknown + alerts.unproven === 0) return false
  if (look === null || !isLookNew(view)) return true
  return look.resource !== null && look.resource !== 'nominal' && nowMs - look.atMs >= lookAgainSeconds * 1000
}

const isSeenWell = (view: LifecycleView): boolean => view.look?.resource === 'nominal' && isLookNew(view)

function isLookNew({ look, lastAlertChangeMs }: LifecycleView): boolean {
  return look !== null && look.atMs > (lastAlertChangeMs ?? 0)
}

function whileResolved(view: LifecycleView, happening: Happening, rules: LifecycleRules): LifecycleDecision {
  if (view.outcome === 'expected') return whileExpected(view, happening)
  if (view.closedBy === 'person') return resolvedByPerson(view, happening, rules)
  if (view.outcome === 'repaired') return whileWatched(view, happening, rules)
  // Treats any later alert as a new occurrence. These incidents ended by themselves, had no fault,
  // were answered, or were closed by version 0.1.
  if (happening === 'repeat' || happening === 'occurrence') return comesBack(view)
  return nothing
}

function resolvedByPerson(view: LifecycleView, happening: Happening, rules: LifecycleRules): LifecycleDecision {
  if (happening === 'occurrence') return comesBack(view)
  if (happening === 'repeat') return count
  if (happening === 'end' || view.alerts.firing === 0 || view.isReminded || view.isOwned) return nothing
  return view.nowMs - (view.closedAtMs ?? 0) >= rules.settleSeconds * 1000 ? { do: 'remind' } : nothing
}

/**
 * Decides for a repaired incident whose alert still fires. The verification of the repair is valid
 * only for a limited time.
 */
function whileWatched(view: LifecycleView, happening: Happening, rules: LifecycleRules): LifecycleDecision {
  if (happening === 'occurrence') return comesBack(view)
  if (happening === 'repeat') return view.watchUntilMs === null ? { do: 'start_watch' } : count
  if (view.watchUntilMs === null) return nothing
  if (view.alerts.firing === 0)
    return { do: 'end_watch', word: view.alerts.unknown + view.alerts.unproven > 0 ? 'unknown' : 'over' }
  if (happening === 'end' || view.nowMs < view.watchUntilMs) return nothing
  if (view.isOwned) return nothing
  if (view.nowMs >= (view.closedAtMs ?? 0) + rules.settleMaxSeconds * 1000) {
    return { do: 'escalate', code: 'ALERT_GOES_ON' }
  }
  if (view.isRepairConfirmed) return nothing
  return judgeRepair(view)
}

function judgeRepair(view: LifecycleView): LifecycleDecision {
  const { look, watchUntilMs } = view
  if (look === null || !isLookNew(view) || look.atMs < (watchUntilMs ?? 0)) return { do: 'look' }
  const isReadable = look.verification !== 'open' && look.resource !== 'unknown'
  if (!isReadable && view.unreadableLooks < maxUnreadableLooks) return { do: 'look' }
  const isHeld = look.verification === 'held' || look.verification === 'unproven'
  if (isHeld && look.resource === 'nominal') {
    // Watches an incident that is not critical instead of escalating it, so that it wakes nobody
    // until the longest time has passed.
    return { do: 'confirm_repair', next: view.isCritical ? 'escalate' : 'watch' }
  }
  return again(view, 'did_not_last')
}

function whileExpected(view: LifecycleView, happening: Happening): LifecycleDecision {
  const isInForce = view.expectedUntilMs !== null && view.nowMs < view.expectedUntilMs
  if (happening === 'repeat') return isInForce ? count : again(view, 'expectation_over')
  if (happening === 'occurrence') return comesBack(view)
  if (happening === 'end' || isInForce || view.alerts.firing === 0 || view.isOwned) return nothing
  return again(view, 'expectation_over')
}

function whileEscalated(view: LifecycleView, happening: Happening): LifecycleDecision {
  if (happening === 'repeat') {
    // Treats the next alert as a new occurrence if version 0.1 closed the incident, because nobody
    // watches such an incident.
    return view.closedBy === null ? escalatedComesBack(view) : count
  }
  if (happening === 'occurrence') return escalatedComesBack(view)
  const { firing, unknown, unproven } = view.alerts
  if (happening === 'end' && firing + unknown + unproven === 0) return { do: 'mark_quiet' }
  return nothing
}

function escalatedComesBack(view: LifecycleView): LifecycleDecision {
  if (view.isOwned) return { do: 'flap_tell_owner' }
  if (secondsSinceEnd(view) > sameEscalationSeconds) return { do: 'open_linked' }
  return view.attemptsToday < attemptsPerDay ? { do: 'reopen', why: 'came_back' } : { do: 'flap' }
}

function whileCancelled(view: LifecycleView, happening: Happening): LifecycleDecision {
  const until = view.cancelledUntilMs ?? (view.closedAtMs ?? 0) + cancelledSeconds * 1000
  if (happening === 'end') return nothing
  if (happening === 'tick') {
    return view.nowMs >= until && view.alerts.firing > 0 && !view.isOwned ? again(view, 'cancellation_over') : nothing
  }
  if (view.nowMs < until) return happening === 'repeat' ? count : { do: 'flap' }
  return again(view, 'cancellation_over')
}

/**
 * Decides about a new occurrence after the incident closed: reopens the incident for the same
 * problem, otherwise opens a new incident.
 */
function comesBack(view: LifecycleView): LifecycleDecision {
  if (view.isOwned) return { do: 'flap_tell_owner' }
  if (secondsSinceEnd(view) > sameTroubleSeconds) return { do: 'open_linked' }
  return again(view, 'came_back')
}

function again(view: LifecycleView, why: ReopenReason): LifecycleDecision {
  if (view.isOwned) return { do: 'flap_tell_owner' }
  if (view.attemptsToday >= attemptsPerDay) return { do: 'escalate', code: 'DOES_NOT_LAST' }
  return { do: 'reopen', why }
}

/** Returns the seconds since the closing or the last end of an alert, whichever is later. */
function secondsSinceEnd({ nowMs, closedAtMs, lastEndMs }: LifecycleView): number {
  return (nowMs - Math.max(closedAtMs ?? 0, lastEndMs ?? 0)) / 1000
}

/**
 * Returns when the watchdog must decide again if no alert is received. Null if the watchdog decides
 * only when an alert is received.
 */
export function nextCheckMs(view: LifecycleView, rules: LifecycleRules): number | null {
  const { status, alerts, nowMs } = view
  if (status === 'open' || status === 'investigating' || status === 'awaiting_approval') {
    if (alerts.total === 0 || alerts.firing > 0 || view.lastEndMs === null) return null
    const quietMs = view.lastEndMs + quietSecondsFor(status, rules) * 1000
    const isSeenInVain = alerts.unknown > 0 && isLookNew(view) && !isSeenWell(view)
    return Math.max(isSeenInVain ? nowMs + doubtCheckSeconds * 1000 : nowMs, quietMs)
  }
  if (alerts.firing === 0) return null
  if (status === 'cancelled') return view.cancelledUntilMs ?? (view.closedAtMs ?? nowMs) + cancelledSeconds * 1000
  if (status !== 'resolved') return null
  if (view.outcome === 'expected') return view.expectedUntilMs
  if (view.closedBy === 'person') {
    return view.isReminded ? null : (view.closedAtMs ?? nowMs) + rules.settleSeconds * 1000
  }
  if (view.outcome !== 'repaired' || view.watchUntilMs === null) return null
  if (nowMs < view.watchUntilMs) return view.watchUntilMs
  return view.isRepairConfirmed ? (view.closedAtMs ?? nowMs) + rules.settleMaxSeconds * 1000 : nowMs
}
