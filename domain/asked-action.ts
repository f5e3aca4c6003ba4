import type { IncidentEvent } from './event.ts'
import { formatList, withSpaces } from './format.ts'
import { nameResource, type ResourceRef } from './registry.ts'
import { sayAction } from './say.ts'

/** A call by its tool and what it is about: `execute migration on host-osl-1 and vm-103`. */
export function nameCall(tool: string, targets: readonly ResourceRef[]): string {
  const named = targets.filter(({ kind }) => kind !== 'proposal').map(nameResource)
  const shown = named.length > 3 ? [...named.slice(0, 3), `${named.length - 3} more`] : named
  return named.length === 0 ? withSpaces(tool) : `${withSpaces(tool)} on ${formatList(shown)}`
}

/**
 * The row that asked people: this incident's, or that of another incident's question it waited for.
 */
type Asking = IncidentEvent<'approval_requested'> | IncidentEvent<'call_judged'>

/** An answer of people, or what it says of its question. */
type Answered = { attempt: number; metadata: { approvalId: string; callId?: string } }

/** The question behind people's answer, in the incident's rows; undefined in logs without it. */
export function questionOf(
  events: readonly IncidentEvent[],
  { attempt, metadata: { approvalId, callId } }: Answered,
): Asking | undefined {
  const asked = events.filter((event) => event.kind === 'approval_requested')
  const joined = events.find(
    (event): event is IncidentEvent<'call_judged'> =>
      event.kind === 'call_judged' && event.metadata.approvalId === approvalId && event.metadata.joins !== undefined,
  )
  // One question may take the place of another about the same call.
  const isSame = ({ attempt: own, metadata }: IncidentEvent<'approval_requested'>) =>
    callId !== undefined && own === attempt && metadata.callId === callId
  return asked.find((event) => event.metadata.approvalId === approvalId) ?? joined ?? asked.find(isSame)
}

/** The action that was asked for, in words. */
export function sayAsked(question: Asking | undefined): string {
  if (!question) return 'an action'
  if (question.kind === 'approval_requested') return sayAction(question.metadata.summary)
  return nameCall(question.metadata.tool, question.metadata.targets)
}
