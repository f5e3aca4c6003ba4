/**
 * Work that a search may still do, counted in hosts and VMs looked at: the same on every machine, so that one seed gives one plan. Time
 * only ends what would take too long.
 */
export type Work = { left: number }

let hasCut = false

/** Is this moment over? The caller stops then, so that what is found may depend on how fast this machine is. */
export function isUp(deadlineMs: number): boolean {
  if (performance.now() <= deadlineMs) return false
  hasCut = true
  return true
}

/** Notes that time ran out before something was done. */
export function noteCut(): void {
  hasCut = true
}

/** Has time ended anything since the process began? Each search has its own process (`plan-process.ts`). */
export function wasCut(): boolean {
  return hasCut
}

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32): a reader of a plan can reproduce it. */
export function random(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
