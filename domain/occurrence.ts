const fiveMinutesMs = 300_000

/** Both stamps this close to their receipt: the sender stamps the time of sending. */
const stampedAtSendingMs = 10_000

/** What a body says of its alert's time, and what the stored occurrence knows. */
export type SeenAlert = {
  /** As the sender gave it; null when it gave none, or one that cannot be believed. */
  startsAtMs: number | null
  receivedAtMs: number
}

export type StoredOccurrence = {
  startsAtMs: number
  isStartGiven: boolean
  /** Bodies that carried this very start. */
  startSeen: number
  startReceivedAtMs: number
  lastSeenMs: number
}

/**
 * Whether a firing body is a new occurrence of a firing alert: only where its sender gave another
 * start than the stored one, after the last sight. A start that we filled in begins none, nor does
 * one that the sender stamps on every body.
 */
export function isNewOccurrence(seen: SeenAlert, stored: StoredOccurrence): boolean {
  if (seen.startsAtMs === null || !stored.isStartGiven) return false
  if (seen.startsAtMs === stored.startsAtMs || seen.startsAtMs <= stored.lastSeenMs) return false
  const stampsSending =
    stored.startSeen === 1 &&
    Math.abs(stored.startReceivedAtMs - stored.startsAtMs) <= stampedAtSendingMs &&
    Math.abs(seen.receivedAtMs - seen.startsAtMs) <= stampedAtSendingMs
  return !stampsSending
}

/**
 * Whether an end belongs to the stored occurrence: an older one, or one before its own start, ends
 * nothing.
 */
export function endsOccurrence(end: SeenAlert & { endsAtMs: number | null }, stored: StoredOccurrence): boolean {
  const { startsAtMs, endsAtMs } = end
  if (startsAtMs !== null && endsAtMs !== null && endsAtMs < startsAtMs) return false
  if (!stored.isStartGiven) return true
  if (startsAtMs !== null && startsAtMs < stored.startsAtMs) return false
  return endsAtMs === null || endsAtMs >= stored.startsAtMs
}

/** A time of a sender that lies further ahead than its clock may be wrong. */
export function isInFuture(timeMs: number, receivedAtMs: number): boolean {
  return timeMs > receivedAtMs + fiveMinutesMs
}
