/** A server's counters of its statements at one moment, in the same words for every dialect. */

export type StatementCount = {
  /** A statement and its user, as the server tells them apart. */
  key: string
  calls: number
  ms: number
  rows: number
  /** What it went through for its rows: blocks, or rows that were examined. */
  touched: number
  /** Without values. Of those that cost most; the others are known by their key. */
  statement: string | null
}

export type StatementCounts = {
  /** The owner of these counters: another word stands for other counters. */
  server: string
  version: string
  /** Null: the server does not tell. */
  countedSince: string | null
  /** All that the server counts are here: a statement that is not was never called. */
  isWhole: boolean
  counts: StatementCount[]
}

export type StatementSnapshot = StatementCounts & { takenAt: string }

/** Bytes that the counts of one snapshot take at most, as they are stored. */
const maxSnapshotBytes = 20_000
/** Statements whose text is kept. */
const maxTexts = 20

type Stored = [key: string, calls: number, ms: number, rows: number, touched: number, statement?: string | null]

/** The counts as one text: those that cost most, as many as fit. */
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
