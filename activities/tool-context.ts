import { type CallPlace, stepKey } from '../domain/step-key.ts'
import type { CorePort, ToolContext } from '../domain/tool.ts'

/** What a tool is given for one call: the step key goes along, so that the receiver does it once. */
export function toolContext(deps: { core: CorePort }, place: CallPlace, signal?: AbortSignal): ToolContext {
  return {
    core: deps.core,
    incidentId: place.incidentId,
    stepKey: stepKey(place, place.turn, 'tool_started', place.call),
    ifMatch: null,
    ...(signal ? { signal } : {}),
  }
}
