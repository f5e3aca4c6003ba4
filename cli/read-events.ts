import type { IncidentEvent } from '../domain/event.ts'
import { bodiesToReplay } from '../safety/replay.ts'
import { toolFacts } from '../tools/registry.ts'
import { type ApiClient, ApiProblem } from './api.ts'
import { parseEvent } from './read-api.ts'

const eventsPerPage = 200

/** Reads the complete log page by page. A part of the log would give another state. */
export async function readAllEvents(api: ApiClient, id: string): Promise<IncidentEvent[]> {
  const events: IncidentEvent[] = []
  for (;;) {
    const from = `limit=${eventsPerPage}&after=${events.at(-1)?.seq ?? 0}`
    const path = `/api/v1/incidents/${encodeURIComponent(id)}/events?${from}`
    const { items } = (await api.get(path)) as { items: unknown[] }
    events.push(...items.map(parseEvent))
    if (items.length < eventsPerPage) return events
  }
}

/** Reads the stored bodies that the replay needs, by digest. Leaves out deleted bodies. */
export async function readBodies(
  api: ApiClient,
  id: string,
  events: readonly IncidentEvent[],
): Promise<Map<string, string>> {
  const bodies = new Map<string, string>()
  for (const digest of bodiesToReplay(events, toolFacts)) {
    try {
      const answer = await api.get(`/api/v1/incidents/${encodeURIComponent(id)}/bodies/${digest}`)
      bodies.set(digest, (answer as { text: string }).text)
    } catch (error) {
      if (!(error instanceof ApiProblem) || error.problem.status !== 404) throw error
    }
  }
  return bodies
}
