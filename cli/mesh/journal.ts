import { z } from 'zod'
import { type AuditedCall, auditedCall } from '../../domain/device.ts'
import { clockSkewSeconds, type JournalEntry, journalEntry } from '../../domain/mesh.ts'
import { ApiProblem } from '../api.ts'

/** Reads a path below `/api/v1` of the core API. Throws ApiProblem if the request fails. */
type GetPath = (path: string) => Promise<unknown>

export type DeviceAudit = {
  device: string
  /** The device's report on its journal. Null if the device does not respond or has no journal. */
  journal: { entries: number; first: number; head: string } | null
  calls: { key: string; requestId: string; auditHash: string }[]
  /** Number of calls older than the oldest entry of the journal. */
  older: number
  problems: string[]
}

const cursor = z.union([z.string(), z.number()]).nullish()
const callPage = z.looseObject({ items: z.array(auditedCall.loose()), nextCursor: cursor })
const entryPage = z.looseObject({
  items: z.array(journalEntry.loose()),
  nextCursor: cursor,
  first: z.number(),
  last: z.number(),
})

/**
 * Compares the journal of a device with all calls in the database. Reads the journal from the
 * device. If the device does not respond, takes the entries of a copy, `files`. Never throws for a
 * difference: `problems` lists the differences. `onProgress` gets the number of entries read.
 */
export async function auditDevice(
  ask: GetPath,
  device: string,
  { files = null, onProgress = () => {} }: { files?: JournalEntry[] | null; onProgress?(so: string): void } = {},
): Promise<DeviceAudit> {
  const path = `/devices/${encodeURIComponent(device)}`
  // Reads the calls before the journal, so that the journal already has every call that is read.
  const calls = await readCalls()
  const problems: string[] = []
  const reported = await readEntries()
  const entries = reported ?? files ?? []
  const last = entries.at(-1)
  if (reported && !last) problems.push(`${device} has no journal`)
  const broken = findChainBreak(entries)
  if (broken !== null) problems.push(`the journal's chain is broken: ${broken}`)
  if (reported && files) problems.push(...compareCopies(reported, files))
  const comparison = last ? compareJournal(entries, calls) : { problems: [], unknownEntries: [], older: 0 }
  problems.push(...comparison.problems)
  if (comparison.unknownEntries.length > 0) {
    // Reads the calls again, to include the calls that were made while the journal was read.
    const known = new Set((await readCalls()).map(({ requestId }) => requestId))
    for (const { n, at, request_id } of comparison.unknownEntries) {
      if (!known.has(request_id ?? ''))
        problems.push(`entry ${n} of ${at}: the control plane has no call for ${request_id}`)
    }
  }
  return {
    device,
    journal: reported && last ? { entries: last.n, first: reported[0]?.n ?? 0, head: last.hash } : null,
    calls: calls
      .reverse()
      .flatMap(({ key, requestId, auditHash }) => (auditHash ? [{ key, requestId, auditHash }] : [])),
    older: comparison.older,
    problems,
  }

  async function readCalls(): Promise<AuditedCall[]> {
    const all: AuditedCall[] = []
    for (let next: string | null = null; ; ) {
      const page = callPage.parse(
        await ask(`${path}/audit${next === null ? '' : `?cursor=${encodeURIComponent(next)}`}`),
      )
      all.push(...page.items)
      onProgress(`${device}: ${all.length} calls`)
      if (page.nextCursor == null || page.items.length === 0) return all
      next = String(page.nextCursor)
    }
  }

  /** Reads all entries of the journal. Returns null and adds a problem if the API refuses. */
  async function readEntries(): Promise<JournalEntry[] | null> {
    const all: JournalEntry[] = []
    try {
      for (;;) {
        const page = entryPage.parse(await ask(`${path}/journal?cursor=${all.at(-1)?.n ?? 0}`))
        all.push(...page.items)
        onProgress(`${device}: ${calls.length} calls, ${all.length} of ${page.last - page.first + 1} entries`)
        if (page.nextCursor == null || page.items.length === 0) return all
      }
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error
      problems.push(error.problem.detail || error.problem.title)
      return null
    }
  }
}

/** Finds the first entry in the copy that differs from the same entry in the device's report. */
function compareCopies(reported: readonly JournalEntry[], files: readonly JournalEntry[]): string[] {
  const hashes = new Map(reported.map(({ n, hash }) => [n, hash]))
  const other = files.find(({ n, hash }) => hashes.has(n) && hashes.get(n) !== hash)
  return other ? [`the device's entry ${other.n} differs from the entry in this journal`] : []
}

/**
 * Describes where the hash chain of the entries is broken. Null for an unbroken chain. The chain
 * may start at any number, because old entries are pruned.
 */
export function findChainBreak(entries: readonly JournalEntry[]): string | null {
  for (const [index, { n, prev }] of entries.entries()) {
    const before = entries[index - 1]
    if (before && n !== before.n + 1) return `entry ${n} follows ${before.n}`
    if (before && prev !== before.hash) return `entry ${before.n} is not the predecessor that entry ${n} names`
    if (!before && n === 1 && !/^0+$/.test(prev)) return 'entry 1 names a predecessor, but the first entry has none'
  }
  return null
}

type JournalComparison = {
  problems: string[]
  /** Entries of requests that have no call in the database. */
  unknownEntries: JournalEntry[]
  /** Number of calls older than the oldest entry, which cannot be checked. */
  older: number
}

/** Compares calls with the entries of the journal, in both directions. */
export function compareJournal(entries: readonly JournalEntry[], calls: readonly AuditedCall[]): JournalComparison {
  const hashes = new Map<string, Set<string>>()
  for (const { request_id, hash } of entries) {
    if (request_id === null) continue
    const known = hashes.get(request_id)
    if (known) known.add(hash)
    else hashes.set(request_id, new Set([hash]))
  }
  const [oldest] = entries
  const problems: string[] = []
  if (oldest?.kind === 'lost') problems.push(`the journal before ${oldest.at} was lost`)
  const knownFromMs = oldest ? getKnownSince(oldest) : Number.NEGATIVE_INFINITY
  let older = 0
  for (const { key, requestId, begunAt, finishedAt, auditHash, incidentHash } of calls) {
    if (finishedAt === null) problems.push(`${key}: its result is unknown`)
    if (auditHash === null) continue
    if (incidentHash !== null && incidentHash !== auditHash) {
      problems.push(`${key}: the incident's row and the call have different hashes`)
    }
    const known = hashes.get(requestId)
    if (known?.has(auditHash)) continue
    if (known) problems.push(`${key}: the device's journal and the call have different hashes`)
    else if (Date.parse(begunAt) < knownFromMs) older += 1
    else problems.push(`${key}: the device's journal has no such call`)
  }
  const asked = new Set(calls.map(({ requestId }) => requestId))
  const unknownEntries = entries.filter(({ kind, request_id }) => isRequest(kind) && !asked.has(request_id ?? ''))
  return { problems, unknownEntries, older }
}

/**
 * Returns the time in ms from which a journal with this oldest entry must have every call. Allows
 * for clock skew.
 */
function getKnownSince({ n, kind, at }: JournalEntry): number {
  const isWhole = n === 1 && kind !== 'lost'
  return isWhole ? Number.NEGATIVE_INFINITY : Date.parse(at) + clockSkewSeconds * 1000
}

/** Whether an entry reports how a request was received. Each signed request has one such entry. */
const isRequest = (kind: JournalEntry['kind']) => kind === 'accepted' || kind === 'refused'
