/** Chance by seed: the same seed draws the same life, on every machine. mulberry32, 32 bits of state. */
export type Random = {
  /** 0 ≤ x < 1 */
  next(): number
  /** 0 ≤ n < below */
  int(below: number): number
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T
}

export function randomOf(seed: number): Random {
  let state = (seed ^ 0x9e3779b9) >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
  const int = (below: number) => Math.floor(next() * below)
  return { next, int, chance: (probability) => next() < probability, pick: (from) => from[int(from.length)] as never }
}
