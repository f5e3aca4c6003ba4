import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JournalEntry } from '../../domain/mesh.ts'
import { type Entry, hashOf, segmentsOf } from './chain.ts'

/**
 * What stands in the journal of a state directory after an entry, to the end of that segment: at least one entry where there is one. Read from the files,
 * since what an agent remembers is less than it wrote down.
 */
export function entriesAfter(state: string, after: number): { first: number; entries: JournalEntry[] } {
  const directory = join(state, 'journal')
  const segments = segmentsOf(directory)
  const first = segments[0] ? firstOf(segments[0]) : 0
  const from = Math.max(
    0,
    segments.findLastIndex((segment) => firstOf(segment) <= after + 1),
  )
  for (const segment of segments.slice(from)) {
    const entries = entriesOf(readFileSync(join(directory, segment))).filter(({ n }) => n > after)
    if (entries.length > 0) return { first, entries }
  }
  return { first, entries: [] }
}

/** A segment is named by its first entry. */
const firstOf = (segment: string): number => Number.parseInt(segment, 10)

function entriesOf(bytes: Buffer): JournalEntry[] {
  const entries: JournalEntry[] = []
  for (let offset = 0; ; ) {
    const end = bytes.indexOf(0x0a, offset)
    if (end < 0) return entries
    const line = bytes.subarray(offset, end)
    entries.push(shortOf(JSON.parse(line.toString('utf8')) as Entry, hashOf(line)))
    offset = end + 1
  }
}

/** An entry without what it says. */
export function shortOf(entry: Entry, hash: string): JournalEntry {
  const { n, at, prev, kind } = entry
  return { n, at, prev, hash, kind, request_id: 'request_id' in entry ? entry.request_id : null }
}
