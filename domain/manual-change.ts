import type { EventMetadata, IncidentEvent } from './event.ts'
import { highestRisk, type Risk } from './tool.ts'

/**
 * The incident type of a person's own write of medium risk or more. The agent does not investigate
 * incidents of this type.
 */
export const manualChangeType = 'manual_change'

export type ManualChange = EventMetadata['change_requested'] & { actor: string }

/** Finds a person's write in the attempt that carries it out; null in every other attempt. */
export function findManualChange(events: readonly IncidentEvent[], attempt: number): ManualChange | null {
  const row = attempt === 1 ? events.find((event) => event.kind === 'change_requested') : undefined
  return row?.kind === 'change_requested' ? { ...row.metadata, actor: row.actor } : null
}

/**
 * The risk from which a person's own write needs approval, lease, log and verification like a write
 * of the agent.
 */
const minManualRisk: Risk = 'medium'

export function isManualChangeNeeded(risk: Risk): boolean {
  return highestRisk(risk, minManualRisk) === risk
}
