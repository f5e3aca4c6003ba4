import type { IncidentEvent } from '../domain/event.ts'
import { cut } from './transcript.ts'

const maxSteps = 10

/**
 * The hint for followers: type, title, resolution, and up to ten of the leader's calls with their
 * arguments cut at 120 characters. Null when the leader did not resolve. It is data for its reader.
 */
export function renderLeaderHint(
  leader: { type: string; title: string; attempt: number; resolution: string | null },
  events: readonly IncidentEvent[],
): string | null {
  if (leader.resolution === null) return null
  const own = events.filter((event) => event.attempt === leader.attempt)
  const steps = own.flatMap((event) =>
    event.kind === 'tool_started' ? [`${event.metadata.tool}(${cut(JSON.stringify(event.metadata.arguments))})`] : [],
  )
  const shown = steps.slice(0, maxSteps).map((step, index) => `  ${index + 1}. ${step}`)
  if (steps.length > maxSteps) shown.push(`  … and ${steps.length - maxSteps} more`)
  return [
    `Incident type: ${leader.type}`,
    `Title: ${leader.title}`,
    `Resolution: ${leader.resolution}`,
    '',
    'Investigation steps taken:',
    ...shown,
  ].join('\n')
}
