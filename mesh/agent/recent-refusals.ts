import type { CapabilityAnswer } from '../../domain/mesh.ts'

/** A minute is enough for a client that was answered "it runs" to ask how it ended. */
const keptMs = 60_000

export type RecentRefusals = ReturnType<typeof recentRefusals>

/**
 * Answers to requests that were refused before the journal had accepted them: no other place has
 * them.
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
