const fiveMinutesMs = 300_000

/**
 * If a start or end is this close to its receipt, the sender may have put the time of sending
 * there.
 */
const stampedAtSendingMs = 10_000

/** The times of an alert in a request body. */
export type SeenAlert = {
  /** The start as the sender gives it; null if there is none or it is impossible. */
  startsAtMs: number | null
  receivedAtMs: number
}

export type StoredOccurrence = {
  startsAtMs: number
  isStartGiven: boolean
  /** How many request bodies had this start. */
  startSeen: number
  startReceivedAtMs: number
  lastSeenMs: number
}

/**
 * Whether the body of a firing alert is a new occurrence. The sender must give a start that differs
 * from the stored one and is later than the last repeat. A start that was filled in does not count.
 * A start that the sender sets to the time of sending in every body does not count either.
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
 * Whether an end belongs to the stored occurrence. An end before the stored start or before its own
 * start ends nothing. An end with an earlier start than the stored start ends nothing either.
 */
export function endsOccurrence(end: SeenAlert & { endsAtMs: number | null }, stored: StoredOccurrence): boolean {
  const { startsAtMs, endsAtMs } = end
  if (startsAtMs !== null && endsAtMs !== null && endsAtMs < startsAtMs) return false
  if (!stored.isStartGiven) return true
  if (startsAtMs !== null && startsAtMs < stored.startsAtMs) return false
  return endsAtMs === null || endsAtMs >= stored.startsAtMs
}

/** Whether the sender's time is too far in the future to be explained by a wrong clock. */
export function isInFuture(timeMs: number, receivedAtMs: number): boolean {
  return timeMs > receivedAtMs + fiveMinutesMs
}
