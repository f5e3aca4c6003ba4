/** How many of one kind of VM, how large in whole placementGroups, and what one is worth. */
export type Item = { ram: number; cpu: number; copies: number; worth: number }

/**
 * The most that can be packed into every room up to (ram, cpu) placementGroups, all at once: `best[r * (cpu + 1) + c]`. Exact for whole
 * worths below 2^53; bounded by the copies there are.
 */
export function bestPackings(items: readonly Item[], ram: number, cpu: number): Float64Array {
  const width = cpu + 1
  const best = new Float64Array((ram + 1) * width)
  for (const { item, count } of splitIntoBundles(items, ram, cpu)) pack({ best, taken: null, ram, cpu }, item, count)
  return best
}

/** How many of each item make up the best packing of this one room: every choice is remembered, and followed back. */
export function bestPacking(items: readonly Item[], ram: number, cpu: number): number[] {
  const width = cpu + 1
  const best = new Float64Array((ram + 1) * width)
  const bundles = splitIntoBundles(items, ram, cpu).map((bundle) => ({ ...bundle, taken: new Uint8Array(best.length) }))
  for (const { item, count, taken } of bundles) pack({ best, taken, ram, cpu }, item, count)
  const counts: number[] = items.map(() => 0)
  let [r, c] = [ram, cpu]
  for (const { index, item, count, taken } of bundles.reverse()) {
    if (!taken[r * width + c]) continue
    counts[index]! += count
    r -= item.ram * count
    c -= item.cpu * count
  }
  return counts
}

/** Copies in bundles of 1, 2, 4, …: every number of copies is a sum of bundles. What is worth nothing is left out. */
function splitIntoBundles(items: readonly Item[], ram: number, cpu: number) {
  return items.flatMap((item, index) => {
    const bundles: { index: number; item: Item; count: number }[] = []
    let left = item.worth > 0 ? copiesThatFit(item, ram, cpu) : 0
    for (let bundle = 1; left > 0; bundle *= 2) {
      const count = Math.min(bundle, left)
      left -= count
      bundles.push({ index, item, count })
    }
    return bundles
  })
}

function copiesThatFit(item: Item, ram: number, cpu: number): number {
  return Math.min(
    item.ram > 0 ? Math.floor(ram / item.ram) : item.copies,
    item.cpu > 0 ? Math.floor(cpu / item.cpu) : item.copies,
    item.copies,
  )
}

/** The best worth for every room up to `ram` and `cpu`, row by row, and whether the last bundle was taken there. */
type Table = { best: Float64Array; taken: Uint8Array | null; ram: number; cpu: number }

function pack({ best, taken, ram, cpu }: Table, item: Item, count: number): void {
  const width = cpu + 1
  const [dr, dc, worth] = [item.ram * count, item.cpu * count, item.worth * count]
  for (let r = ram; r >= dr; r -= 1) {
    const row = r * width
    const below = (r - dr) * width - dc
    for (let c = cpu; c >= dc; c -= 1) {
      const together = best[below + c]! + worth
      if (together <= best[row + c]!) continue
      best[row + c] = together
      if (taken) taken[row + c] = 1
    }
  }
}
