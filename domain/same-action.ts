import { actionDigest } from './digest.ts'
import { type ResourceRef, resourceKey } from './resource.ts'
import type { ToolFacts } from './tool.ts'

export type NamingFacts = Pick<ToolFacts, 'name' | 'names' | 'kindField'>
type Action = { arguments: Record<string, unknown>; targets: readonly ResourceRef[] }

/**
 * The digest of an action with each thing under its one key: `vm:x` and `node:x` may be two names of one machine, and what a person denied
 * for it under one name is denied under the other. `keyOf` answers a resource's key; the registry's is the one that leases go by.
 */
export function actionByKeys(
  { name: tool, names, kindField }: NamingFacts,
  action: Action,
  keyOf: (ref: ResourceRef) => string,
): string {
  const keyed = { ...action.arguments }
  for (const [field, kinds] of Object.entries(names)) {
    const allowed: readonly string[] = typeof kinds === 'string' ? [kinds] : kinds
    const toKey = (id: unknown): unknown => {
      const target = action.targets.find((each) => each.id === id && allowed.includes(each.kind))
      return target ? keyOf(target) : id
    }
    const value = keyed[field]
    if (value !== undefined) keyed[field] = Array.isArray(value) ? value.map(toKey) : toKey(value)
  }
  // The key says of which kind it is; the word that the caller chose is part of the name.
  if (kindField !== undefined) delete keyed[kindField]
  return actionDigest(tool, keyed)
}

/** Reads keys from what was stored: what has no entry is its own. */
export function keyReader(keys: Readonly<Record<string, string>>): (ref: ResourceRef) => string {
  return (ref) => {
    const own = resourceKey(ref)
    return Object.hasOwn(keys, own) ? (keys[own] as string) : own
  }
}
