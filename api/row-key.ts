import type { EventKind, IncidentEvent } from '../domain/event.ts'

/** The step key of a row that follows from an announced call: the same place, another kind. Null for people. */
export function rowKey(judged: IncidentEvent<'tool_started'> | null, kind: EventKind): string | null {
  return judged?.stepKey?.replace(':tool_started:', `:${kind}:`) ?? null
}
