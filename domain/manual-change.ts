import type { EventMetadata, IncidentEvent } from './event.ts'
import { highestRisk, type Risk } from './tool.ts'

/** What a person does directly, where it is of medium risk or more, is an incident of this type. The agent never takes one. */
export const manualChangeType = 'manual_change'

export type ManualChange = EventMetadata['change_requested'] & { actor: string }

/** The write that a person asked for, in the one attempt that carries it out; null in every other. */
export function findManualChange(events: readonly IncidentEvent[], attempt: number): ManualChange | null {
  const row = attempt === 1 ? events.find((event) => event.kind === 'change_requested') : undefined
  return row?.kind === 'change_requested' ? { ...row.metadata, actor: row.actor } : null
}

/** From here on a person's own write needs what an agent's would: an approval, a lease, a log and a verification. */
const minManualRisk: Risk = 'medium'

export function isManualChangeNeeded(risk: Risk): boolean {
  return highestRisk(risk, minManualRisk) === risk
}
