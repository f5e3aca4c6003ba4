import type { EventMetadata, IncidentEvent } from './event.ts'
import { type Risk, risks } from './tool.ts'

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

/** The risk of a write, from whatever side it is asked: the highest of the tool's, what settings raise it to, and what its place asks. */
export function highestRisk(...candidates: readonly (Risk | null | undefined)[]): Risk {
  return candidates.reduce<Risk>((highest, each) => (each && isRiskier(each, highest) ? each : highest), 'none')
}

function isRiskier(a: Risk, b: Risk): boolean {
  return risks.indexOf(a) > risks.indexOf(b)
}

export function isManualChangeNeeded(risk: Risk): boolean {
  return !isRiskier(minManualRisk, risk)
}
