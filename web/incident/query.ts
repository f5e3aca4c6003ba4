import { useQuery } from '@tanstack/react-query'
import { useRef } from 'react'
import type { IncidentEvent } from '../../domain/event.ts'
import type { DetailedIncident, PersonAction, Surroundings } from '../../domain/incident-detail.ts'
import { ask, type Page, queryClient } from '../api.ts'
import { useLive } from '../live.tsx'

/** Neither the queue nor the line for the model writes rows: what they come to is asked for while it can change. */
const askAgainMs = 3_000
const isMoving = (incident: DetailedIncident | undefined) =>
  incident?.status === 'open' || incident?.status === 'investigating'

/** An incident, its log up to now and on, and what stands around it. */
export function useIncident(id: string) {
  const eventsKey = ['events', id]
  const incident = useQuery<DetailedIncident>({
    queryKey: ['incident', id],
    refetchInterval: ({ state }) => isMoving(state.data) && askAgainMs,
    queryFn: ({ signal }) => ask<DetailedIncident>(`/incidents/${encodeURIComponent(id)}`, { signal }),
  })
  const surroundings = useQuery({
    queryKey: ['surroundings', id],
    queryFn: ({ signal }) => ask<Surroundings>(`/incidents/${encodeURIComponent(id)}/surroundings`, { signal }),
  })
  const events = useQuery({
    queryKey: eventsKey,
    queryFn: ({ signal }) => readLog(id, 0, signal),
  })
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)

  useLive((event) => {
    if (event.incidentId !== id) return
    const known = queryClient.getQueryData<IncidentEvent[]>(eventsKey)
    // Numbers are dense: the next one is put at the end, anything else means that some are missing.
    if (known && event.seq === known.length + 1) queryClient.setQueryData(eventsKey, [...known, event])
    else if (!known || event.seq > known.length) void queryClient.invalidateQueries({ queryKey: eventsKey })
    clearTimeout(timer.current)
    timer.current = setTimeout(() => {
      void queryClient.invalidateQueries({ queryKey: ['incident', id] })
      void queryClient.invalidateQueries({ queryKey: ['surroundings', id] })
    }, 300)
  })
  return { incident, surroundings, events }
}

async function readLog(id: string, after: number, signal: AbortSignal): Promise<IncidentEvent[]> {
  const all: IncidentEvent[] = []
  let from: string | null = String(after)
  while (from !== null) {
    const page: Page<IncidentEvent> = await ask<Page<IncidentEvent>>(
      `/incidents/${encodeURIComponent(id)}/events?limit=1000&after=${from}`,
      { signal },
    )
    all.push(...page.items)
    from = page.nextCursor
  }
  return all
}

/** Why an action cannot be done now, or is not known yet; null when it can. */
export function getRefusal(surroundings: Surroundings | null, action: PersonAction): string | null {
  if (!surroundings) return 'Not known yet.'
  return surroundings.actions.find((each) => each.action === action)?.refused ?? null
}
