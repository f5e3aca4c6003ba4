import type { DeclaredRelation } from './declared-resources.ts'
import { type InventoryKind, machineKinds, onceAlong } from './kinds.ts'
import { resourceKey } from './registry.ts'
import type { SiteFault } from './site.ts'

/**
 * Handles relations that may have only one value: finds a second value, and the values that new
 * values replace.
 */

/** A relation in an inventory file, with its place in the file. */
export type PlacedRelation = { relation: DeclaredRelation; place: string }

/** Lists what a relation sets that may have one value. `same_as` sets a value at both ends. */
function slotsOf({ from, kind, to }: DeclaredRelation): { slot: string; value: string }[] {
  const ends = kind === 'same_as' ? [[from, to] as const, [to, from] as const] : [[from, to] as const]
  return ends.flatMap(([left, right]) =>
    left.kind !== right.kind && (onceAlong(left.kind as InventoryKind, kind) as readonly string[]).includes(right.kind)
      ? [{ slot: `${resourceKey(left)} ${kind} ${right.kind}`, value: resourceKey(right) }]
      : [],
  )
}

/** Merges earlier and new relations. A new value replaces the earlier value. */
export function withNewValues(
  before: readonly DeclaredRelation[],
  given: readonly DeclaredRelation[],
): DeclaredRelation[] {
  const filled = new Map(given.flatMap(slotsOf).map(({ slot, value }) => [slot, value]))
  const kept = before.filter((each) => slotsOf(each).every(({ slot, value }) => (filled.get(slot) ?? value) === value))
  return [...new Map([...kept, ...given].map((each) => [nameRelation(each), each])).values()]
}

export const nameRelation = ({ from, kind, to }: DeclaredRelation): string =>
  `${resourceKey(from)} ${kind} ${resourceKey(to)}`

const maxNamed = 200

/**
 * Finds second values within one file, with the places of both values, and then machines that would
 * become one.
 */
export function findSecondValues(placed: readonly PlacedRelation[]): SiteFault[] {
  const first = new Map<string, { each: PlacedRelation; value: string }>()
  const faults = new Map<PlacedRelation, string>()
  for (const each of placed) {
    for (const { slot, value } of slotsOf(each.relation)) {
      const known = first.get(slot) ?? { each, value }
      first.set(slot, known)
      if (known.value === value || faults.size >= maxNamed) continue
      const once = `${slot.replace(/ (\S+)$/, ' one $1')} at most`
      faults.set(each, `${nameRelation(each.relation)}, and ${known.each.place} says ${known.value}: ${once}`)
      if (!faults.has(known.each))
        faults.set(known.each, `${nameRelation(known.each.relation)}, and ${each.place} says ${value}: ${once}`)
    }
  }
  return [
    ...[...faults].map(([{ place: field }, message]) => ({ field, message })),
    ...findTwoInOne(placed.filter((each) => !faults.has(each))).map(({ place: field, message }) => ({
      field,
      message,
    })),
  ]
}

/**
 * Finds places at which `same_as` would join two nodes, two VMs or two hosts, along any path.
 * `pair` names the two resources.
 */
export function findTwoInOne(placed: readonly PlacedRelation[]): { place: string; pair: string; message: string }[] {
  const group = new Map<string, string[]>()
  const machine = new Map<string[], Map<string, string>>()
  const next = new Map<string, string[]>()
  const found: { place: string; pair: string; message: string }[] = []
  const groupOf = (key: string): string[] => {
    const known = group.get(key) ?? [key]
    if (!group.has(key)) {
      group.set(key, known)
      const kind = key.slice(0, key.indexOf(':'))
      machine.set(known, new Map((machineKinds as readonly string[]).includes(kind) ? [[kind, key]] : []))
    }
    return known
  }
  for (const { relation, place } of placed) {
    if (relation.kind !== 'same_as' || found.length >= maxNamed) continue
    const [left, right] = [resourceKey(relation.from), resourceKey(relation.to)]
    const [small, large] = [groupOf(left), groupOf(right)].sort((a, b) => a.length - b.length) as [string[], string[]]
    if (small === large) continue
    const [ofSmall, ofLarge] = [machine.get(small), machine.get(large)] as [Map<string, string>, Map<string, string>]
    const clash = [...ofSmall].find(([kind]) => ofLarge.has(kind))
    if (clash) {
      const pair = [clash[1], ofLarge.get(clash[0]) as string].sort() as [string, string]
      const [here, there] = small.includes(left) ? [clash[1], ofLarge.get(clash[0])] : [ofLarge.get(clash[0]), clash[1]]
      const path = [...pathTo(here as string, left, next), ...pathTo(there as string, right, next).reverse()]
      const message = `${pair[0]} and ${pair[1]} would be the same resource: ${formatPath(path)}`
      found.push({ place, pair: pair.join(' '), message })
      continue
    }
    for (const key of small) group.set(key, large)
    for (const key of small) large.push(key)
    for (const [kind, key] of ofSmall) ofLarge.set(kind, key)
    for (const [one, other] of [[left, right] as const, [right, left] as const]) {
      const more = next.get(one) ?? []
      more.push(other)
      next.set(one, more)
    }
  }
  return found
}

/** Returns the only chain of names between two names of a resource. */
function pathTo(from: string, to: string, next: ReadonlyMap<string, readonly string[]>): string[] {
  const cameFrom = new Map<string, string | null>([[from, null]])
  const queue = [from]
  for (const at of queue) {
    if (at === to) break
    for (const other of next.get(at) ?? []) {
      if (cameFrom.has(other)) continue
      cameFrom.set(other, at)
      queue.push(other)
    }
  }
  const path: string[] = []
  for (let at: string | null = to; at !== null; at = cameFrom.get(at) ?? null) path.unshift(at)
  return path
}

const maxSteps = 8

function formatPath(path: readonly string[]): string {
  const shown = path.length <= maxSteps ? path : [...path.slice(0, maxSteps - 1), '…', path.at(-1)]
  return shown.join(' same_as ')
}
