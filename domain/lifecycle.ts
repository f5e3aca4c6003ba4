import type { ClosedBy, IncidentStatus, ResolveOutcome } from './incident.ts'

/**
 * The meaning of an alert, or of passing time, for its incident: the one table behind ingest and
 * the watchdog. Pure: rows and the database's clock go in, one decision comes out. What the world
 * had to say was read before and is a row (`look`). Nothing that fires is dropped: every cell
 * counts, watches, reminds, reopens or opens.
 */
export type LifecycleView = {
  nowMs: number
  status: IncidentStatus
  /** How it was closed. Null while it is open, and on incidents that version 0.1 closed. */
  outcome: ResolveOutcome | null
  closedBy: ClosedBy | null
  closedAtMs: number | null
  isCritical: boolean
  /** A person took it: no reminder and no attempt while they have it. */
  isOwned: boolean
  alerts: AlertCounts
  /** When the last of its alerts ended, else when one was last seen. Null without an alert. */
  lastEndMs: number | null
  /** When an alert last changed what is known: raised, ended, begun again. A look must be newer. */
  lastAlertChangeMs: number | null
  watchUntilMs: number | null
  /** A look showed that the write held, and the alert fires on. */
  isRepairConfirmed: boolean
  /** Looks since the watch was over that could not read what they were to read. */
  unreadableLooks: number
  look: RepairCheck | null
  isReminded: boolean
  cancelledUntilMs: number | null
  expectedUntilMs: number | null
  /** Attempts of the last 24 hours at the same (sender, fingerprint), over linked incidents. */
  attemptsToday: number
}

/** `unproven`: ended, by a word of its sender that proves nothing. */
export type AlertCounts = { total: number; firing: number; unknown: number; unproven: number }

/** What code saw when it looked after a repair, or at what a mark calls expected. */
export type RepairCheck = {
  atMs: number
  /** The worst postcondition of the newest writes, one a target; null where nothing was written. */
  verification: 'held' | 'not_held' | 'open' | 'unproven' | null
  /** The incident's own resource; without one, the targets written. Null where there is neither. */
  resource: 'nominal' | 'degraded' | 'unknown' | null
}

export type LifecycleRules = {
  settleSeconds: number
  settleMaxSeconds: number
  quietSeconds: number
}

/**
 * `repeat`: a firing alert came in again. `occurrence`: it had ended, or has a new start. `end`: an
 * alert ended. `tick`: time passed.
 */
export type Happening = 'repeat' | 'occurrence' | 'end' | 'tick'

export type LifecycleDecision =
  /** The alert's counter is all that changes. */
  | { do: 'count' }
  /** A new occurrence that starts nothing: recorded as a flap. */
  | { do: 'flap' }
  | { do: 'flap_tell_owner' }
  /** The incident goes back to the queue for its next attempt. */
  | { do: 'reopen'; why: ReopenReason }
  | { do: 'open_linked' }
  | { do: 'escalate'; code: 'ALERT_GOES_ON' | 'DOES_NOT_LAST' }
  /** All alerts were quiet long enough: closes without a run, or tells the run. */
  | { do: 'close_quiet'; by: QuietProof }
  | { do: 'tell_run' }
  | { do: 'start_watch' }
  | { do: 'end_watch'; word: 'over' | 'unknown' }
  /** The write held and the alert fires on: people hear of it; it is watched on or escalated. */
  | { do: 'confirm_repair'; next: 'watch' | 'escalate' }
  | { do: 'look' }
  | { do: 'remind' }
  | { do: 'mark_quiet' }
  | { do: 'nothing' }

export type ReopenReason = 'came_back' | 'did_not_last' | 'cancellation_over' | 'expectation_over'

export const reopenText: Record<ReopenReason, string> = {
  came_back: 'It came back: its alert fires again',
  did_not_last: 'The repair did not last: its alert fires on, and a look does not show what the repair promised',
  cancellation_over: 'The cancellation is over and its alert still fires',
  expectation_over: 'It is expected no longer and its alert still fires',
}

/** A new occurrence this soon after closing and last end is the same trouble coming back. */
const sameTroubleSeconds = 30 * 60
/** The same for an incident that people have: they look at it for a day. */
const sameEscalationSeconds = 24 * 3600
/** Attempts a day at one alert, over linked incidents. More would hide the cause. */
export const attemptsPerDay = 3
/** Looks that may fail to read before the repair counts as one that did not last. */
const maxUnreadableLooks = 3
/** A resource that was not seen well is looked at again after this, while its alert may be over. */
const lookAgainSeconds = 15 * 60
/** How often such an incident is decided about meanwhile. */
const doubtCheckSeconds = 60
/** How long a cancellation lasts where nobody said, and on incidents that version 0.1 cancelled. */
export const cancelledSeconds = 24 * 3600

const count: LifecycleDecision = { do: 'count' }
const nothing: LifecycleDecision = { do: 'nothing' }

/** Decides one cell of the table. Total: every status, outcome and happening has an answer. */
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
  // An alert that only went silent ends no investigation.
  return by === 'nothing' ? nothing : { do: 'tell_run' }
}

/** The proof that quiet alerts are over: ends, a look at the incident's resource, or nothing. */
export type QuietProof = 'ends' | 'look' | 'nothing'

export function quietProof(view: LifecycleView): QuietProof {
  if (view.alerts.unknown + view.alerts.unproven === 0) return 'ends'
  return isSeenWell(view) ? 'look' : 'nothing'
}

/** Seconds without an alert until an incident may close by itself; more while a person is asked. */
export function quietSecondsFor(status: IncidentStatus, rules: Pick<LifecycleRules, 'quietSeconds'>): number {
  return status === 'awaiting_approval' ? rules.quietSeconds * 2.5 : rules.quietSeconds
}

/** Have all its alerts been over for long enough? An incident without an alert is never quiet. */
export function isQuiet(view: LifecycleView, rules: LifecycleRules): boolean {
  const { alerts, lastEndMs, nowMs, status } = view
  if (alerts.total === 0 || alerts.firing > 0 || lastEndMs === null) return false
  // Nobody knows whether they ended: only a nominal resource says so.
  if (alerts.unknown > 0 && !isSeenWell(view)) return false
  return nowMs - lastEndMs >= quietSecondsFor(status, rules) * 1000
}

/**
 * An alert may be over: code looks whether the incident's resource is well, at once and then from
 * time to time.
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
  // Over by itself, no fault, answered, or closed by 0.1: a later alert is a new occurrence.
  if (happening === 'repeat' || happening === 'occurrence') return comesBack(view)
  return nothing
}

function resolvedByPerson(view: LifecycleView, happening: Happening, rules: LifecycleRules): LifecycleDecision {
  if (happening === 'occurrence') return comesBack(view)
  if (happening === 'repeat') return count
  if (happening === 'end' || view.alerts.firing === 0 || view.isReminded || view.isOwned) return nothing
  return view.nowMs - (view.closedAtMs ?? 0) >= rules.settleSeconds * 1000 ? { do: 'remind' } : nothing
}

/** Repaired while its alert fires on: a look that it held is believed, never for ever. */
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
    // A repaired incident that is not critical wakes nobody until the longest time is over.
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
    // Closed by version 0.1: nobody watches it, so its next sight is a new occurrence.
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
 * A new occurrence after closing: the same incident again while it is the same trouble, else a new
 * one.
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

/** Since the later of closing and the last end. */
function secondsSinceEnd({ nowMs, closedAtMs, lastEndMs }: LifecycleView): number {
  return (nowMs - Math.max(closedAtMs ?? 0, lastEndMs ?? 0)) / 1000
}

/** When the watchdog has to decide again although nothing came in; null: when something does. */
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
