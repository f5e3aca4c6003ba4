import type { CapabilityAnswer } from '../../domain/mesh.ts'

/** A minute is enough for who was answered "it runs" to ask how it ended. */
const keptMs = 60_000

/** Answers of what ended before the journal had accepted it: no other place has them. */
export function lately() {
  const answers = new Map<string, CapabilityAnswer>()
  return {
    of: (requestId: string): CapabilityAnswer | null => answers.get(requestId) ?? null,
    keep(answer: CapabilityAnswer): void {
      answers.set(answer.request_id, answer)
      setTimeout(() => answers.delete(answer.request_id), keptMs).unref()
    },
  }
}
