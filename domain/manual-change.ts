import type { EventMetadata, IncidentEvent } from './event.ts'
import { highestRisk, type Risk } from './tool.ts'

/** The incident type of a person's own act of medium risk or more. The agent takes none. */
export const manualChangeType = 'manual_change'

export type ManualChange = EventMetadata['change_requested'] & { actor: string }

/** The write that a person asked for, in the one attempt that carries it out; null in others. */
export function findManualChange(events: readonly IncidentEvent[], attempt: number): ManualChange | null {
  const row = attempt === 1 ? events.find((event) => event.kind === 'change_requested') : undefined
  return row?.kind === 'change_requested' ? { ...row.metadata, actor: row.actor } : null
}

/**
 * From this risk on a person's own write needs an approval, a lease, a log and a verification, as
 * an agent's.
 */
const minManualRisk: Risk = 'medium'

export function isManualChangeNeeded(risk: Risk): boolean {
  return highestRisk(risk, minManualRisk) === risk
}
