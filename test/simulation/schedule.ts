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

/**
 * Who goes next, by seed. A task runs until it parks at `turn()`; then any parked task may go on. What happens between two
 * turns is atomic, as a transaction is; everything else interleaves.
 */
export type Schedule = {
  turn(): Promise<void>
  /** Starts a task; it first runs when it is drawn. */
  start(task: () => Promise<void>): void
  /** Runs everything to its end. False when it did not end within so many turns. */
  run(turnsAtMost: number): Promise<boolean>
}

export function scheduleOf(random: Random, onTurn: () => void): Schedule {
  const parked: (() => void)[] = []
  let alive = 0
  let idle: () => void = () => {}

  const turn = () =>
    new Promise<void>((resolve) => {
      parked.push(resolve)
      idle()
    })

  return {
    turn,
    start(task) {
      alive += 1
      void (async () => {
        await turn()
        try {
          await task()
        } finally {
          alive -= 1
          idle()
        }
      })()
    },
    async run(turnsAtMost) {
      for (let turns = 0; turns < turnsAtMost; turns += 1) {
        if (alive === 0) return true
        const [next] = parked.splice(random.int(parked.length), 1)
        if (!next) return false
        onTurn()
        const settled = new Promise<void>((resolve) => {
          idle = resolve
        })
        next()
        await settled
      }
      return alive === 0
    },
  }
}
