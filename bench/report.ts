export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}

/** The value that so many per cent are not above. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] as number
}

/** Prints what was measured: a table for people, one JSON line for programs. */
export function report(bench: string, rows: Record<string, string | number>): void {
  console.log(`\n${bench}`)
  const width = Math.max(...Object.keys(rows).map((key) => key.length))
  for (const [key, value] of Object.entries(rows)) console.log(`  ${key.padEnd(width)}  ${value}`)
  console.log(JSON.stringify({ bench, ...rows }))
}
