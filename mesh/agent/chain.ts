import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Capability, CapabilityAnswer, JournalEntry, MeshErrorCode } from '../../domain/mesh.ts'

/** The hash that the first entry names as its predecessor. */
export const genesis = '0'.repeat(64)

/** The contents of a journal entry. */
export type JournalEntryBody =
  | { kind: 'started'; version: string; boot: string }
  | {
      kind: 'accepted'
      request_id: string
      key: string
      /** SHA-256 of the request, so that its key cannot be used for another request. */
      digest: string
      capability: Capability
      effect: 'read' | 'write'
      approval: CapabilityAnswer['approval_status']
      command: string | null
      grant: { id: string; authority: string; ends_ms: number } | null
      key_id: string
    }
  | { kind: 'running'; request_id: string; pid: number; start_ticks: string }
  | { kind: 'done'; request_id: string; key: string; answer: Omit<CapabilityAnswer, 'audit_hash'> }
  | {
      kind: 'refused'
      request_id: string
      key: string
      capability: Capability
      command: string | null
      code: MeshErrorCode
    }
  | { kind: 'lost'; reason: string }
  | { kind: 'loss_accepted' }
  | { kind: 'pruned'; through: number }

/**
 * A journal entry, written as one line. `prev` is the SHA-256 of the line before, so that no line
 * can be changed, removed or inserted unnoticed.
 */
export type ChainEntry = { n: number; prev: string; at: string } & JournalEntryBody

export function hashOf(line: string | Uint8Array): string {
  return createHash('sha256').update(line).digest('hex')
}

type VerifiedChain = {
  /** The number of the last entry; 0 for a journal without entries, whose `head` is `genesis`. */
  entries: number
  head: string
  /** The number of the oldest remaining entry. An entry records that older ones were pruned. */
  first: number
  segments: string[]
  /** The bytes of an incomplete last line. No call was started because of it. */
  tornBytes: number
}

export type JournalPosition = { segment: string; offset: number; length: number }

/**
 * Reads a journal from its oldest segment to its last line, and returns where its chain breaks.
 * `visit` is called with each valid entry in order.
 */
export function verifyChain(
  directory: string,
  visit: (entry: ChainEntry, hash: string, place: JournalPosition) => void = () => undefined,
): ({ ok: true } & VerifiedChain) | { ok: false; reason: string } {
  const segments = segmentsOf(directory)
  let last = { n: 0, hash: genesis }
  let first = 0
  let pruned = 0
  let tornBytes = 0
  for (const segment of segments) {
    const bytes = readFileSync(join(directory, segment))
    let offset = 0
    while (offset < bytes.length) {
      const end = bytes.indexOf(0x0a, offset)
      if (end < 0) {
        if (segment !== segments.at(-1)) return { ok: false, reason: `${segment} ends in the middle of a line` }
        tornBytes = bytes.length - offset
        break
      }
      const line = bytes.subarray(offset, end)
      const entry = read(line)
      if (!entry) return { ok: false, reason: `${segment}: entry ${last.n + 1} cannot be read` }
      // The chain starts with the oldest remaining line. The end of this function checks that
      // earlier lines were pruned.
      if (first === 0) {
        first = entry.n
        last = { n: entry.n - 1, hash: entry.n === 1 ? genesis : entry.prev }
      }
      if (entry.n !== last.n + 1) return { ok: false, reason: `${segment}: entry ${entry.n} follows ${last.n}` }
      if (entry.prev !== last.hash)
        return { ok: false, reason: `${segment}: entry ${entry.n} does not follow this entry ${last.n}` }
      last = { n: entry.n, hash: hashOf(line) }
      if (entry.kind === 'pruned') pruned = entry.through
      visit(entry, last.hash, { segment, offset, length: line.length })
      offset = end + 1
    }
  }
  if (first > 1 && first > pruned + 1) return { ok: false, reason: `the entries before ${first} are missing` }
  return { ok: true, entries: last.n, head: last.hash, first, segments, tornBytes }
}

export function segmentsOf(directory: string): string[] {
  try {
    return readdirSync(directory)
      .filter((name) => /^\d{9}\.jsonl$/.test(name))
      .sort()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

export function segmentName(firstEntry: number): string {
  return `${String(firstEntry).padStart(9, '0')}.jsonl`
}

function read(line: Uint8Array): ChainEntry | null {
  try {
    const entry = JSON.parse(Buffer.from(line.buffer, line.byteOffset, line.byteLength).toString('utf8')) as ChainEntry
    return typeof entry.n === 'number' && typeof entry.prev === 'string' && typeof entry.kind === 'string'
      ? entry
      : null
  } catch {
    return null
  }
}

/**
 * Reads journal entries after a number from the files of a state directory, to the end of their
 * segment. Returns at least one entry if a later entry exists. An agent does not keep all entries
 * in memory.
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

/** Returns the number of a segment's first entry, which is the segment's name. */
const firstOf = (segment: string): number => Number.parseInt(segment, 10)

function entriesOf(bytes: Buffer): JournalEntry[] {
  const entries: JournalEntry[] = []
  for (let offset = 0; ; ) {
    const end = bytes.indexOf(0x0a, offset)
    if (end < 0) return entries
    const line = bytes.subarray(offset, end)
    entries.push(shortOf(JSON.parse(line.toString('utf8')) as ChainEntry, hashOf(line)))
    offset = end + 1
  }
}

/** Returns a journal entry without its contents. */
export function shortOf(entry: ChainEntry, hash: string): JournalEntry {
  const { n, at, prev, kind } = entry
  return { n, at, prev, hash, kind, request_id: 'request_id' in entry ? entry.request_id : null }
}
