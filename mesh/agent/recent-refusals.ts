import type { CapabilityAnswer } from '../../domain/mesh.ts'

/**
 * Milliseconds for which a refusal is kept. A client of a stream first gets the response that the
 * operation runs, and reads the refusal within this time.
 */
const keptMs = 60_000

export type RecentRefusals = ReturnType<typeof recentRefusals>

/**
 * Keeps responses to requests that were refused before the journal accepted them, because these
 * responses are not in the journal.
 */
export function recentRefusals() {
  const answers = new Map<string, CapabilityAnswer>()
  return {
    of: (requestId: string): CapabilityAnswer | null => answers.get(requestId) ?? null,
    keep(answer: CapabilityAnswer): void {
      answers.set(answer.request_id, answer)
      setTimeout(() => answers.delete(answer.request_id), keptMs).unref()
    },
  }
}
