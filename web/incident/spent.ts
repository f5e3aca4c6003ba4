import type { IncidentEvent } from '../../domain/event.ts'

/** What an incident has cost so far, counted from its own rows. */
export function spent(events: IncidentEvent[], now: number) {
  let tokens = 0
  let turns = 0
  let modelMs = 0
  let waitedMs = 0
  const asked = new Map<string, number>()
  for (const event of events) {
    const at = Date.parse(event.at)
    if (event.kind === 'model_answered') {
      tokens += event.metadata.usage.promptTokens + event.metadata.usage.completionTokens
      modelMs += event.metadata.durationMs
      turns += 1
    } else if (event.kind === 'approval_requested') asked.set(event.metadata.approvalId, at)
    else if (
      (event.kind === 'approval_decided' && event.metadata.status !== 'pending') ||
      event.kind === 'approval_expired' ||
      event.kind === 'approval_withdrawn'
    ) {
      waitedMs += at - (asked.get(event.metadata.approvalId) ?? at)
      asked.delete(event.metadata.approvalId)
    }
  }
  for (const since of asked.values()) waitedMs += now - since
  return { tokens, turns, modelMs, waitedMs }
}
