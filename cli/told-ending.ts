import type { ApiIncident } from './core.ts'
import { paintState } from './word.ts'

/** The outcome of a resolution, or the category of an escalation; `none` where there is neither. */
export function getEndingCode({
  status,
  outcome,
  category,
}: Pick<ApiIncident, 'status' | 'outcome' | 'category'>): string {
  return (status === 'resolved' ? outcome : status === 'escalated' ? category : null) ?? 'none'
}

/** How an incident stands, in words: its status, and what it was closed as. */
export function describeEnding(incident: ApiIncident): string {
  const ending = getEndingCode(incident)
  return ending === 'none' ? paintState(incident.status) : `${paintState(incident.status)}: ${withSpaces(ending)}`
}

export function withSpaces(name: string): string {
  return name.replaceAll('_', ' ')
}
