/** How many of one kind of VM, how large in whole units, and what one is worth. */
export type Item = { ram: number; cpu: number; copies: number; worth: number }

/**
 * The most that can be packed into every room up to (ram, cpu) units, all at once: `best[r * (cpu + 1) + c]`. Exact for whole
 * worths below 2^53; bounded by the copies there are.
 */
export function bestPackings(items: readonly Item[], ram: number, cpu: number): Float64Array {
  const width = cpu + 1
  const best = new Float64Array((ram + 1) * width)
  for (const item of items) {
    if (item.worth <= 0) continue
    // Copies in bundles of 1, 2, 4, …: every number of copies is a sum of bundles.
    let left = Math.min(item.copies, copiesThatFit(item, ram, cpu))
    for (let bundle = 1; left > 0; bundle *= 2) {
      const count = Math.min(bundle, left)
      left -= count
      pack(best, width, ram, cpu, item.ram * count, item.cpu * count, item.worth * count)
    }
  }
  return best
}

function copiesThatFit(item: Item, ram: number, cpu: number): number {
  return Math.min(
    item.ram > 0 ? Math.floor(ram / item.ram) : Number.POSITIVE_INFINITY,
    item.cpu > 0 ? Math.floor(cpu / item.cpu) : Number.POSITIVE_INFINITY,
    item.copies,
  )
}

function pack(best: Float64Array, width: number, ram: number, cpu: number, dr: number, dc: number, worth: number) {
  for (let r = ram; r >= dr; r -= 1) {
    const row = r * width
    const below = (r - dr) * width - dc
    for (let c = cpu; c >= dc; c -= 1) {
      const with1 = best[below + c]! + worth
      if (with1 > best[row + c]!) best[row + c] = with1
    }
  }
}
