import { clockSkewSeconds } from '../../domain/mesh.ts'
import type { ChainEntry, JournalPosition } from './chain.ts'

/** The journal's record of one idempotency key. */
export type KeyRecord = {
  key: string
  requestId: string
  digest: string
  effect: 'read' | 'write'
  /** The hash of the entry that accepted the request. */
  acceptedHash: string
  /** `accepted` in a reopened journal means that it is unknown how far the call came. */
  state: 'accepted' | 'done'
  /** The place of the response in the journal, if the call is done. */
  answer: { place: JournalPosition; hash: string } | null
  /** The process that was started for the call. Null when the call is done. */
  process: { pid: number; startTicks: string; boot: string } | null
}

/**
 * The most idempotency keys of reads that are kept. Older keys are dropped, because reads can be
 * repeated. A key of a write is known as long as the journal has it.
 */
const maxReads = 5_000

/** Keeps the state of idempotency keys and grants, as a journal's entries report it. */
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
        const begun = { state: 'accepted' as const, acceptedHash: hash, answer: null, process: null }
        byKey.set(key, { key, requestId: request_id, digest, effect, ...begun })
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
    /** Drops expired grants, but only after an additional time, because a clock may be set back. */
    forgetGrants(nowMs: number): void {
      for (const [id, endsMs] of grants) if (endsMs + clockSkewSeconds * 1000 < nowMs) grants.delete(id)
    },
    /** Drops keys whose responses were pruned. A repeated write then needs a new grant anyway. */
    forgetSegments(segments: ReadonlySet<string>): void {
      for (const { key, answer } of byKey.values()) if (answer && segments.has(answer.place.segment)) forget(key)
    },
    /** Lists the accepted keys of calls without a response. */
    open: (): KeyRecord[] => [...byKey.values()].filter(({ state }) => state === 'accepted'),
    /**
     * Returns why the journal before this journal was lost. Null if no journal was lost, or if a
     * person accepted the loss.
     */
    lost: () => lost,
  }
}

export type JournalIndex = ReturnType<typeof journalIndex>
