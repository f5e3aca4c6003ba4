import { z } from 'zod'
import { clockSkewSeconds, type JournalEntry, journalEntry } from '../../domain/mesh.ts'
import { ApiProblem } from '../errors.ts'

/** Asks the core API for a path below `/api/v1`; throws ApiProblem for whatever is no success. */
type GetPath = (path: string) => Promise<unknown>

export type DeviceAudit = {
  device: string
  /** What the device tells of its journal; null when it does not answer, or has none. */
  journal: { entries: number; first: number; head: string } | null
  calls: { key: string; requestId: string; auditHash: string }[]
  /** Calls from before the oldest entry that the journal still has. */
  older: number
  problems: string[]
}

const cursor = z.union([z.string(), z.number()]).nullish()
const callPage = z.looseObject({
  items: z.array(
    z.looseObject({
      key: z.string(),
      requestId: z.string(),
      begunAt: z.string(),
      finishedAt: z.string().nullable(),
      auditHash: z.string().nullable(),
      incidentHash: z.string().nullable(),
    }),
  ),
  nextCursor: cursor,
})
const entryPage = z.looseObject({
  items: z.array(z.looseObject(journalEntry.shape)),
  nextCursor: cursor,
  first: z.number(),
  last: z.number(),
})

/**
 * Holds everything that the journal of a device still has against all calls that rows know of: by what the device tells, or, where it
 * does not answer, by `files`, the entries of a copy. `onProgress` is told how much was read so far.
 */
export async function auditDevice(
  ask: GetPath,
  device: string,
  { files = null, onProgress = () => {} }: { files?: JournalEntry[] | null; onProgress?(so: string): void } = {},
): Promise<DeviceAudit> {
  const path = `/devices/${encodeURIComponent(device)}`
  // Calls first: what is called meanwhile is in the journal that is read afterwards.
  const calls = await allCalls()
  const problems: string[] = []
  const told = await allEntries()
  const entries = told ?? files ?? []
  const last = entries.at(-1)
  if (told && !last) problems.push(`${device} has no journal`)
  const broken = findChainBreak(entries)
  if (broken !== null) problems.push(`the journal does not hold: ${broken}`)
  if (told && files) problems.push(...compareCopies(told, files))
  const held = last ? compareJournal(entries, calls) : { problems: [], strangers: [], older: 0 }
  problems.push(...held.problems)
  if (held.strangers.length > 0) {
    // Some were called while the journal was read.
    const known = new Set((await allCalls()).map(({ requestId }) => requestId))
    for (const { n, at, request_id } of held.strangers) {
      if (!known.has(request_id ?? ''))
        problems.push(`entry ${n} of ${at}: no call of the control plane stands behind ${request_id}`)
    }
  }
  return {
    device,
    journal: told && last ? { entries: last.n, first: told[0]?.n ?? 0, head: last.hash } : null,
    calls: calls
      .reverse()
      .flatMap(({ key, requestId, auditHash }) => (auditHash ? [{ key, requestId, auditHash }] : [])),
    older: held.older,
    problems,
  }

  async function allCalls(): Promise<JournalledCall[]> {
    const all: JournalledCall[] = []
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

  /** Null when the device gives no answer, which is a problem of its own. */
  async function allEntries(): Promise<JournalEntry[] | null> {
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

/** Where the files have something else than the device tells. */
function compareCopies(told: readonly JournalEntry[], files: readonly JournalEntry[]): string[] {
  const hashes = new Map(told.map(({ n, hash }) => [n, hash]))
  const other = files.find(({ n, hash }) => hashes.has(n) && hashes.get(n) !== hash)
  return other ? [`the device tells of another entry ${other.n} than this journal has`] : []
}

/** What rows tell of a call. */
export type JournalledCall = {
  key: string
  requestId: string
  begunAt: string
  finishedAt: string | null
  auditHash: string | null
  incidentHash: string | null
}

/** Where a chain of entries does not hold, in words; null when it does. The first may have any number: older ones are pruned. */
export function findChainBreak(entries: readonly JournalEntry[]): string | null {
  for (const [index, { n, prev }] of entries.entries()) {
    const before = entries[index - 1]
    if (before && n !== before.n + 1) return `entry ${n} follows ${before.n}`
    if (before && prev !== before.hash) return `entry ${before.n} is not the one that entry ${n} follows`
    if (!before && n === 1 && !/^0+$/.test(prev)) return 'entry 1 follows another one'
  }
  return null
}

type JournalComparison = {
  problems: string[]
  /** Entries of requests that no call stands behind. */
  strangers: JournalEntry[]
  /** Calls from before the oldest entry that is left: nothing can be said of them. */
  older: number
}

/** Holds calls against the chain of the journal, both ways. */
export function compareJournal(entries: readonly JournalEntry[], calls: readonly JournalledCall[]): JournalComparison {
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
    if (finishedAt === null) problems.push(`${key}: it is not known what became of it`)
    if (auditHash === null) continue
    if (incidentHash !== null && incidentHash !== auditHash) {
      problems.push(`${key}: the row of the incident has another hash than the call`)
    }
    const known = hashes.get(requestId)
    if (known?.has(auditHash)) continue
    if (known) problems.push(`${key}: the journal of the device has another hash than the call`)
    else if (Date.parse(begunAt) < knownFromMs) older += 1
    else problems.push(`${key}: the journal of the device does not know it`)
  }
  const asked = new Set(calls.map(({ requestId }) => requestId))
  const strangers = entries.filter(({ kind, request_id }) => isRequest(kind) && !asked.has(request_id ?? ''))
  return { problems, strangers, older }
}

/** Since when a journal with this oldest entry must know every call, by clocks that may differ. */
function getKnownSince({ n, kind, at }: JournalEntry): number {
  const isWhole = n === 1 && kind !== 'lost'
  return isWhole ? Number.NEGATIVE_INFINITY : Date.parse(at) + clockSkewSeconds * 1000
}

/** One entry for each request that somebody with a key made. */
const isRequest = (kind: JournalEntry['kind']) => kind === 'accepted' || kind === 'refused'
