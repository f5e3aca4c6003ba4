/** A share of trials with its interval. `low` and `high` are between 0 and 1. */
export type Share = { hits: number; of: number; low: number; high: number }

/** Standard deviations around the mean that contain 95 per cent of a normal distribution. */
const z95 = 1.959963984540054

/**
 * Returns the Wilson score interval of a proportion, at 95 per cent (E. B. Wilson, 1927). Without a
 * trial the interval is 0 to 1. Throws a RangeError if there are more hits than trials, or if a
 * number is negative.
 */
export function wilson(hits: number, of: number): Share {
  if (hits < 0 || hits > of) throw new RangeError(`${hits} of ${of} is not a share`)
  if (of === 0) return { hits, of, low: 0, high: 1 }
  const p = hits / of
  const square = z95 * z95
  const middle = (p + square / (2 * of)) / (1 + square / of)
  const half = (z95 / (1 + square / of)) * Math.sqrt((p * (1 - p)) / of + square / (4 * of * of))
  // Returns exact ends if all trials or none are hits, because rounding would give 0.9999.
  return { hits, of, low: hits === 0 ? 0 : middle - half, high: hits === of ? 1 : middle + half }
}

/** Whether two intervals do not overlap. */
export function isDifferent(a: Share, b: Share): boolean {
  return a.high < b.low || b.high < a.low
}
