import { kinds, type Step } from './kinds.ts'
import { type ResourceRef, resourceKey } from './resource.ts'

/** The registry as the vicinity reads it. Both answers come from sources with authority alone. */
export type RelationReader = {
  otherNames(ref: ResourceRef): Promise<readonly ResourceRef[]>
  /** All that one step along a relation leads to. */
  stepFrom(from: readonly ResourceRef[], step: Step): Promise<readonly ResourceRef[]>
}

/**
 * What belongs together with a resource: its other names, and where the paths of its kind's descriptor lead from any of them. A
 * reversible write there runs unasked.
 */
export async function nearOf(ref: ResourceRef, reader: RelationReader): Promise<ResourceRef[]> {
  if (ref.kind === 'incident' || ref.kind === 'proposal') return []
  const same = await reader.otherNames(ref)
  const near: ResourceRef[] = [...same]
  for (const start of [ref, ...same]) {
    if (start.kind === 'incident' || start.kind === 'proposal') continue
    for (const path of kinds[start.kind].near) near.push(...(await walk(start, path, reader)))
  }
  const byKey = new Map(near.map((each) => [resourceKey(each), each]))
  byKey.delete(resourceKey(ref))
  return [...byKey.values()]
}

async function walk(
  start: ResourceRef,
  path: readonly Step[],
  { stepFrom }: RelationReader,
): Promise<readonly ResourceRef[]> {
  let at: readonly ResourceRef[] = [start]
  for (const step of path) {
    if (at.length === 0) return []
    at = await stepFrom(at, step)
  }
  return at
}
