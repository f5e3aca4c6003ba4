import { type ResourceKind, type ResourceRef, resourceKey } from '../domain/registry.ts'
import type { DiscoveredThing } from '../domain/tool.ts'

/**
 * Names that this attempt looked up. Names are folded from rows and never stored. No name is known
 * when an attempt begins, because platforms change.
 */

/**
 * Milliseconds after a look-up in which a write may name the resource as its target, without waits
 * for people.
 */
export const resolvedForMs = 45 * 60_000
/** Most names that are kept. The oldest look-up is dropped first, the pinned resource never. */
export const maxResolved = 500

type ResolvedEntry = {
  ref: ResourceRef
  /** `{kind}:{host}:{uid}` for a resource on a host, otherwise `{kind}:{uid}`. */
  canonical: string
  host: string | null
  names: readonly string[]
  seq: number
  atMs: number
  /**
   * The last time that a call named the resource itself. Bulk look-ups only set `atMs`, because
   * they do not show which resource is meant.
   */
  explicitAtMs: number | null
}

export type ResolvedNames = {
  /** The entries by `{kind}:{id}`, the oldest look-up first. */
  entries: Map<string, ResolvedEntry>
  /** Keys of entries, by every id, name and alias. */
  byName: Map<string, Set<string>>
  /** Key of the incident's own resource, which is never dropped. */
  pinned: string | null
  /** Names that commands listed, by resource, with the time of the last listing. */
  listed: Map<string, Map<string, number>>
}

export function emptyResolved(pinned: ResourceRef | null): ResolvedNames {
  return { entries: new Map(), byName: new Map(), pinned: pinned ? resourceKey(pinned) : null, listed: new Map() }
}

/**
 * Records what a successful look-up found. `explicit`: the call named this resource itself, and did
 * not only find it among other resources.
 */
export function remember(
  resolved: ResolvedNames,
  thing: DiscoveredThing,
  seq: number,
  atMs: number,
  explicit: boolean,
): void {
  const key = resourceKey(thing)
  const known = resolved.entries.get(key)
  const host = thing.host ?? known?.host ?? null
  const names = [...new Set([thing.id, thing.name, ...thing.aliases, ...(known?.names ?? [])])]
  // Removes the entry and adds it again, so that the Map keeps the order of the last look-ups.
  resolved.entries.delete(key)
  resolved.entries.set(key, {
    ref: { kind: thing.kind, id: thing.id },
    canonical: host === null ? key : `${thing.kind}:${host}:${thing.id}`,
    host,
    names,
    seq,
    atMs,
    explicitAtMs: explicit ? atMs : (known?.explicitAtMs ?? null),
  })
  for (const name of names) {
    const keys = resolved.byName.get(name) ?? new Set()
    keys.add(key)
    resolved.byName.set(name, keys)
  }
  if (resolved.entries.size > maxResolved) forgetOldest(resolved)
}

function forgetOldest(resolved: ResolvedNames): void {
  for (const [key, entry] of resolved.entries) {
    if (key === resolved.pinned) continue
    resolved.entries.delete(key)
    for (const name of entry.names) resolved.byName.get(name)?.delete(key)
    return
  }
}

/** Shifts all times by a wait for people, because names do not age during the wait. */
export function shiftTimes(resolved: ResolvedNames, waitedMs: number): void {
  for (const entry of resolved.entries.values()) {
    entry.atMs += waitedMs
    if (entry.explicitAtMs !== null) entry.explicitAtMs += waitedMs
  }
  for (const names of resolved.listed.values()) for (const [name, atMs] of names) names.set(name, atMs + waitedMs)
}

export function isFresh(atMs: number, nowMs: number): boolean {
  return nowMs - atMs <= resolvedForMs
}

type NameMeaning =
  | { kind: 'known'; entry: ResolvedEntry }
  | { kind: 'ambiguous'; candidates: ResolvedEntry[] }
  | { kind: 'unknown' }

/** Resolves a name in a call: an id, or the name of exactly one fresh resource of these kinds. */
export function resolveName(
  resolved: ResolvedNames,
  kinds: readonly ResourceKind[],
  name: string,
  nowMs: number,
): NameMeaning {
  const fresh = (entry: ResolvedEntry | undefined): entry is ResolvedEntry =>
    entry !== undefined && isFresh(entry.atMs, nowMs)
  const exact = kinds.map((kind) => resolved.entries.get(resourceKey({ kind, id: name }))).filter(fresh)
  if (exact[0]) return { kind: 'known', entry: exact[0] }
  const candidates = [...(resolved.byName.get(name) ?? [])]
    .map((key) => resolved.entries.get(key))
    .filter(fresh)
    .filter((entry) => kinds.includes(entry.ref.kind))
  if (candidates.length > 1) return { kind: 'ambiguous', candidates }
  return candidates[0] ? { kind: 'known', entry: candidates[0] } : { kind: 'unknown' }
}

/**
 * Lists the resources on this host that calls named lately, because a call may mean one of these.
 */
export function guestsReferencedOn(resolved: ResolvedNames, hostId: string, nowMs: number): ResolvedEntry[] {
  return [...resolved.entries.values()].filter(
    (entry) => entry.host === hostId && entry.explicitAtMs !== null && isFresh(entry.explicitAtMs, nowMs),
  )
}

/**
 * Lists names and addresses that were looked up, in lower case. A packet to such a host reveals
 * nothing new.
 */
export function knownHosts(resolved: ResolvedNames, nowMs: number): Set<string> {
  const hosts = new Set<string>()
  for (const entry of resolved.entries.values()) {
    if (!isFresh(entry.atMs, nowMs) || !addressable.has(entry.ref.kind)) continue
    for (const name of entry.names) hosts.add(name.toLowerCase())
  }
  return hosts
}

/** Records names that a look-up on a resource listed: containers, pods, guests, buckets. */
export function rememberListed(resolved: ResolvedNames, on: ResourceRef, names: readonly string[], atMs: number): void {
  const known = resolved.listed.get(resourceKey(on)) ?? new Map<string, number>()
  resolved.listed.set(resourceKey(on), known)
  for (const name of names) {
    // Removes the name and adds it again, so that the Map keeps the order of the last look-ups.
    known.delete(name)
    known.set(name, atMs)
    if (known.size > maxResolved) known.delete(known.keys().next().value!)
  }
}

/**
 * Lists the names that a command on one of these resources may use: names that were listed on the
 * resource, and guests found on it, by name and by the number of `vm-101`. An equal name that was
 * listed on another resource means another object.
 */
export function namesKnownOn(resolved: ResolvedNames, on: readonly ResourceRef[], nowMs: number): Set<string> {
  const names = new Set<string>()
  for (const ref of on) {
    for (const [name, atMs] of resolved.listed.get(resourceKey(ref)) ?? []) if (isFresh(atMs, nowMs)) names.add(name)
  }
  const ids = new Set(on.map(({ id }) => id))
  for (const entry of resolved.entries.values()) {
    if (entry.ref.kind !== 'vm' || entry.host === null || !ids.has(entry.host) || !isFresh(entry.atMs, nowMs)) continue
    for (const name of entry.names) names.add(name)
    const number = /^vm-(\d+)$/.exec(entry.ref.id)?.[1]
    if (number !== undefined) names.add(number)
  }
  return names
}

const addressable: ReadonlySet<ResourceKind> = new Set(['node', 'host', 'vm'])
