import { z } from 'zod'
import { approval, approvalDetail, evidence } from '../domain/approval.ts'
import type { IncidentEvent } from '../domain/event.ts'
import { incident, queuePlace } from '../domain/incident.ts'
import { type Surroundings, surroundings } from '../domain/incident-detail.ts'
import type { ApiClient } from './api.ts'

// Accepts further fields, so that fields of a newer API still appear in --json. A list of incidents
// leaves out `queue`, and so does an older API.
export const apiIncident = z.looseObject({ ...incident.shape, queue: queuePlace.nullish() })

export type ApiIncident = z.infer<typeof apiIncident>

/** The evidence is optional, because lists leave it out. */
export const apiApproval = z.looseObject({
  ...approval.shape,
  evidence: z.array(evidence).optional(),
  about: approvalDetail.shape.about.optional(),
  hypotheses: approvalDetail.shape.hypotheses.optional(),
  together: approvalDetail.shape.together.optional(),
  approvers: approvalDetail.shape.approvers.optional(),
  asked: approvalDetail.shape.asked.optional(),
  deaths: approvalDetail.shape.deaths.optional(),
})

export type ApiApproval = z.infer<typeof apiApproval>

const apiEvent = z.looseObject({
  id: z.union([z.string(), z.number()]),
  incidentId: z.string(),
  attempt: z.number().int(),
  seq: z.number().int(),
  turn: z.number().int().nullable(),
  kind: z.string(),
  actor: z.string(),
  detail: z.string(),
  metadata: z.record(z.string(), z.unknown()),
  at: z.string(),
})

/**
 * Accepts kinds that this version does not know. Rows of such kinds are printed with their
 * `detail`.
 */
export function parseEvent(value: unknown): IncidentEvent {
  return apiEvent.parse(value) as unknown as IncidentEvent
}

/** Returns every item of a paged list, up to a limit. */
export async function listAll<T>(
  api: ApiClient,
  path: string,
  item: z.ZodType<T>,
  limit = Number.POSITIVE_INFINITY,
): Promise<T[]> {
  const items: T[] = []
  let cursor: string | null = null
  do {
    const url: URL = new URL(path, api.url)
    if (cursor) url.searchParams.set('cursor', cursor)
    const page = z
      .looseObject({ items: z.array(item), nextCursor: z.union([z.string(), z.number()]).nullish() })
      .parse(await api.get(url.pathname + url.search))
    items.push(...page.items)
    cursor = page.nextCursor === null || page.nextCursor === undefined ? null : String(page.nextCursor)
  } while (cursor && items.length < limit)
  return items.slice(0, limit)
}

/** Returns the rows of an incident after number `seq`, oldest first. */
export async function listEventsAfter(api: ApiClient, incidentId: string, seq = 0): Promise<IncidentEvent[]> {
  const events: IncidentEvent[] = []
  for (let after = seq; ; ) {
    const page = z
      .looseObject({ items: z.array(z.unknown()), nextCursor: z.union([z.string(), z.number()]).nullish() })
      .parse(await api.get(`/api/v1/incidents/${encodeURIComponent(incidentId)}/events?after=${after}&limit=200`))
    events.push(...page.items.map(parseEvent))
    const last = events.at(-1)?.seq ?? after
    if (page.items.length === 0 || !page.nextCursor || last === after) return events
    after = last
  }
}

export async function readIncident(api: ApiClient, id: string): Promise<ApiIncident> {
  return apiIncident.parse(await api.get(`/api/v1/incidents/${encodeURIComponent(id)}`))
}

/** Reads the alerts of an incident. */
export async function readAlerts(api: ApiClient, id: string): Promise<Surroundings['alerts']> {
  const around = surroundings.pick({ alerts: true })
  return around.parse(await api.get(`/api/v1/incidents/${encodeURIComponent(id)}/surroundings`)).alerts
}

export async function readApproval(api: ApiClient, id: string): Promise<ApiApproval> {
  return apiApproval.parse(await api.get(`/api/v1/approvals/${encodeURIComponent(id)}`))
}
