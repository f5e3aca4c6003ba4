import { actionDigest } from '../domain/digest.ts'
import { isCallOfCode } from '../domain/step-key.ts'
import { parsePrefix, sizeOf } from './cut-result.ts'
import { isObject } from './json.ts'
import type { ResultEntry, TranscriptEntry } from './transcript.ts'

/**
 * Chooses the old reads to shorten. Several are shortened at once, because a server that caches the
 * beginning of a conversation must process everything after the first change again.
 */

/** Requests to the model that show the whole result before it may be shortened. */
const minRequests = 2
/** Characters from which a read is shortened; less would save too little. */
const minCharacters = 400
/** Characters of a shortened read. If all texts of a read would be lost, twice as many are used. */
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
  // The last call that repeats no other. A read before it can be repeated: the repetition neither
  // follows the same call nor completes a circle of calls, which the judge would refuse.
  let lastNew = -1
  const step = () => {
    const old = looks.filter((look) => look.at < lastNew && request - look.request >= minRequests)
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
    // The name by which the judge recognizes a repetition.
    const name = entry.call ? actionDigest(entry.call.tool, entry.call.arguments ?? {}) : null
    const size = lengthOf(entry)
    // Skips a repeated read, because the model missed the result once, and a third read would be
    // refused.
    if (size >= minCharacters && isLook(entry) && name !== null && !called.has(name))
      looks.push({ at, request, saved: size - foldedCharacters })
    if (name === null) continue
    if (entry.envelope.ok && !isCallOfCode(entry.callId) && !called.has(name)) lastNew = at
    called.add(name)
  }
  step()
  return entries.map((entry, at) => (folded.has(at) ? { ...(entry as ResultEntry), isFolded: true } : entry))
}

const lengthOf = ({ envelope, body }: ResultEntry): number => body?.bytes ?? sizeOf(envelope.data)

/**
 * Whether a result is a read that may be shortened. Excludes results whose end may matter most: the
 * answer to a write, a plan to carry out, a runbook to follow, and a summary of metrics or logs.
 */
function isLook({ envelope: { ok, data: inRow, meta }, body }: ResultEntry): boolean {
  // Uses the beginning of a stored result, in which a plan has its intent but not yet its digest.
  const data = body ? parsePrefix(body.head) : inRow
  if (!ok || meta.verification !== undefined || !isObject(data)) return false
  return !['planDigest', 'intent', 'steps', 'body', 'summary'].some((field) => field in data)
}
