import type { IncidentEvent } from '../domain/event.ts'
import type { LeaderLook, LeaderLooks } from '../domain/leader-look.ts'
import { cut } from './transcript.ts'

const maxSteps = 10

/**
 * Builds the hint for followers: type, title, resolution, and up to ten of the leader's calls, with
 * arguments cut at 120 characters. `looks`: the reads that decided the leader's repair, with the
 * names of the follower's resources. With `looks`, only the leader's writes are listed as steps.
 * Null if the leader did not resolve. The hint is untrusted data for the follower's model.
 */
export function renderLeaderHint(
  leader: { type: string; title: string; attempt: number; resolution: string | null },
  events: readonly IncidentEvent[],
  looks: LeaderLooks | null = null,
): string | null {
  if (leader.resolution === null) return null
  const decided = [...(looks?.before ?? []), ...(looks?.after ?? [])]
  const own = events.filter((event) => event.attempt === leader.attempt)
  const steps = own.flatMap((event) =>
    event.kind === 'tool_started' && (decided.length === 0 || event.metadata.effect === 'write')
      ? [sayCall(event.metadata)]
      : [],
  )
  const shown = numbered(steps.slice(0, maxSteps))
  if (steps.length > maxSteps) shown.push(`  … and ${steps.length - maxSteps} more`)
  return [
    `Incident type: ${leader.type}`,
    `Title: ${leader.title}`,
    `Resolution: ${leader.resolution}`,
    '',
    ...(decided.length === 0
      ? ['Investigation steps taken:', ...shown]
      : ['Repair there:', ...shown, '', 'Looks that decided it, at your resource:', ...numbered(decided.map(sayCall))]),
  ].join('\n')
}

const sayCall = ({ tool, arguments: given }: LeaderLook): string => `${tool}(${cut(JSON.stringify(given))})`

const numbered = (lines: readonly string[]): string[] => lines.map((line, index) => `  ${index + 1}. ${line}`)
