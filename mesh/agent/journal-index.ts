import { clockSkewSeconds } from '../../domain/mesh.ts'
import type { ChainEntry, JournalPosition } from './chain.ts'

/** What the journal holds about one idempotency key. */
export type KeyRecord = {
  key: string
  requestId: string
  digest: string
  effect: 'read' | 'write'
  /** `accepted` in a journal that was just opened means: it is unknown how far it came. */
  state: 'accepted' | 'done'
  /** The answer's line, when it is done. */
  answer: { place: JournalPosition; hash: string } | null
  /** The process that was started for it, as long as it is not done. */
  process: { pid: number; startTicks: string; boot: string } | null
}

/**
 * Reads can be done again, so only the newest are kept; a write is known as long as the journal
 * holds it.
 */
const maxReads = 5_000

/** Folds the entries of a journal into what is known of idempotency keys and grants. */
export function journalIndex() {
  const byKey = new Map<string, KeyRecord>()
  const keyOfRequest = new Map<string, string>()
  const reads = new Set<string>()
  const grants = new Map<string, number>()
  let boot = ''
  let lost: string | null = null

  function forget(key: string): void {
    const known = byKey.get(key)
    byKey.delete(key)
    reads.delete(key)
    if (known) keyOfRequest.delete(known.requestId)
  }

  return {
    apply(entry: ChainEntry, hash: string, place: JournalPosition): void {
      if (entry.kind === 'started') boot = entry.boot
      else if (entry.kind === 'lost') lost = entry.reason
      else if (entry.kind === 'loss_accepted') lost = null
      else if (entry.kind === 'accepted') {
        forget(entry.key)
        const { request_id, key, digest, effect, grant } = entry
        byKey.set(key, { key, requestId: request_id, digest, effect, state: 'accepted', answer: null, process: null })
        keyOfRequest.set(request_id, key)
        if (grant) grants.set(grant.id, grant.ends_ms)
        if (effect === 'read') reads.add(key)
        for (const oldest of reads) {
          if (reads.size <= maxReads) break
          forget(oldest)
        }
      } else if (entry.kind === 'running') {
        const known = byKey.get(keyOfRequest.get(entry.request_id) ?? '')
        if (known) known.process = { pid: entry.pid, startTicks: entry.start_ticks, boot }
      } else if (entry.kind === 'done') {
        const known = byKey.get(entry.key)
        if (known) Object.assign(known, { state: 'done', answer: { place, hash }, process: null })
      }
    },
    ofKey: (key: string): KeyRecord | null => byKey.get(key) ?? null,
    ofRequest: (requestId: string): KeyRecord | null => byKey.get(keyOfRequest.get(requestId) ?? '') ?? null,
    isUsedGrant: (id: string): boolean => grants.has(id),
    /**
     * One that has ended is refused for that. It is kept for as long as a clock may be set back.
     */
    forgetGrants(nowMs: number): void {
      for (const [id, endsMs] of grants) if (endsMs + clockSkewSeconds * 1000 < nowMs) grants.delete(id)
    },
    /** Their answers are gone. A write that is asked for again then needs a new grant anyway. */
    forgetSegments(segments: ReadonlySet<string>): void {
      for (const { key, answer } of byKey.values()) if (answer && segments.has(answer.place.segment)) forget(key)
    },
    /** Keys that were accepted and have no answer. */
    open: (): KeyRecord[] => [...byKey.values()].filter(({ state }) => state === 'accepted'),
    /**
     * What happened to the journal before this one; null when nothing did, or a person has accepted
     * it.
     */
    lost: () => lost,
  }
}

export type JournalIndex = ReturnType<typeof journalIndex>
