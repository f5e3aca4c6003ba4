import type { AnIncident } from './core.ts'
import { word } from './word.ts'

/** The outcome of a resolution, or the category of an escalation; `none` where there is neither. */
export function endingWord({ status, outcome, category }: Pick<AnIncident, 'status' | 'outcome' | 'category'>): string {
  return (status === 'resolved' ? outcome : status === 'escalated' ? category : null) ?? 'none'
}

/** How an incident stands, in words: its status, and what it was closed as. */
export function toldEnding(incident: AnIncident): string {
  const ending = endingWord(incident)
  return ending === 'none' ? word(incident.status) : `${word(incident.status)}: ${spaced(ending)}`
}

export function spaced(name: string): string {
  return name.replaceAll('_', ' ')
}
