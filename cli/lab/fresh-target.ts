import { anIncident, type Core, listAll } from '../core.ts'

const dayMs = 24 * 3_600_000

/** The first of these places without an incident of that type today: an alert has three attempts a day. Null: each had one. */
export async function freshTarget(api: Core, type: string, targets: string[]): Promise<string | null> {
  const incidents = await listAll(api, `/api/v1/incidents?type=${type}&limit=200`, anIncident, 200)
  const recent = incidents.filter(({ updatedAt }) => Date.parse(updatedAt) > Date.now() - dayMs)
  return targets.find((target) => recent.every(({ resource }) => resource?.id !== target)) ?? null
}
