import type { IncidentEvent } from './event.ts'
import { formatList, withSpaces } from './format.ts'
import { nameResource, type ResourceRef } from './registry.ts'
import { sayAction } from './say.ts'

/** Names a call by its tool and targets: `execute migration on host-osl-1 and vm-103`. */
export function nameCall(tool: string, targets: readonly ResourceRef[]): string {
  const named = targets.filter(({ kind }) => kind !== 'proposal').map(nameResource)
  const shown = named.length > 3 ? [...named.slice(0, 3), `${named.length - 3} more`] : named
  return named.length === 0 ? withSpaces(tool) : `${withSpaces(tool)} on ${formatList(shown)}`
}

/**
 * The row in which people were asked: a question of this incident, or a call that waited for the
 * approval of another incident.
 */
type Asking = IncidentEvent<'approval_requested'> | IncidentEvent<'call_judged'>

/** A row that answers a question, or the question itself. */
type Answered = { attempt: number; metadata: { approvalId: string; callId?: string } }

/**
 * Finds the question of an answer in the rows of the incident. Undefined if the log does not
 * contain it.
 */
export function questionOf(
  events: readonly IncidentEvent[],
  { attempt, metadata: { approvalId, callId } }: Answered,
): Asking | undefined {
  const asked = events.filter((event) => event.kind === 'approval_requested')
  const joined = events.find(
    (event): event is IncidentEvent<'call_judged'> =>
      event.kind === 'call_judged' && event.metadata.approvalId === approvalId && event.metadata.joins !== undefined,
  )
  // Accepts another question about this call, because a new question may replace an earlier one.
  const isSame = ({ attempt: own, metadata }: IncidentEvent<'approval_requested'>) =>
    callId !== undefined && own === attempt && metadata.callId === callId
  return asked.find((event) => event.metadata.approvalId === approvalId) ?? joined ?? asked.find(isSame)
}

/** Names the action that people were asked about. */
export function sayAsked(question: Asking | undefined): string {
  if (!question) return 'an action'
  if (question.kind === 'approval_requested') return sayAction(question.metadata.summary)
  return nameCall(question.metadata.tool, question.metadata.targets)
}
