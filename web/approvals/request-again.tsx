import { useQuery } from '@tanstack/react-query'
import { ask } from '../api.ts'
import { Confirm } from '../confirm.tsx'
import type { Surroundings } from '../incident/query.ts'
import { queryClient } from '../query-client.ts'
import { go, Link } from '../router.tsx'

/**
 * Asks for an expired action again. What was approved must be what is true now, so the agent looks again and asks only if the
 * action is still needed.
 */
export function RequestAgain({ incidentId }: { incidentId: string }) {
  const surroundings = useQuery({
    queryKey: ['surroundings', incidentId],
    queryFn: ({ signal }) => ask<Surroundings>(`/incidents/${incidentId}/surroundings`, { signal }),
  })
  const refused = surroundings.data
    ? (surroundings.data.actions.find(({ action }) => action === 'investigate')?.refused ?? null)
    : 'Not known yet.'
  const run = async () => {
    await ask(`/incidents/${incidentId}/investigate`, { method: 'POST' })
    await queryClient.invalidateQueries({ queryKey: ['incident', incidentId] })
    void queryClient.invalidateQueries({ queryKey: ['surroundings', incidentId] })
    go(`/incidents/${incidentId}`)
  }
  return (
    <div className="row">
      <Confirm button="Request again" label="this action" title="Request it again" refused={refused} run={run}>
        <p>
          The agent investigates again from the start. If the action is still needed, it makes a new dry run and asks
          again. You cannot approve critical actions of an investigation that you started.
        </p>
      </Confirm>
      <Link href={`/incidents/${incidentId}`}>See the incident</Link>
    </div>
  )
}
