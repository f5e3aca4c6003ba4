import type { LabClient } from '../../lab/client.ts'
import { type ApiClient, apiIncident, listAll } from '../core.ts'

const dayMs = 24 * 3_600_000

/**
 * The first of these places that nothing is broken on, and that had no incident of this type today: an alert has three attempts a day, and
 * two plays on one place would repair each other's fault. Null when no place is left.
 */
export async function findFreshTarget(
  api: ApiClient,
  lab: LabClient,
  type: string,
  targets: string[],
): Promise<string | null> {
  const [incidents, faults] = await Promise.all([
    listAll(api, `/api/v1/incidents?type=${type}&limit=200`, apiIncident, 1_000),
    lab.faults(),
  ])
  const recent = incidents.filter(({ updatedAt }) => Date.parse(updatedAt) > Date.now() - dayMs)
  const taken = new Set([...recent.map(({ resource }) => resource?.id), ...faults.map(({ on }) => on)])
  return targets.find((target) => !taken.has(target)) ?? null
}
