import { isCallOfCode } from '../domain/step-key.ts'
import { sizeOf } from './cut-result.ts'
import { nameOfCall } from './shown-result.ts'
import type { ResultEntry, TranscriptEntry } from './transcript.ts'

/**
 * Chooses the old reads to shorten. Several are shortened at once, because a server that caches the
 * beginning of a conversation must process everything after the first change again.
 */

/** Requests to the model that show the whole result before it may be shortened. */
const minRequests = 2
/** Characters from which a read is worth shortening. */
const minCharacters = 400
/** Characters of a shortened read. Twice as many are used if this length would lose its texts. */
export const foldedCharacters = 250
/**
 * Least total of characters to save by cutting reads to `foldedCharacters`; otherwise no read is
 * cut.
 */
const minSavedCharacters = 1_000

/**
 * Marks long reads of earlier turns as folded. Pure. Every read that is folded in a conversation is
 * also folded in its continuation.
 */
export function foldLooks(entries: readonly TranscriptEntry[]): TranscriptEntry[] {
  const folded = new Set<number>()
  const called = new Set<string>()
  let looks: { at: number; request: number; saved: number }[] = []
  let request = 1
  const step = () => {
    const old = looks.filter((look) => request - look.request >= minRequests)
    if (old.reduce((sum, { saved }) => sum + saved, 0) < minSavedCharacters) return
    for (const { at } of old) folded.add(at)
    looks = looks.filter((look) => !old.includes(look))
  }
  for (const [at, entry] of entries.entries()) {
    if (entry.kind === 'answer' && !isCallOfCode(entry.calls[0]?.id ?? '')) {
      step()
      request += 1
    }
    if (entry.kind !== 'result') continue
    const name = entry.call ? nameOfCall(entry.call) : null
    const size = lengthOf(entry)
    // Skips a repeated read, because the model missed the result once, and a third read would be
    // refused.
    if (size >= minCharacters && isLook(entry) && name !== null && !called.has(name))
      looks.push({ at, request, saved: size - foldedCharacters })
    if (name !== null) called.add(name)
  }
  step()
  return entries.map((entry, at) => (folded.has(at) ? { ...(entry as ResultEntry), isFolded: true } : entry))
}

const lengthOf = ({ envelope, body }: ResultEntry): number => body?.bytes ?? sizeOf(envelope.data)

/**
 * Whether a result is a read that may be shortened. Excludes results whose end may matter most: the
 * answer to a write, a plan to carry out, a runbook to follow, and a summary of metrics or logs.
 */
function isLook({ envelope: { ok, data, meta } }: ResultEntry): boolean {
  if (!ok || meta.verification !== undefined || data === null || typeof data !== 'object') return false
  return !('planDigest' in data) && !('body' in data) && !('summary' in data)
}
