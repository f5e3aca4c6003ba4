/**
 * The counters that a database server has for its SQL statements, at one moment. All products have
 * this form.
 */

export type StatementCount = {
  /** The key of a statement of one user. */
  key: string
  calls: number
  ms: number
  rows: number
  /** The work behind the statement's rows: blocks, or rows that were examined. */
  touched: number
  /**
   * The statement without values. Null for all but the most expensive statements, which have only
   * the key.
   */
  statement: string | null
}

export type StatementCounts = {
  /** Identifies the server with these counters. The counters of two servers cannot be compared. */
  server: string
  version: string
  /** The time since which the server counts; null if the server does not report it. */
  countedSince: string | null
  /** Whether all counted statements are included, so that an absent statement was never called. */
  isWhole: boolean
  counts: StatementCount[]
}

export type StatementSnapshot = StatementCounts & { takenAt: string }

/** Maximum bytes of one stored snapshot. */
const maxSnapshotBytes = 20_000
/** How many statements of a snapshot keep their text. */
const maxTexts = 20

type Stored = [key: string, calls: number, ms: number, rows: number, touched: number, statement?: string | null]

/** Packs counts of statements into one text: as many as fit, the most expensive first. */
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
