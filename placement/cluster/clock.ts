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
