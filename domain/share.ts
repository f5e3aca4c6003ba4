/** A share of trials with its interval, each between 0 and 1. */
export type Share = { hits: number; of: number; low: number; high: number }

/** Where a normal variable lies with 95 per cent. */
const z95 = 1.959963984540054

/**
 * The Wilson score interval of a proportion, at 95 per cent (E. B. Wilson, 1927). No trial says
 * nothing: 0 to 1. Throws a RangeError for more hits than trials, or fewer than none.
 */
export function wilson(hits: number, of: number): Share {
  if (hits < 0 || hits > of) throw new RangeError(`${hits} of ${of} is no share`)
  if (of === 0) return { hits, of, low: 0, high: 1 }
  const p = hits / of
  const square = z95 * z95
  const middle = (p + square / (2 * of)) / (1 + square / of)
  const half = (z95 / (1 + square / of)) * Math.sqrt((p * (1 - p)) / of + square / (4 * of * of))
  // The ends are exact where all or none hit; rounding would say 0.9999.
  return { hits, of, low: hits === 0 ? 0 : middle - half, high: hits === of ? 1 : middle + half }
}

/** Neither interval reaches into the other. */
export function isDifferent(a: Share, b: Share): boolean {
  return a.high < b.low || b.high < a.low
}
