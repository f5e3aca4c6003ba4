/**
 * The counters of a database server for its SQL statements at one moment, in the same form for
 * every product.
 */

export type StatementCount = {
  /** The key of a statement together with its user. */
  key: string
  calls: number
  ms: number
  rows: number
  /** The work behind the statement's rows: blocks, or rows that were examined. */
  touched: number
  /**
   * The text without values, for the most expensive statements. Null for others, which have only
   * the key.
   */
  statement: string | null
}

export type StatementCounts = {
  /**
   * Identifies the server of these counters. The counters of another server cannot be compared with
   * them.
   */
  server: string
  version: string
  /** Null if the server does not report the time. */
  countedSince: string | null
  /** Whether all counted statements are included, so that an absent statement was never called. */
  isWhole: boolean
  counts: StatementCount[]
}

export type StatementSnapshot = StatementCounts & { takenAt: string }

/** Maximum bytes of one stored snapshot. */
const maxSnapshotBytes = 20_000
/** How many statements keep their text. */
const maxTexts = 20

type Stored = [key: string, calls: number, ms: number, rows: number, touched: number, statement?: string | null]

/** Packs the counts into one text: as many as fit, the most expensive first. */
export function packCounts({ counts, isWhole }: StatementCounts): { text: string; isWhole: boolean } {
  const stored = counts
    .toSorted((a, b) => b.ms - a.ms)
    .map(({ key, calls, ms, rows, touched, statement }, place): Stored => {
      const text = place < maxTexts && statement !== null ? statement : null
      return [key.slice(0, 120), calls, Math.round(ms * 100) / 100, rows, touched, text]
    })
  let bytes = 2
  const kept: string[] = []
  for (const each of stored.map((one) => JSON.stringify(one))) {
    bytes += Buffer.byteLength(each) + 1
    if (bytes > maxSnapshotBytes) break
    kept.push(each)
  }
  return { text: `[${kept.join(',')}]`, isWhole: isWhole && kept.length === stored.length }
}

export const unpackCounts = (text: string): StatementCount[] =>
  (JSON.parse(text) as Stored[]).map(([key, calls, ms, rows, touched, statement]) => ({
    key,
    calls,
    ms,
    rows,
    touched,
    statement: statement ?? null,
  }))
