import { clockSkewSeconds, type JournalEntry } from '../../domain/mesh.ts'

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

export type JournalComparison = {
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
