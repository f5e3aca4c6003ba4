import { useQuery } from '@tanstack/react-query'
import type { Approval } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { ask, type Page } from '../api.ts'
import { briefly } from '../incident/briefly.ts'
import { Inert } from '../inert.tsx'
import { Link } from '../router.tsx'

/** More than this is a timeline, which is a link away. */
const shownLooks = 6

/** What the agent had looked at before it asked: rows of the log, so that a person can check the reason against them. */
export function Evidence({ approval }: { approval: Approval }) {
  const { incidentId } = approval
  const log = useQuery({
    queryKey: ['evidence', approval.id],
    queryFn: ({ signal }) => ask<Page<IncidentEvent>>(`/incidents/${incidentId}/events?limit=200`, { signal }),
  })
  const events = log.data?.items ?? []
  const { asked, looks, answer } = restsOn(events, approval)
  return (
    <ul className="evidence">
      {looks.slice(-shownLooks).map((event) => (
        <li key={event.seq}>
          <Link href={`/incidents/${incidentId}#e-${event.seq}`}>row {event.seq}</Link>{' '}
          <code>
            <Inert text={event.metadata.tool} />
          </code>{' '}
          <span className="soft wraps">
            <Inert text={event.found} />
          </span>
        </li>
      ))}
      {answer !== null && (
        <li>
          <Link href={`/incidents/${incidentId}#e-${answer}`}>row {answer}</Link> what the agent wrote when it proposed
          this
        </li>
      )}
      <li>
        <Link href={`/incidents/${incidentId}${asked ? `#e-${asked}` : ''}`}>The whole incident</Link>
      </li>
    </ul>
  )
}

function restsOn(events: IncidentEvent[], approval: Approval) {
  const asked = events.find((event) => event.kind === 'approval_requested' && event.metadata.approvalId === approval.id)
  const before = events.filter(({ seq, attempt }) => attempt === approval.attempt && (!asked || seq < asked.seq))
  const looks = before.flatMap((event) =>
    event.kind === 'tool_finished' && event.metadata.outcome === 'done' && event.metadata.result.ok
      ? [{ ...event, found: briefly(event.metadata.result.data) }]
      : [],
  )
  const answer = before.findLast(
    (event) => event.kind === 'model_answered' && event.metadata.calls.some(({ id }) => id === approval.callId),
  )
  return { asked: asked?.seq ?? null, looks, answer: answer?.seq ?? null }
}
