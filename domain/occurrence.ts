const fiveMinutesMs = 300_000

/**
 * If a start or end is this close to the time of receipt, the sender may have used the time of
 * sending instead.
 */
const stampedAtSendingMs = 10_000

/** The times of an alert in one request body. */
export type SeenAlert = {
  /** The start as the sender gives it; null if the sender gives none or an impossible one. */
  startsAtMs: number | null
  receivedAtMs: number
}

export type StoredOccurrence = {
  startsAtMs: number
  isStartGiven: boolean
  /** How many request bodies gave this start. */
  startSeen: number
  startReceivedAtMs: number
  lastSeenMs: number
}

/**
 * Whether the body of a firing alert is a new occurrence. The sender must give a start that differs
 * from the stored start and is later than the last repeat. A start that code filled in does not
 * count. Nor does a start that the sender sets to the time of sending in every body.
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
 * Whether an end belongs to the stored occurrence. An end before the stored start, or before its
 * own start, ends nothing. An end whose own start is earlier than the stored start ends nothing
 * either.
 */
export function endsOccurrence(end: SeenAlert & { endsAtMs: number | null }, stored: StoredOccurrence): boolean {
  const { startsAtMs, endsAtMs } = end
  if (startsAtMs !== null && endsAtMs !== null && endsAtMs < startsAtMs) return false
  if (!stored.isStartGiven) return true
  if (startsAtMs !== null && startsAtMs < stored.startsAtMs) return false
  return endsAtMs === null || endsAtMs >= stored.startsAtMs
}

/** Whether the sender's time is so far in the future that no wrong clock explains it. */
export function isInFuture(timeMs: number, receivedAtMs: number): boolean {
  return timeMs > receivedAtMs + fiveMinutesMs
}
